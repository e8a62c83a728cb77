#include "app/raid.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "app/study_side.hpp"
#include "sim/host_model.hpp"
#include "sim/resource.hpp"

namespace spinloom::app {
namespace {

constexpr uint32_t client = 0;
constexpr uint32_t parity = 1;
constexpr uint32_t first_data = 2;
constexpr uint32_t data_nodes = 4;
constexpr uint32_t all_ranks = first_data + data_nodes;
constexpr uint64_t margin_bytes = 96;  // bytes of a block behind the bytes written

// Match bits. The parity node's entries add the number of the data node.
constexpr uint64_t write_bits = 1;
constexpr uint64_t read_bits = 2;
constexpr uint64_t acknowledged_bits = 3;
constexpr uint64_t stored_bits = 4;  // the client's entry for answers
constexpr uint64_t piece_bits = 5;   // the client's entry for the bytes that it reads back
constexpr uint64_t delta_bits = 16;

// Constants and state of handlers/raid_data.c and raid_parity.c.
enum Role : uint32_t { write_role, read_role, acknowledged_role };
constexpr uint64_t data_state_bytes = 24;
constexpr uint64_t parity_state_bytes = 256;

class Raid final : sim::EventTarget {
 public:
  Raid(const StudyConfig& config, const LoadedImages& loaded, sim::World& world)
      : config_(config),
        loaded_(loaded),
        world_(world),
        piece_bytes_(config.bytes / data_nodes + (config.bytes % data_nodes != 0 ? 1 : 0)),
        block_bytes_(config.offset + piece_bytes_ + margin_bytes),
        parity_(random_bytes(config.ordering.seed, "app.raid.parity", block_bytes_)) {}

  Result<StudyResult> run() {
    SPL_ASSIGN(client_, Side::make(world_.node(client)));
    SPL_ASSIGN(parity_side_, Side::make(world_.node(parity)));
    for (uint32_t index = 0; index < data_nodes; ++index) SPL_TRY(prepare(index));
    SPL_TRY(prepare_client());
    for (uint32_t rank = 0; rank < all_ranks; ++rank) world_.node(rank).watch([this, rank] { told(rank); });
    StudyResult result;
    for (round_ = 1; round_ <= study_rounds; ++round_) {
      SPL_TRY(update(result));
      SPL_TRY(compare());
    }
    if (config_.way == Way::stream) SPL_TRY(read_back());
    return result;
  }

 private:
  struct DataNode {
    Side side;
    nic::CounterId acknowledged;  // rdma, portals4: answers of the parity node
    nic::CounterId delta_landed;  // rdma, portals4: at the parity node
    std::vector<uint8_t> block;
    std::vector<uint8_t> expected;
    std::vector<uint8_t> written;    // the client's piece
    std::vector<uint8_t> landed;     // rdma, portals4: the place where the piece lands
    std::vector<uint8_t> delta;      // rdma, portals4: the bytes for the parity node
    std::vector<uint8_t> delta_there;  // rdma, portals4: the place where those land
    std::vector<uint8_t> read;
    uint64_t request = 0;  // read: how many bytes
    int updated_round = 0;
    int applied_round = 0;
    int answered_round = 0;
    sim::Resource processor;
  };
  enum Step : uint32_t { updated, applied, answered };

  [[nodiscard]] bool by_hosts() const { return config_.way != Way::stream; }
  [[nodiscard]] uint64_t length_of(uint32_t index) const {
    const uint64_t from = std::min(config_.bytes, index * piece_bytes_);
    return std::min(config_.bytes - from, piece_bytes_);
  }

  Status prepare(uint32_t index) {
    DataNode& node = nodes_[index];
    const std::string stream = text("app.raid.block.", index);
    SPL_ASSIGN(node.side, Side::make(world_.node(first_data + index)));
    node.block = random_bytes(config_.ordering.seed, stream, block_bytes_);
    for (size_t i = 0; i < parity_.size(); ++i) parity_[i] ^= node.block[i];
    node.written.resize(length_of(index));
    node.landed.resize(length_of(index));
    node.delta.resize(length_of(index));
    node.delta_there.resize(length_of(index));
    node.read.resize(length_of(index));
    return by_hosts() ? prepare_hosts(index) : prepare_handlers(index);
  }

  // An entry that counts messages, and makes events only for failures.
  static nic::Entry counting(const Side& side, std::vector<uint8_t>& memory, uint64_t bits, nic::CounterId counter) {
    nic::Entry entry = side.entry(memory, bits);
    entry.counter = counter;
    entry.options.ct_bytes = false;
    return entry;
  }

  Status prepare_hosts(uint32_t index) {
    DataNode& node = nodes_[index];
    portals::Interface& host = *node.side.interface;
    SPL_ASSIGN(node.acknowledged, host.ct_alloc());
    SPL_ASSIGN(node.delta_landed, parity_side_.interface->ct_alloc());
    SPL_TRY(host.me_append(node.side.portal, counting(node.side, node.landed, write_bits, node.side.counter)));
    SPL_TRY(host.me_append(node.side.portal, counting(node.side, nothing_, acknowledged_bits, node.acknowledged)));
    SPL_TRY(parity_side_.interface->me_append(
        parity_side_.portal, counting(parity_side_, node.delta_there, delta_bits + index, node.delta_landed)));
    if (config_.way != Way::portals4) return {};
    return host.put(node.side.put(nothing_, client_, stored_bits), nic::Trigger{node.acknowledged, 1, 1});
  }

  Status prepare_handlers(uint32_t index) {
    DataNode& node = nodes_[index];
    const auto block = static_cast<uint32_t>(block_bytes_);
    const auto bits = static_cast<uint32_t>(delta_bits + index);
    nic::MemoryWindow state;
    SPL_ASSIGN(state, node.side.zeroed(data_state_bytes));
    SPL_TRY(serve(node, write_bits, {write_role, block, parity, bits, stored_bits}, state, 0));
    SPL_TRY(serve(node, acknowledged_bits, {acknowledged_role, block, 0, 0, stored_bits}, state, 0));
    SPL_TRY(serve(node, read_bits, {read_role, block, 0, 0, piece_bits}, state, sizeof node.request));
    if (locks_.length == 0) {
      SPL_ASSIGN(locks_, parity_side_.zeroed(parity_state_bytes));
    }
    nic::Entry entry = counting(parity_side_, parity_, delta_bits + index, parity_side_.counter);
    entry.match_rank = nic::Rank{first_data + index};
    SPL_ASSIGN(nic::Context context,
               parity_side_.handlers(loaded_, "raid_parity", {first_data + index, acknowledged_bits}));
    context.state = locks_;
    SPL_ASSIGN(entry.context, parity_side_.interface->context_create(context));
    SPL_TRY(parity_side_.interface->me_append(parity_side_.portal, entry));
    return {};
  }

  // Appends an entry of a data node over its block, with the handlers of raid_data.c in one of their roles.
  Status serve(DataNode& node, uint64_t bits, const std::vector<uint32_t>& constants, nic::MemoryWindow state,
               uint32_t user_header_bytes) {
    nic::Entry entry = counting(node.side, node.block, bits, node.side.counter);
    SPL_ASSIGN(nic::Context context, node.side.handlers(loaded_, "raid_data", constants));
    context.state = state;
    context.user_header_bytes = user_header_bytes;
    SPL_ASSIGN(entry.context, node.side.interface->context_create(context));
    SPL_TRY(node.side.interface->me_append(node.side.portal, entry));
    return {};
  }

  Status prepare_client() {
    SPL_TRY(client_.interface->me_append(client_.portal, counting(client_, nothing_, stored_bits, client_.counter)));
    for (uint32_t index = 0; index < data_nodes; ++index) {
      nic::Entry entry = counting(client_, nodes_[index].read, piece_bits, client_.counter);
      entry.match_rank = nic::Rank{first_data + index};
      SPL_TRY(client_.interface->me_append(client_.portal, entry));
    }
    return {};
  }

  Status update(StudyResult& result) {
    world_.drain();
    for (uint32_t index = 0; index < data_nodes; ++index) {
      DataNode& node = nodes_[index];
      node.written = random_bytes(config_.ordering.seed, text("app.raid.piece.", index, ".", round_), length_of(index));
      node.expected = node.block;
      std::copy(node.written.begin(), node.written.end(),
                node.expected.begin() + static_cast<ptrdiff_t>(config_.offset));
    }
    const sim::HandlerStatistics before = handlers();
    stored_ = Time::never();
    const Time start = world_.node(client).now();
    for (DataNode& node : nodes_) {
      portals::PutArguments put = client_.put(node.written, node.side, write_bits);
      put.remote_offset = by_hosts() ? 0 : config_.offset;
      put.hdr_data = static_cast<uint64_t>(round_);
      SPL_TRY(client_.interface->put(put));
    }
    while (stored_ == Time::never()) {
      if (!world_.events().step()) return stuck("the client waits for acknowledgements");
    }
    result.time_ps = (stored_ - start).ps;
    result.handlers = handlers().handlers - before.handlers;
    result.handler_cycles = handlers().cycles - before.cycles;
    world_.drain();
    return {};
  }

  [[nodiscard]] Error stuck(const char* what) const {
    for (uint32_t rank = 0; rank < all_ranks; ++rank) {
      if (const std::string& trouble = world_.node(rank).handler_trouble(); !trouble.empty()) {
        return fail(Code::fault, "raid: ", what, "; a handler of rank ", rank, " ", trouble);
      }
    }
    return fail(Code::stalled, "raid: ", what, " and nothing can happen any more");
  }

  [[nodiscard]] sim::HandlerStatistics handlers() const {
    sim::HandlerStatistics sum;
    for (uint32_t rank = 0; rank < all_ranks; ++rank) {
      const auto& one = world_.node(rank).hpus().statistics(nic::HandlerKind::payload);
      sum.handlers += one.handlers;
      sum.cycles += one.cycles;
    }
    return sum;
  }

  Status compare() const {
    std::vector<uint8_t> sum = random_bytes(config_.ordering.seed, "app.raid.parity", block_bytes_);
    for (uint32_t index = 0; index < data_nodes; ++index) {
      const DataNode& node = nodes_[index];
      SPL_TRY(same(node.block, node.expected, text("data node ", index)));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= node.expected[i];
    }
    return same(parity_, sum, "the parity node");
  }

  static Status same(const std::vector<uint8_t>& bytes, const std::vector<uint8_t>& expected,
                     const std::string& whose) {
    const auto [at, wanted] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
    if (at == bytes.end() && wanted == expected.end()) return {};
    return fail(Code::mismatch, "raid: byte ", at - bytes.begin(), " of ", bytes.size(), " of ", whose, " is ",
                int{*at}, ", not ", int{*wanted});
  }

  Status read_back() {
    const uint64_t before = client_.interface->ct_get(client_.counter).success;
    uint64_t asked = 0;
    for (DataNode& node : nodes_) {
      node.request = node.read.size();
      portals::PutArguments put = client_.put(nothing_, node.side, read_bits);
      put.local = reinterpret_cast<const uint8_t*>(&node.request);
      put.length = sizeof node.request;
      put.remote_offset = config_.offset;
      SPL_TRY(client_.interface->put(put));
      ++asked;
    }
    while (client_.interface->ct_get(client_.counter).success < before + asked) {
      if (!world_.events().step()) return stuck("the client reads its pieces back");
    }
    for (uint32_t index = 0; index < data_nodes; ++index) {
      SPL_TRY(same(nodes_[index].read, nodes_[index].written, text("what data node ", index, " returned")));
    }
    return {};
  }

  // ---- the hosts' programs ----

  // Called when something has become readable for this rank's host.
  void told(uint32_t rank) {
    const auto round = static_cast<uint64_t>(round_);
    if (rank == client) {
      const uint64_t answers = client_.interface->ct_get(client_.counter).success;
      if (stored_ == Time::never() && answers >= round * data_nodes) stored_ = world_.node(client).now();
      return;
    }
    if (!by_hosts()) return;
    const auto due = [&](const Side& side, nic::CounterId counter, int& done) {
      if (done == round_ || side.interface->ct_get(counter).success < round) return false;
      done = round_;
      return true;
    };
    if (rank == parity) {
      for (uint32_t index = 0; index < data_nodes; ++index) {
        DataNode& node = nodes_[index];
        if (due(parity_side_, node.delta_landed, node.applied_round)) {
          work(parity_processor_, applied, index, exclusive_or(node.delta.size(), 1));
        }
      }
      return;
    }
    const uint32_t index = rank - first_data;
    DataNode& node = nodes_[index];
    if (due(node.side, node.side.counter, node.updated_round)) {
      work(node.processor, updated, index, exclusive_or(node.written.size(), 2));
    }
    if (config_.way == Way::rdma && due(node.side, node.acknowledged, node.answered_round)) {
      work(node.processor, answered, index, {});
    }
  }

  // The processor sees an event, works, and posts a call.
  void work(sim::Resource& processor, Step then, uint32_t index, const portals::HostWork& what) {
    const auto& host = config_.profile.host;
    const Time took = host.memory_latency + sim::host_cost(config_.profile, what).total() + host.call;
    world_.events().at(processor.serve(world_.node(client).now(), took).end, *this, then, index);
  }

  // The work of an exclusive or: the lines that it reads, some of which it writes.
  static portals::HostWork exclusive_or(uint64_t bytes, uint64_t written) {
    portals::HostWork work;
    work.bytes = bytes;
    work.touches = [bytes, written](const portals::HostWork::Touch& touch) {
      constexpr uint64_t word = 8;
      const uint64_t apart = bytes + 4096;
      for (uint64_t at = 0; at < bytes; at += word) {
        touch(at, std::min(word, bytes - at), false);
        for (uint64_t place = 1; place <= written; ++place) touch(place * apart + at, std::min(word, bytes - at), true);
      }
    };
    return work;
  }

  void on_event(uint32_t code, uint64_t argument) override {
    const auto index = static_cast<uint32_t>(argument);
    DataNode& node = nodes_[index];
    Status posted;
    switch (static_cast<Step>(code)) {
      case updated:
        for (size_t i = 0; i < node.delta.size(); ++i) {
          node.delta[i] = node.block[config_.offset + i] ^ node.landed[i];
          node.block[config_.offset + i] = node.landed[i];
        }
        posted = node.side.interface->put(node.side.put(node.delta, parity_side_, delta_bits + index));
        break;
      case applied:
        for (size_t i = 0; i < node.delta_there.size(); ++i) parity_[config_.offset + i] ^= node.delta_there[i];
        posted = parity_side_.interface->put(parity_side_.put(nothing_, node.side, acknowledged_bits));
        break;
      case answered: posted = node.side.interface->put(node.side.put(nothing_, client_, stored_bits)); break;
    }
    SPL_ASSERT(posted.ok(), posted.error().message);
  }

  const StudyConfig& config_;
  const LoadedImages& loaded_;
  sim::World& world_;
  uint64_t piece_bytes_;
  uint64_t block_bytes_;
  Side client_;
  Side parity_side_;
  sim::Resource parity_processor_;
  nic::MemoryWindow locks_;
  std::array<DataNode, data_nodes> nodes_;
  std::vector<uint8_t> parity_;  // bytes outside the blocks stay as they were: they belong to other stripes
  std::vector<uint8_t> nothing_;
  int round_ = 0;
  Time stored_{};
};

}  // namespace

Result<StudyResult> run_raid(const StudyConfig& config, const LoadedImages& loaded) {
  if (config.way == Way::store) return fail(Code::unsupported, "raid goes by rdma, portals4 or stream");
  sim::WorldOptions options = world_options(config);
  options.ranks = all_ranks;
  SPL_ASSIGN(const auto world, sim::World::create(config.profile, loaded.images, options));
  return Raid(config, loaded, *world).run();
}

}  // namespace spinloom::app
