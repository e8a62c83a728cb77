#include "simulated/node/host_model.hpp"

#include <algorithm>

#include "simulated/node/fetch_pattern.hpp"
#include "simulated/node/host_cache.hpp"

namespace spinloom::simulated {
namespace {

using Kind = portals::HostWork::Kind;

int64_t cycles_of(uint64_t count, const Rational& each) {
  return div_ceil(static_cast<int64_t>(count) * each.numerator, each.denominator);
}

int64_t block_cycles(const Profile& profile, const portals::HostWork& work) {
  const auto& host = profile.host;
  switch (work.kind) {
    case Kind::interpret:  // the loops of MPITypes; packing has the same in the other direction
      return cycles_of(work.blocks.in_vectors, host.mpitypes_vector_cycles) +
             cycles_of(work.blocks.listed, host.mpitypes_list_cycles);
    case Kind::copy:
      return cycles_of(work.blocks.in_vectors, host.best_vector_cycles) +
             cycles_of(work.blocks.listed, host.best_list_cycles);
    case Kind::post: return cycles_of(work.blocks.in_vectors + work.blocks.listed, host.segment_block_cycles);
    case Kind::react:
    case Kind::other: break;
  }
  return 0;
}

// The time to fetch lines, `in_flight` at a time.
Time fetch_time(uint64_t lines, const Profile& profile, int64_t in_flight) {
  return Time{div_ceil(static_cast<int64_t>(lines) * profile.host.memory_latency.ps, in_flight)};
}

// The first-level data cache, the same for every host that is modelled.
constexpr int64_t near_cache_bytes = 32 << 10;
constexpr int64_t near_cache_ways = 8;

template <class Use>
void for_each_line(const portals::HostWork& work, int64_t line, Use&& use) {
  const auto line_bytes = static_cast<uint64_t>(line);
  work.touches([&](uint64_t address, uint64_t length, bool is_write) {
    if (length == 0) return;
    const uint64_t end = (address + length - 1) / line_bytes;
    for (uint64_t at = address / line_bytes; at <= end; ++at) use(at, is_write);
  });
}

// A written line is taken to be new to the near cache at its first write, so that the last level knows all dirty lines.
HostCost lines_of(const Profile& profile, const portals::HostWork& work) {
  const auto& host = profile.host;
  HostCost cost;
  if (!work.touches) return cost;
  HostCache near_cache(near_cache_bytes, near_cache_ways, host.line);
  HostCache last_level(host.cache, host.cache_ways, host.line);
  FetchPattern reads(host.line);
  FetchPattern writes(host.line);
  // The patterns of lines that the last level has: a prefetcher brings them no later than it would from memory.
  FetchPattern held_reads(host.line);
  FetchPattern held_writes(host.line);
  if (work.is_warm) {
    for_each_line(work, host.line, [&](uint64_t line, bool) { last_level.access(line, false); });
  }
  for_each_line(work, host.line, [&](uint64_t line, bool is_write) {
    if (near_cache.access(line, is_write)) return;
    if (last_level.access(line, is_write)) {
      ++cost.lines_refilled;
      switch ((is_write ? held_writes : held_reads).classify(line, false)) {
        case FetchKind::streamed: ++cost.refilled_streamed; break;
        case FetchKind::strided: ++cost.refilled_strided; break;
        case FetchKind::scattered: break;
      }
      return;
    }
    switch ((is_write ? writes : reads).classify(line, line > 0 && last_level.holds(line - 1))) {
      case FetchKind::streamed: ++cost.lines_streamed; break;
      case FetchKind::strided: ++cost.lines_strided; break;
      case FetchKind::scattered: ++cost.lines_scattered; break;
    }
  });
  cost.lines_evicted = last_level.writebacks();
  last_level.flush();
  cost.line_writebacks = last_level.writebacks();
  return cost;
}

}  // namespace

HostCost host_cost(const Profile& profile, const portals::HostWork& work) {
  const auto& host = profile.host;
  HostCost cost = lines_of(profile, work);
  const Rate cycle = Rate::cycle_of(host.clock);
  if (cost.line_fetches() > 0) {
    const auto transfer_time = [&](uint64_t lines) {
      return host.memory_byte_time.time_of(Bytes{static_cast<int64_t>(lines) * host.line});
    };
    const Time fetch_wait = fetch_time(cost.lines_streamed, profile, host.streamed_in_flight) +
                            fetch_time(cost.lines_strided, profile, host.strided_in_flight) +
                            fetch_time(cost.lines_scattered, profile, host.scattered_in_flight) +
                            transfer_time(cost.lines_evicted);
    cost.lines = host.memory_latency + std::max(fetch_wait, transfer_time(cost.line_fetches() + cost.lines_evicted));
  }
  const auto refill_time = [&](uint64_t lines) { return cycle.time_of_cycles(cycles_of(lines, host.refill_cycles)); };
  uint64_t lines_at_refill_price = 0;
  const auto refill = [&](uint64_t lines, int64_t in_flight) {
    const Time prefetched = fetch_time(lines, profile, in_flight);
    if (prefetched < refill_time(lines)) {
      cost.lines += prefetched;
    } else {
      lines_at_refill_price += lines;
    }
  };
  refill(cost.refilled_streamed, host.streamed_in_flight);
  refill(cost.refilled_strided, host.strided_in_flight);
  refill(cost.lines_refilled - cost.refilled_streamed - cost.refilled_strided, host.scattered_in_flight);
  cost.lines += refill_time(lines_at_refill_price);
  cost.blocks = cycle.time_of_cycles(block_cycles(profile, work));
  if (work.kind == Kind::react) {
    cost.lines = host.memory_latency;
    cost.blocks = host.call;
  }
  if (work.kind == Kind::post) cost.blocks += host.call;
  return cost;
}

}  // namespace spinloom::simulated
