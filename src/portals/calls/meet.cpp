#include "portals/calls/meet.hpp"

#include <algorithm>

#include "portals/calls/call.hpp"
#include "portals/collective/meeting.hpp"

namespace spinloom::calls {

Status meet_all(Process& process, portals::Interface& interface, const MeetingPoint& point) {
  constexpr Time shortest{20'000'000};  // 20 us
  constexpr Time longest{1'000'000'000};
  SPL_ASSIGN(collective::Meeting meeting, collective::Meeting::begin(interface, point.portal, process.host().size(),
                                                                     point.number, point.spend_call_time));
  const WaiterScope waiter_scope(process);
  const BlockedCall blocked{.call = point.call, .purpose = "for all ranks"};
  for (Time pause = shortest;; pause = std::min(longest, pause + pause)) {
    Result<bool> has_met = meeting.step();
    for (uint32_t rank = 0; has_met && !*has_met && rank < process.host().size(); ++rank) {
      if (process.host().has_ended(rank)) has_met = collective::Meeting::error_of_gone(rank);
    }
    if (!has_met || *has_met) {
      meeting.end();
      return has_met ? Status{} : has_met.error();
    }
    {
      const BlockedScope blocked_scope(process, blocked);
      process.host().wait(process.host().port().now() + pause);
    }
    if (!process.is_aborted()) continue;
    meeting.end();
    return fail(Code::fault, point.call, ": PtlAbort was called");
  }
}

}  // namespace spinloom::calls
