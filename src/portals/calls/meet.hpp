// Meet - a barrier over all ranks of a job.
//
// Contract: meet_all() returns when all ranks have called it for the same portal table entry and number (below 256). It
//   returns an Error if a rank ends before all have come, or after PtlAbort.
// Threads: the rank's. Time: that of the host.
#pragma once

#include <functional>

#include "portals/calls/process.hpp"

namespace spinloom::calls {

struct MeetingPoint {
  const char* call = "";  // the name that reports and errors give
  nic::PortalIndex portal;
  uint32_t number = 0;  // tells meetings at one entry apart
  std::function<void()> spend_call_time;  // spends the time of a call to the NIC
};
[[nodiscard]] Status meet_all(Process& process, portals::Interface& interface, const MeetingPoint& point);

}  // namespace spinloom::calls
