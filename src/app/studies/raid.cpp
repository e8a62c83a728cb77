// RaidArray: the client of the array, and the comparison of the results.
#include "app/studies/raid.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "app/studies/raid_array.hpp"

namespace spinloom::app {

Result<StudyResult> RaidArray::run() {
  SPL_ASSIGN(client_, Side::make(world_.node(client_rank)));
  SPL_ASSIGN(parity_side_, Side::make(world_.node(parity_rank)));
  for (uint32_t index = 0; index < data_nodes; ++index) SPL_TRY(prepare(index));
  SPL_TRY(prepare_client());
  for (uint32_t rank = 0; rank < all_ranks; ++rank) world_.node(rank).watch([this, rank] { on_counters(rank); });
  StudyResult result;
  for (round_ = 1; round_ <= study_rounds; ++round_) {
    SPL_ASSIGN(result, is_read() ? read() : update());
  }
  if (!is_read() && config_.way == StudyWay::stream) SPL_TRY(read());
  return result;
}

Result<StudyResult> RaidArray::update() {
  for (uint32_t index = 0; index < data_nodes; ++index) {
    DataNode& node = nodes_[index];
    node.written = random_bytes(config_.ordering.seed, text("app.raid.piece.", index, ".", round_), node.piece.bytes);
    std::copy(node.written.begin(), node.written.end(),
              node.expected.begin() + static_cast<ptrdiff_t>(node.piece.offset));
  }
  SPL_ASSIGN(const StudyResult result, measure(&RaidArray::post_write, nic::HandlerKind::payload));
  SPL_TRY(compare());
  return result;
}

Result<StudyResult> RaidArray::read() {
  for (DataNode& node : nodes_) std::fill(node.read_back.begin(), node.read_back.end(), uint8_t{0});
  SPL_ASSIGN(const StudyResult result, measure(&RaidArray::post_read, nic::HandlerKind::header));
  for (uint32_t index = 0; index < data_nodes; ++index) {
    const DataNode& node = nodes_[index];
    const auto first = node.expected.begin() + static_cast<ptrdiff_t>(node.piece.offset);
    const std::vector<uint8_t> piece(first, first + static_cast<ptrdiff_t>(node.piece.bytes));
    SPL_TRY(compare_bytes(node.read_back, piece, text("what data node ", index, " returned")));
  }
  SPL_TRY(compare());
  return result;
}

// Measures one request, from its first call until the client knows that all of it is done.
Result<StudyResult> RaidArray::measure(Status (RaidArray::*post)(DataNode&), nic::HandlerKind kind) {
  world_.drain();
  StudyResult result;
  const simulated::HandlerStatistics before = handlers(kind);
  const Time start = world_.node(client_rank).now();
  expected_count_ = client_.interface->ct_get(client_.counter).success + touched_nodes_;
  end_ = Time::never();
  for (DataNode& node : nodes_) {
    if (node.is_touched) SPL_TRY((this->*post)(node));
  }
  while (end_ == Time::never()) {
    if (!world_.events().step()) return stall_error();
  }
  result.time_ps = (end_ - start).ps;
  result.handlers = handlers(kind).handlers - before.handlers;
  result.handler_cycles = handlers(kind).cycles - before.cycles;
  world_.drain();
  return result;
}

Status RaidArray::post_write(DataNode& node) {
  portals::PutArguments put = client_.put(node.written, node.side, raid_bits::write);
  put.remote_offset = uses_hosts() ? 0 : node.piece.offset;
  put.hdr_data = static_cast<uint64_t>(round_);
  return client_.interface->put(put);
}

Status RaidArray::post_read(DataNode& node) {
  if (config_.way == StudyWay::portals4) {
    portals::GetArguments get;
    get.reply.local = node.read_back.data();
    get.reply.counter = client_.counter;
    get.reply.ct_reply = true;
    get.reply.event_success_disable = true;
    get.length = node.read_back.size();
    get.target = node.side.node->rank();
    get.portal = node.side.portal;
    get.match_bits = raid_bits::read;
    get.remote_offset = node.piece.offset;
    return client_.interface->get(get);
  }
  node.request = {node.piece.bytes, node.piece.offset};
  portals::PutArguments put = client_.put(empty_, node.side, raid_bits::read);
  put.local = reinterpret_cast<const uint8_t*>(&node.request);
  put.length = uses_hosts() ? sizeof node.request : sizeof node.request.bytes;
  put.remote_offset = uses_hosts() ? 0 : node.piece.offset;
  return client_.interface->put(put);
}

Error RaidArray::stall_error() const {
  for (uint32_t rank = 0; rank < all_ranks; ++rank) {
    if (const std::string& trouble = world_.node(rank).handler_trouble(); !trouble.empty()) {
      return fail(Code::fault, "raid: the client waits; a handler of rank ", rank, " ", trouble);
    }
  }
  return fail(Code::stalled, "raid: the client waits and nothing can happen any more");
}

simulated::HandlerStatistics RaidArray::handlers(nic::HandlerKind kind) const {
  simulated::HandlerStatistics sum;
  for (uint32_t rank = 0; rank < all_ranks; ++rank) {
    const auto& statistics = world_.node(rank).hpus().statistics(kind);
    sum.handlers += statistics.handlers;
    sum.cycles += statistics.cycles;
  }
  return sum;
}

Status RaidArray::compare() const {
  std::vector<uint8_t> sum = random_bytes(config_.ordering.seed, "app.raid.parity", block_bytes_);
  for (uint32_t index = 0; index < data_nodes; ++index) {
    const DataNode& node = nodes_[index];
    SPL_TRY(compare_bytes(node.block, node.expected, text("data node ", index)));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= node.expected[i];
  }
  return compare_bytes(parity_, sum, "the parity node");
}

Status RaidArray::compare_bytes(const std::vector<uint8_t>& bytes, const std::vector<uint8_t>& expected,
                                const std::string& whose) {
  const auto [at, wanted] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
  if (at == bytes.end() && wanted == expected.end()) return {};
  return fail(Code::mismatch, "raid: byte ", at - bytes.begin(), " of ", bytes.size(), " of ", whose, " is ", int{*at},
              ", not ", int{*wanted});
}

Result<StudyResult> run_raid(const StudyConfig& config, const LoadedImages& loaded) {
  if (config.way == StudyWay::store) return fail(Code::unsupported, "raid goes by rdma, portals4 or stream");
  if (!config.pieces.empty() && config.pieces.size() != raid_data_nodes) {
    return fail(Code::invalid, "raid: ", config.pieces.size(), " pieces for ", raid_data_nodes, " data nodes");
  }
  for (const RaidPiece& piece : config.pieces) {
    if (piece.bytes > raid_block_bytes_max || piece.offset > raid_block_bytes_max - piece.bytes) {
      return fail(Code::unsupported, "raid: a piece of ", piece.bytes, " B at ", piece.offset, " is not in a block of ",
                  raid_block_bytes_max, " B");
    }
  }
  simulated::WorldOptions options = world_options(config);
  options.ranks = RaidArray::all_ranks;
  SPL_ASSIGN(const auto world, simulated::World::create(config.profile, loaded.images, options));
  return RaidArray(config, loaded, *world).run();
}

}  // namespace spinloom::app
