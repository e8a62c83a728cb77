#include "app/studies/broadcast.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/studies/study_side.hpp"
#include "portals/collective/algorithms.hpp"

namespace spinloom::app {
namespace {

using collective::algorithms::binomial_children;

constexpr uint64_t broadcast_match_bits = 1;
constexpr uint64_t state_bytes = 64;
constexpr uint32_t ranks_max = 4096;

// Returns the profile for ranks in a fat tree of 36-port switches (SC'17 paper, section 4.2), where 18 ranks share a
// switch and 324 a group of switches. All pairs are taken as far apart as the farthest: 1, 3 or 5 switches and one wire
// more.
simulated::Profile in_fat_tree(simulated::Profile profile, uint32_t ranks) {
  constexpr uint32_t edge = 18;
  const int switches = ranks <= edge ? 1 : ranks <= edge * edge ? 3 : 5;
  profile.link.switch_latency = profile.link.switch_latency * switches;
  profile.link.wire = profile.link.wire * (switches + 1);
  // Every rank needs a handler's constants and little other NIC memory.
  profile.memory.state_bytes = std::min<int64_t>(profile.memory.state_bytes, int64_t{64} << 10);
  return profile;
}

class Broadcast final : simulated::EventTarget {
 public:
  Broadcast(const StudyConfig& config, const LoadedImages& loaded, const simulated::Profile& profile,
            simulated::World& world)
      : config_(config), loaded_(loaded), profile_(profile), world_(world), ranks_(config.ranks) {}

  Result<StudyResult> run() {
    const std::vector<uint8_t> message = random_bytes(config_.ordering.seed, "app.study", config_.bytes);
    for (uint32_t rank = 0; rank < config_.ranks; ++rank) SPL_TRY(prepare(rank));
    ranks_[0].memory = message;
    StudyResult result;
    for (int round = 1; round <= study_rounds; ++round) {
      world_.drain();
      for (uint32_t rank = 1; rank < config_.ranks; ++rank) {
        std::fill(ranks_[rank].memory.begin(), ranks_[rank].memory.end(), uint8_t{0});
        ranks_[rank].expected = static_cast<uint64_t>(round) * config_.bytes;
      }
      ranks_missing_ = config_.ranks - 1;
      const simulated::HandlerStatistics before = handlers();
      const Time start = world_.node(0).now();
      for (const uint32_t child : binomial_children(config_.ranks, 0)) SPL_TRY(put(0, child));
      while (ranks_missing_ > 0) {
        if (!world_.events().step()) {
          return fail(Code::stalled, "broadcast: ", ranks_missing_, " of ", config_.ranks, " ranks got nothing; ",
                      handler_trouble());
        }
      }
      result.time_ps = (last_ - start).ps;
      world_.drain();
      for (uint32_t rank = 1; rank < config_.ranks; ++rank) {
        if (ranks_[rank].memory != message) return fail(Code::mismatch, "rank ", rank, " has other bytes than rank 0");
      }
      result.handlers = handlers().handlers - before.handlers;
      result.handler_cycles = handlers().cycles - before.cycles;
    }
    return result;
  }

 private:
  struct Rank {
    Side side;
    std::vector<uint8_t> memory;
    uint64_t expected = 0;  // bytes counted when the message is in; 0: the message is in
    size_t next_child = 0;  // rdma: the next child to put to
  };

  [[nodiscard]] simulated::HandlerStatistics handlers() const {
    simulated::HandlerStatistics sum;
    for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
      const auto& statistics = world_.node(rank).hpus().statistics(nic::HandlerKind::payload);
      sum.handlers += statistics.handlers;
      sum.cycles += statistics.cycles;
    }
    return sum;
  }
  [[nodiscard]] std::string handler_trouble() const {
    for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
      if (!world_.node(rank).handler_trouble().empty()) return "a handler " + world_.node(rank).handler_trouble();
    }
    return "no handler complained";
  }

  Status prepare(uint32_t rank) {
    Rank& here = ranks_[rank];
    SPL_ASSIGN(here.side, Side::make(world_.node(rank)));
    here.memory.resize(config_.bytes);
    nic::Entry entry = here.side.entry(here.memory, broadcast_match_bits);
    if (config_.way == StudyWay::store || config_.way == StudyWay::stream) {
      const uint32_t stores = config_.way == StudyWay::store ? 1 : 0;
      const std::vector<uint32_t> constants = {rank, config_.ranks, static_cast<uint32_t>(broadcast_match_bits), stores,
                                               config_.payload_bytes};
      SPL_ASSIGN(entry.context, here.side.context(loaded_, "broadcast", constants, state_bytes));
    }
    SPL_ASSIGN(std::ignore, here.side.interface->me_append(here.side.portal, entry));
    if (config_.way == StudyWay::portals4) {
      for (const uint32_t child : rank == 0 ? std::vector<uint32_t>{} : binomial_children(config_.ranks, rank)) {
        SPL_TRY(put(rank, child, nic::Trigger{here.side.counter, config_.bytes, config_.bytes}));
      }
    }
    world_.node(rank).watch([this, rank] { on_counter(rank); });
    return {};
  }

  // All ranks allocate in the same order, so they have the same portal table entry.
  Status put(uint32_t from, uint32_t to, const std::optional<nic::Trigger>& trigger = {}) {
    const Side& side = ranks_[from].side;
    portals::PutArguments arguments = side.put(ranks_[from].memory, side, broadcast_match_bits);
    arguments.target = nic::Rank{to};
    return side.interface->put(arguments, trigger);
  }

  // Called when something has become readable for this rank's host.
  void on_counter(uint32_t rank) {
    Rank& here = ranks_[rank];
    if (here.expected == 0 || here.side.interface->ct_get(here.side.counter).success < here.expected) return;
    here.expected = 0;
    --ranks_missing_;
    last_ = world_.node(rank).now();
    if (config_.way != StudyWay::rdma || binomial_children(config_.ranks, rank).empty()) return;
    here.next_child = 0;
    world_.events().at(last_ + profile_.host.memory_latency + profile_.host.call, *this, 0, rank);
  }

  // Posts the next put of this rank's host, and plans the following one a call later.
  void on_event(uint32_t, uint64_t argument) override {
    const auto rank = static_cast<uint32_t>(argument);
    const std::vector<uint32_t> children = binomial_children(config_.ranks, rank);
    Rank& here = ranks_[rank];
    const Status posted = put(rank, children[here.next_child++]);
    SPL_ASSERT(posted.ok(), posted.error().message);
    if (here.next_child < children.size())
      world_.events().at(world_.node(rank).now() + profile_.host.call, *this, 0, rank);
  }

  const StudyConfig& config_;
  const LoadedImages& loaded_;
  const simulated::Profile& profile_;
  simulated::World& world_;
  std::vector<Rank> ranks_;
  uint32_t ranks_missing_ = 0;
  Time last_{};  // the time when the newest of the ranks that have the message knew of it
};

}  // namespace

Result<StudyResult> run_broadcast(const StudyConfig& config, const LoadedImages& loaded) {
  if (config.ranks < 2 || config.ranks > ranks_max) {
    return fail(Code::invalid, "a broadcast has 2 to ", ranks_max, " ranks, ", config.ranks, " were given");
  }
  const simulated::Profile profile = in_fat_tree(config.profile, config.ranks);
  simulated::WorldOptions options = world_options(config);
  options.ranks = config.ranks;
  SPL_ASSIGN(const auto world, simulated::World::create(profile, loaded.images, options));
  return Broadcast(config, loaded, profile, *world).run();
}

}  // namespace spinloom::app
