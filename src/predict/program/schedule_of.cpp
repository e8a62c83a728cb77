#include "predict/program/schedule_of.hpp"

#include <algorithm>
#include <utility>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

MessageCost Costs::message_cost(uint64_t bytes) const {
  if (message_costs.empty()) return {};
  if (message_costs.size() == 1 || bytes <= message_costs.front().bytes) return message_costs.front();
  size_t upper_index = 1;
  while (upper_index + 1 < message_costs.size() && message_costs[upper_index].bytes < bytes) ++upper_index;
  const MessageCost& lower = message_costs[upper_index - 1];
  const MessageCost& upper = message_costs[upper_index];
  const auto interpolate = [&](uint64_t from, uint64_t to) {
    const auto slope = static_cast<__int128>(to) - static_cast<__int128>(from);
    const __int128 value = static_cast<__int128>(from) + slope * static_cast<__int128>(bytes - lower.bytes) /
                                                             static_cast<__int128>(upper.bytes - lower.bytes);
    return static_cast<uint64_t>(std::max<__int128>(value, 0));
  };
  return {bytes, interpolate(lower.send_cpu_ps, upper.send_cpu_ps),
          interpolate(lower.receive_cpu_ps, upper.receive_cpu_ps),
          interpolate(lower.extra_latency_ps, upper.extra_latency_ps)};
}

Result<PricedSchedule> schedule_of(const Script& script, const Costs& costs, const LateReceives& late) {
  PricedSchedule priced{schedule::Schedule(static_cast<uint32_t>(script.ranks.size())), {}, {}, {}};
  priced.bills.resize(script.ranks.size());
  priced.receives.resize(script.ranks.size());
  priced.waits.resize(script.ranks.size());
  LayoutNumbers layouts(script.layouts, priced.schedule);
  for (uint32_t rank = 0; rank < script.ranks.size(); ++rank) {
    const RankScript& rank_script = script.ranks[rank];
    const auto highest_tag = std::ranges::max_element(rank_script.legs, {}, &Leg::tag);
    if (highest_tag != rank_script.legs.end() && highest_tag->tag > tags_max) {
      return fail(Code::overflow, "the program has ", highest_tag->tag, " different tags; at most ", tags_max,
                  " fit into a schedule");
    }
    const std::vector<bool>* const late_legs = late.empty() ? nullptr : &late[rank];
    RankEmitter emitter(rank_script, costs, late_legs, layouts, priced.schedule, priced.bills[rank],
                        priced.receives[rank], priced.waits[rank]);
    priced.schedule.intern(rank, emitter.emit());
  }
  return priced;
}

}  // namespace spinloom::predict
