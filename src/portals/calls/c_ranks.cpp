// Ranks as threads of one process.
#include <atomic>

#include "portals/calls/ranks.hpp"
#include "portals4_spin.h"

namespace spinloom::ptl {
namespace {

std::atomic<const Ranks*> served{nullptr};

}  // namespace

void serve_ranks(const Ranks& ranks) { served = &ranks; }

}  // namespace spinloom::ptl

extern "C" {

int PtlSpinRanks(unsigned int count) {
  const auto* const ranks = spinloom::ptl::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->split(count);
}

int PtlSpinRankEnter(unsigned int number) {
  const auto* const ranks = spinloom::ptl::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->enter(number);
}

int PtlSpinRankEnd() {
  const auto* const ranks = spinloom::ptl::served.load();
  return ranks == nullptr ? static_cast<int>(PTL_FAIL) : ranks->end();
}

}  // extern "C"
