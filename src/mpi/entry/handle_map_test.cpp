// The map of handles against std::unordered_map, and an empty one.
#include "mpi/entry/handle_map.hpp"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/random.hpp"

namespace spinloom::mpi {
namespace {

TEST(HandleMap, DoesWhatAMapDoes) {
  HandleMap<int> map;
  std::unordered_map<uint64_t, int> plain;
  Random random(7);
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t key = random.below(300) * 0x1'0000'0000;  // handles differ in few bits
    if (random.below(3) == 0) {
      EXPECT_EQ(map.erase(key), plain.erase(key) == 1);
    } else {
      map.put(key, step);
      plain[key] = step;
    }
    const uint64_t asked = random.below(300) * 0x1'0000'0000;
    const int* const found = map.find(asked);
    ASSERT_EQ(found != nullptr, plain.contains(asked)) << "step " << step;
    if (found != nullptr) {
      ASSERT_EQ(*found, plain[asked]);
    }
    ASSERT_EQ(map.size(), plain.size());
  }
}

TEST(HandleMap, FindsNothingInAnEmptyOne) {
  HandleMap<int> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(5), nullptr);
  EXPECT_FALSE(map.erase(5));
}

}  // namespace
}  // namespace spinloom::mpi
