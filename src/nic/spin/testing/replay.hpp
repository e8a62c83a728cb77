// Test support - the seed of random tests, and the sentence that says how to replay one.
//
// Threads: any. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/random.hpp"
#include "base/result.hpp"

namespace spinloom::spin {

inline uint64_t test_seed() {
  const char* given = std::getenv("SPINLOOM_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 0);
}
// `floor`: whose tests these are.
inline std::string replay(uint64_t seed, const char* floor = "spin") {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return text("replay: SPINLOOM_TEST_SEED=", seed, " spinloom_", floor,
              "_test --gtest_filter=", test->test_suite_name(), ".", test->name());
}

}  // namespace spinloom::spin
