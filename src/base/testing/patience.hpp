// Patience - the time that tests wait for what must happen.
//
// Contract: patient(limit) is a test's time limit, made longer by the factor SPINLOOM_TEST_PATIENCE where the
//   environment sets one, for machines that are slow or busy. tests/patience.py does the same for Python. Only tests
//   and testbeds include this.
// Threads: any. Time: none; the caller has the clock.
#pragma once

#include <chrono>
#include <cstdlib>

#include "base/units.hpp"

namespace spinloom {

inline double patience_factor() {
  const char* const variable = std::getenv("SPINLOOM_TEST_PATIENCE");
  const double factor = variable == nullptr ? 1.0 : std::strtod(variable, nullptr);
  return factor > 0 ? factor : 1.0;
}

inline std::chrono::milliseconds patient(std::chrono::milliseconds limit) {
  return std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(limit.count()) * patience_factor()));
}

inline Time patient(Time limit) { return {static_cast<int64_t>(static_cast<double>(limit.ps) * patience_factor())}; }

}  // namespace spinloom
