#include "predict/program/schedule_of.hpp"

#include <algorithm>
#include <utility>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

MessageCost Costs::at(uint64_t bytes) const {
  if (messages.empty()) return {};
  if (messages.size() == 1 || bytes <= messages.front().bytes) return messages.front();
  size_t right = 1;
  while (right + 1 < messages.size() && messages[right].bytes < bytes) ++right;
  const MessageCost& low = messages[right - 1];
  const MessageCost& high = messages[right];
  const auto between = [&](uint64_t from, uint64_t to) {
    const auto slope = static_cast<__int128>(to) - static_cast<__int128>(from);
    const __int128 found = static_cast<__int128>(from) + slope * static_cast<__int128>(bytes - low.bytes) /
                                                             static_cast<__int128>(high.bytes - low.bytes);
    return static_cast<uint64_t>(std::max<__int128>(found, 0));
  };
  return {bytes, between(low.send_cpu_ps, high.send_cpu_ps), between(low.receive_cpu_ps, high.receive_cpu_ps),
          between(low.way_ps, high.way_ps)};
}

Result<Priced> schedule_of(const Script& script, const Costs& costs, const LateReceives& late) {
  Priced made{schedule::Schedule(static_cast<uint32_t>(script.ranks.size())), {}, {}, {}};
  made.bills.resize(script.ranks.size());
  made.receives.resize(script.ranks.size());
  made.waits.resize(script.ranks.size());
  LayoutNumbers layouts(script.layouts, made.schedule);
  for (uint32_t rank = 0; rank < script.ranks.size(); ++rank) {
    const RankScript& one = script.ranks[rank];
    const auto highest = std::ranges::max_element(one.legs, {}, &Leg::tag);
    if (highest != one.legs.end() && highest->tag > tags_most) {
      return fail(Code::overflow, "the program has ", highest->tag, " different tags; at most ", tags_most,
                  " fit into a schedule");
    }
    const std::vector<bool>* const found = late.empty() ? nullptr : &late[rank];
    RankEmitter emitter(one, costs, found, layouts, made.schedule, made.bills[rank], made.receives[rank],
                        made.waits[rank]);
    made.schedule.intern(rank, emitter.emit());
  }
  return made;
}

}  // namespace spinloom::predict
