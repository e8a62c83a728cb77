// Random tests that repeat by their seed.
//
// Contract: for_seeds() runs a body for `trials` fixed seeds, or only for that in the environment variable
//   SPINLOOM_TEST_SEED, and ends with the first seed that fails; a failure prints the command that replays it.
//   SPINLOOM_TEST_CASES: how many times as many seeds. Only tests include this.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "base/random.hpp"
#include "base/result.hpp"

namespace spinloom {

template <class Body>
void for_seeds(uint64_t trials, Body&& body) {
  const char* const chosen = std::getenv("SPINLOOM_TEST_SEED");
  const char* const cases = std::getenv("SPINLOOM_TEST_CASES");
  const uint64_t first = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 1;
  if (cases != nullptr) trials *= std::strtoull(cases, nullptr, 10);
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  for (uint64_t seed = first; seed < first + (chosen != nullptr ? 1 : trials); ++seed) {
    SCOPED_TRACE(text("replay: SPINLOOM_TEST_SEED=", seed, " ", program_invocation_short_name,
                      " --gtest_filter=", info->test_suite_name(), ".", info->name()));
    Random random(seed, info->name());
    body(random);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace spinloom
