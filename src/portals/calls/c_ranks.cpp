// Ranks as threads of one process.
#include <atomic>

#include "portals/calls/ranks.hpp"
#include "portals4_spin.h"

namespace spinloom::calls {
namespace {

std::atomic<const Ranks*> served{nullptr};

}  // namespace

void serve_ranks(const Ranks& ranks) { served = &ranks; }

}  // namespace spinloom::calls

extern "C" {

int PtlSpinRanks(unsigned int count) {
  const auto* const ranks = spinloom::calls::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->split(count);
}

int PtlSpinRankEnter(unsigned int number) {
  const auto* const ranks = spinloom::calls::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->enter(number);
}

int PtlSpinRankEnd() {
  const auto* const ranks = spinloom::calls::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->end();
}

}  // extern "C"
