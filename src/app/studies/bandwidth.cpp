#include "app/studies/bandwidth.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "app/measure/destination.hpp"
#include "base/limits.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/fabric.hpp"

namespace spinloom::app {
namespace {

constexpr uint64_t total_bytes_max = uint64_t{1} << 30;
constexpr int64_t command_accesses = 7;  // six stores and the load that issues

class BandwidthRun final : simulated::EventTarget {
 public:
  explicit BandwidthRun(const BandwidthConfig& config)
      : config_(config),
        fabric_(config.profile, config.hpus),
        issue_(Rate::cycle_of(config.profile.hpu.clock).time_of_cycles(command_accesses * config.profile.pulp.device)),
        source_(random_bytes(config.seed, "app.bandwidth", static_cast<size_t>(config.total_bytes))),
        host_memory_(source_.size()),
        cluster_memory_(config.hpus, std::vector<uint8_t>(static_cast<size_t>(config.block_bytes))),
        next_block_(config.hpus) {}

  BandwidthResult run() {
    for (uint32_t core = 0; core < config_.hpus; ++core) {
      next_block_[core] = core;
      begin(core);
    }
    while (events_.step()) {
    }
    return {config_.total_bytes / config_.block_bytes, last_end_.ps};
  }

  [[nodiscard]] Status check() const {
    const auto [original, arrived] = std::mismatch(source_.begin(), source_.end(), host_memory_.begin());
    if (original == source_.end()) return {};
    return fail(Code::mismatch, "byte ", original - source_.begin(), " arrived as ", int{*arrived}, ", it was sent as ",
                int{*original});
  }

 private:
  // The steps of a core: it has asked for its next block, has copied the block to its cluster, has sent it to the host.
  enum Step : uint32_t { block_requested, block_copied, block_sent };

  void begin(uint32_t core) {
    if (next_block_[core] * config_.block_bytes < config_.total_bytes) schedule(issue_, block_requested, core);
  }
  void schedule(Time delay, Step step, uint32_t core) {
    events_.at(events_.now() + delay, *this, step, core, core + 1);
  }

  void on_event(uint32_t code, uint64_t argument) override {
    const auto core = static_cast<uint32_t>(argument);
    const auto bytes = static_cast<int64_t>(config_.block_bytes);
    const size_t offset = static_cast<size_t>(next_block_[core] * config_.block_bytes);
    const Time now = events_.now();
    switch (code) {
      case block_requested: {
        const Time copied = fabric_.packet_to_hpu(now, core, bytes);
        return schedule(copied - now + issue_, block_copied, core);
      }
      case block_copied: {
        std::memcpy(cluster_memory_[core].data(), source_.data() + offset, cluster_memory_[core].size());
        return schedule(fabric_.to_host(now, core, bytes).end - now, block_sent, core);
      }
      default:
        std::memcpy(host_memory_.data() + offset, cluster_memory_[core].data(), cluster_memory_[core].size());
        last_end_ = now;
        next_block_[core] += config_.hpus;
        return begin(core);
    }
  }

  const BandwidthConfig& config_;
  simulated::EventQueue events_;
  simulated::Fabric fabric_;
  Time issue_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> host_memory_;
  std::vector<std::vector<uint8_t>> cluster_memory_;  // the cluster's memory, by core
  std::vector<uint64_t> next_block_;              // next block, by core
  Time last_end_{};
};

}  // namespace

Result<BandwidthResult> run_bandwidth(const BandwidthConfig& config) {
  if (!config.profile.clustered() || config.profile.pulp.packets != simulated::MemoryLevel::l1) {
    return fail(Code::unsupported, "the NIC copies no packets to the memory of clusters; take a profile with hpu.core ",
                "pulp and pulp.packets L1");
  }
  if (config.hpus == 0 || config.hpus > limits::hpu_count_max) {
    return fail(Code::invalid, "a NIC has 1 to ", limits::hpu_count_max, " HPUs, not ", config.hpus);
  }
  if (config.block_bytes == 0 || config.total_bytes == 0 || config.total_bytes > total_bytes_max ||
      config.total_bytes % config.block_bytes != 0) {
    return fail(Code::invalid, config.total_bytes, " B in blocks of ", config.block_bytes,
                " B: the total must be a multiple of the block and at most ", total_bytes_max);
  }
  BandwidthRun run(config);
  const BandwidthResult result = run.run();
  SPL_TRY(run.check());
  return result;
}

simulated::Profile preloaded(simulated::Profile profile) {
  profile.link.byte_time = Rate(0, 1);
  profile.match.header = Time{};
  profile.match.packet = Time{};
  profile.memory.channel_byte_time = Rate(0, 1);
  profile.pulp.preloaded = true;
  return profile;
}

}  // namespace spinloom::app
