// Place - the place of a rank's program when a signal interrupts it: its function, and its latest Portals call.
//
// Contract: place_of() names the program's function that `context` (the third argument of a signal's handler) was taken
//   in, as ", in main()"; empty outside of the program, as in a library. last_call_of() is the rank's latest call of
//   Portals, or "none". Neither takes memory or a lock, so that a handler may call them.
// Threads: the job's. Time: none.
#pragma once

#include "simulated/job/job.hpp"

namespace spinloom::job {

struct PlaceText {
  char text[512] = "";
};

[[nodiscard]] PlaceText place_of(const Job& job, const Rank& rank, const void* context);
[[nodiscard]] const char* last_call_of(const Rank& rank);
[[nodiscard]] inline double microseconds(Time time) { return static_cast<double>(time.ps) / 1e6; }

}  // namespace spinloom::job
