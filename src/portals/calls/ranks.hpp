// Ranks - what a driver does for programs whose threads are ranks.
//
// Contract: serve_ranks() sets the functions that do PtlSpinRanks, PtlSpinRankEnter and PtlSpinRankEnd; `ranks` must
//   live from then on. Without it these calls return PTL_FAIL, as for a driver that makes ranks in other ways.
// Threads: any. Time: none.
#pragma once

namespace spinloom::calls {

struct Ranks {
  int (*split)(unsigned int count);
  int (*enter)(unsigned int number);
  int (*end)();
};

void serve_ranks(const Ranks& ranks);

}  // namespace spinloom::calls
