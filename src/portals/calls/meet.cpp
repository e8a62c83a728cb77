#include "portals/calls/meet.hpp"

#include <algorithm>

#include "portals/calls/call.hpp"
#include "portals/collective/meeting.hpp"

namespace spinloom::calls {

Status meet_all(Process& process, portals::Interface& interface, const Place& place) {
  constexpr Time shortest{20'000'000};  // 20 us
  constexpr Time longest{1'000'000'000};
  SPL_ASSIGN(collective::Meeting meeting,
             collective::Meeting::begin(interface, place.portal, process.host().size(), place.number, place.spend));
  const Waiter waiter(process);
  const Blocked blocked{.call = place.call, .words = "for all ranks"};
  for (Time pause = shortest;; pause = std::min(longest, pause + pause)) {
    Result<bool> all = meeting.step();
    for (uint32_t rank = 0; all && !*all && rank < process.host().size(); ++rank) {
      if (process.host().has_ended(rank)) all = collective::Meeting::gone(rank);
    }
    if (!all || *all) {
      meeting.end();
      return all ? Status{} : all.error();
    }
    {
      const Blocking waits(process, blocked);
      process.host().wait(process.host().port().now() + pause);
    }
    if (!process.aborted()) continue;
    meeting.end();
    return fail(Code::fault, place.call, ": PtlAbort was called");
  }
}

}  // namespace spinloom::calls
