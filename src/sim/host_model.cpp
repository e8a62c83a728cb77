#include "sim/host_model.hpp"

#include "sim/host_cache.hpp"

namespace spinloom::sim {
namespace {

Rational block_cycles(const Profile& profile, portals::HostWork::Kind kind) {
  switch (kind) {
    case portals::HostWork::Kind::unpack_mpitypes:
    case portals::HostWork::Kind::build_checkpoints: return profile.host.mpitypes_block_cycles;
    case portals::HostWork::Kind::unpack_best: return profile.host.best_block_cycles;
    case portals::HostWork::Kind::other: break;
  }
  return {0, 1};
}

}  // namespace

HostCost host_cost(const Profile& profile, const portals::HostWork& work) {
  const auto& host = profile.host;
  HostCache cache(host.cache, host.cache_ways, host.line);
  if (work.touches) {
    work.touches([&](uint64_t address, uint64_t length, bool write) { cache.touch(address, length, write); });
  }
  cache.flush();
  HostCost cost;
  cost.line_fetches = cache.fetches();
  cost.line_writebacks = cache.writebacks();
  const auto lines = static_cast<int64_t>(cost.line_fetches + cost.line_writebacks);
  cost.lines = host.copy_byte_time.time_of(Bytes{lines * host.line});
  const Rational each = block_cycles(profile, work.kind);
  const int64_t cycles = div_ceil(static_cast<int64_t>(work.blocks) * each.numerator, each.denominator);
  cost.blocks = Rate::cycle_of(host.clock).time_of_cycles(cycles);
  return cost;
}

}  // namespace spinloom::sim
