// Ranks - what a driver does for programs whose threads are ranks.
//
// Contract: serve_ranks() says how the calls PtlSpinRanks, PtlSpinRankEnter and PtlSpinRankEnd are answered. Without it
//   they answer PTL_FAIL: a driver that has other ways to make ranks.
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
