// Standstill - ends a run in which modelled time stands still, because a rank computes and makes no call.
//
// Contract: watch_for_standstill() looks at the thread that calls it, by that thread's processor time. When one rank
//   has computed for `limit_s` seconds while modelled time stood still, the run ends with a sentence that names the
//   rank, its function and its latest call. If the limit is above 10 s, a line on standard error warns after 10 s. 0:
//   no limit and no line.
// Invariants: (1) only the running rank is ever blamed, however long the host takes; (2) a run that does not reach
//   the limit is not changed; (3) the handler takes no memory and no lock, because it may interrupt code that holds
//   them.
// Threads: the job's. Time: that thread's processor time, for this purpose only.
#pragma once

#include <cstdint>

namespace spinloom::job {

void watch_for_standstill(uint32_t limit_s);

}  // namespace spinloom::job
