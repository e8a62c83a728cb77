#include "app/studies/raid_array.hpp"

#include <algorithm>

namespace spinloom::app {
namespace {

constexpr uint64_t margin_bytes = 96;  // bytes that every block has behind the piece that ends last

// A RaidRole is the first constant of handlers/raid_data.c. The sizes are those of its state and of raid_parity.c's.
enum RaidRole : uint32_t { write_role, read_role, acknowledged_role };
constexpr uint64_t data_state_bytes = 24;
constexpr uint64_t parity_state_bytes = 256;

// Cuts `bytes` into pieces of equal length, one for each data node, at `offset` in its block. The last pieces may be
// shorter or empty.
std::vector<RaidPiece> in_equal_pieces(uint64_t bytes, uint64_t offset) {
  const uint64_t piece_bytes = bytes / raid_data_nodes + (bytes % raid_data_nodes != 0 ? 1 : 0);
  std::vector<RaidPiece> pieces;
  for (uint64_t index = 0; index < raid_data_nodes; ++index) {
    const uint64_t begin = std::min(bytes, index * piece_bytes);
    pieces.push_back({offset, std::min(bytes - begin, piece_bytes)});
  }
  return pieces;
}

}  // namespace

RaidArray::RaidArray(const StudyConfig& config, const LoadedImages& loaded, simulated::World& world)
    : config_(config), loaded_(loaded), world_(world) {
  const bool has_equal_pieces = config.pieces.empty();
  const std::vector<RaidPiece> pieces = has_equal_pieces ? in_equal_pieces(config.bytes, config.offset) : config.pieces;
  for (uint32_t index = 0; index < data_nodes; ++index) {
    DataNode& node = nodes_[index];
    node.piece = pieces[index];
    node.is_touched = has_equal_pieces || node.piece.bytes > 0;
    touched_nodes_ += node.is_touched ? 1 : 0;
    block_bytes_ = std::max(block_bytes_, node.piece.offset + node.piece.bytes + margin_bytes);
  }
  parity_ = random_bytes(config.ordering.seed, "app.raid.parity", block_bytes_);
}

Status RaidArray::prepare(uint32_t index) {
  DataNode& node = nodes_[index];
  SPL_ASSIGN(node.side, Side::make(world_.node(first_data_rank + index)));
  node.block = random_bytes(config_.ordering.seed, text("app.raid.block.", index), block_bytes_);
  for (size_t i = 0; i < parity_.size(); ++i) parity_[i] ^= node.block[i];
  node.expected = node.block;
  for (auto* bytes : {&node.written, &node.landed, &node.delta, &node.delta_at_parity, &node.read_back}) {
    bytes->resize(node.piece.bytes);
  }
  node.request_landed.resize(sizeof node.request);
  return uses_hosts() ? prepare_hosts(index) : prepare_handlers(index);
}

// Returns an entry that counts messages, and makes events only for failures.
nic::Entry RaidArray::counting_entry(const Side& side, std::vector<uint8_t>& memory, uint64_t match_bits,
                                     nic::CounterId counter) {
  nic::Entry entry = side.entry(memory, match_bits);
  entry.counter = counter;
  entry.options.ct_bytes = false;
  return entry;
}

Status RaidArray::prepare_hosts(uint32_t index) {
  DataNode& node = nodes_[index];
  portals::Interface& host = *node.side.interface;
  if (is_read()) {
    SPL_ASSIGN(node.asked, host.ct_alloc());
    const bool by_get = config_.way == StudyWay::portals4;
    nic::Entry entry =
        counting_entry(node.side, by_get ? node.block : node.request_landed, raid_bits::read, node.asked);
    entry.options.op_get = by_get;
    SPL_TRY(host.me_append(node.side.portal, entry));
    return {};
  }
  SPL_ASSIGN(node.acknowledged, host.ct_alloc());
  SPL_ASSIGN(node.delta_landed, parity_side_.interface->ct_alloc());
  SPL_TRY(
      host.me_append(node.side.portal, counting_entry(node.side, node.landed, raid_bits::write, node.side.counter)));
  SPL_TRY(
      host.me_append(node.side.portal, counting_entry(node.side, empty_, raid_bits::acknowledged, node.acknowledged)));
  SPL_TRY(parity_side_.interface->me_append(
      parity_side_.portal,
      counting_entry(parity_side_, node.delta_at_parity, raid_bits::delta + index, node.delta_landed)));
  if (config_.way != StudyWay::portals4) return {};
  return host.put(node.side.put(empty_, client_, raid_bits::stored), nic::Trigger{node.acknowledged, 1, 1});
}

Status RaidArray::prepare_handlers(uint32_t index) {
  DataNode& node = nodes_[index];
  const auto block_bytes = static_cast<uint32_t>(block_bytes_);
  const auto delta_bits = static_cast<uint32_t>(raid_bits::delta + index);
  nic::MemoryWindow state;
  SPL_ASSIGN(state, node.side.zeroed(data_state_bytes));
  SPL_TRY(append_with_handlers(node, raid_bits::write,
                               {write_role, block_bytes, parity_rank, delta_bits, raid_bits::stored}, state, 0));
  SPL_TRY(append_with_handlers(node, raid_bits::acknowledged, {acknowledged_role, block_bytes, 0, 0, raid_bits::stored},
                               state, 0));
  SPL_TRY(append_with_handlers(node, raid_bits::read, {read_role, block_bytes, 0, 0, raid_bits::piece}, state,
                               sizeof node.request.bytes));
  if (locks_.length == 0) {
    SPL_ASSIGN(locks_, parity_side_.zeroed(parity_state_bytes));
  }
  nic::Entry entry = counting_entry(parity_side_, parity_, raid_bits::delta + index, parity_side_.counter);
  entry.match_rank = nic::Rank{first_data_rank + index};
  SPL_ASSIGN(nic::Context context,
             parity_side_.handlers(loaded_, "raid_parity", {first_data_rank + index, raid_bits::acknowledged}));
  context.state = locks_;
  SPL_ASSIGN(entry.context, parity_side_.interface->context_create(context));
  SPL_TRY(parity_side_.interface->me_append(parity_side_.portal, entry));
  return {};
}

// Appends an entry of a data node over its block, with the handlers of raid_data.c in one of their roles.
Status RaidArray::append_with_handlers(DataNode& node, uint64_t match_bits, const std::vector<uint32_t>& constants,
                                       nic::MemoryWindow state, uint32_t user_header_bytes) {
  nic::Entry entry = counting_entry(node.side, node.block, match_bits, node.side.counter);
  SPL_ASSIGN(nic::Context context, node.side.handlers(loaded_, "raid_data", constants));
  context.state = state;
  context.user_header_bytes = user_header_bytes;
  SPL_ASSIGN(entry.context, node.side.interface->context_create(context));
  SPL_TRY(node.side.interface->me_append(node.side.portal, entry));
  return {};
}

Status RaidArray::prepare_client() {
  SPL_TRY(client_.interface->me_append(client_.portal,
                                       counting_entry(client_, empty_, raid_bits::stored, client_.counter)));
  for (uint32_t index = 0; index < data_nodes; ++index) {
    nic::Entry entry = counting_entry(client_, nodes_[index].read_back, raid_bits::piece, client_.counter);
    entry.match_rank = nic::Rank{first_data_rank + index};
    SPL_TRY(client_.interface->me_append(client_.portal, entry));
  }
  return {};
}

}  // namespace spinloom::app
