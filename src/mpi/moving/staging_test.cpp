// Tests which buffers Staging gives to the packed bytes of messages.
#include "mpi/moving/staging.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spinloom::mpi {
namespace {

// The different buffers of `messages` messages, each of which is taken before the next one comes.
size_t buffers(Staging& staging, int messages, uint64_t bytes) {
  std::set<uint8_t*> seen;
  for (int i = 0; i < messages; ++i) {
    const Staging::Buffer buffer = staging.take(bytes);
    EXPECT_NE(buffer.start, nullptr);
    seen.insert(buffer.start);
    staging.give_back(buffer);
  }
  return seen.size();
}

TEST(Staging, ShortMessagesTakeTurnsWhereThereIsRoom) {
  struct Case {
    int64_t limit;
    uint64_t bytes;
    size_t wanted;
  };
  for (const Case& one : {Case{4 << 20, 16 << 10, 8}, Case{4 << 20, 200 << 10, 1}, Case{100 << 10, 16 << 10, 1}}) {
    Staging staging;
    staging.set_limit(one.limit);
    EXPECT_EQ(buffers(staging, 100, one.bytes), one.wanted) << one.bytes << " B of " << one.limit;
  }
}

TEST(Staging, TheLimitHoldsAndIdleBuffersMakeRoom) {
  Staging staging;
  staging.set_limit(1 << 20);
  EXPECT_EQ(buffers(staging, 100, 16 << 10), 8U);
  const Staging::Buffer large = staging.take(1 << 20);
  ASSERT_NE(large.start, nullptr);
  EXPECT_EQ(staging.take(1).start, nullptr);
  staging.give_back(large);
  EXPECT_NE(staging.take(1).start, nullptr);
}

TEST(Staging, LongMessagesThatWillHardlyBePackedHaveALimitOfTheirOwn) {
  Staging staging;
  staging.set_limit(4 << 20);
  EXPECT_EQ(staging.take(32 << 20).start, nullptr);
  const Staging::Buffer one = staging.reserve(32 << 20);
  const Staging::Buffer two = staging.reserve(32 << 20);
  ASSERT_TRUE(one.start != nullptr && two.start != nullptr);
  EXPECT_EQ(staging.reserve(1 << 20).start, nullptr);
  const Staging::Buffer short_one = staging.reserve(1000);
  EXPECT_NE(short_one.start, nullptr);
  staging.give_back(one);
  staging.give_back(short_one);
  EXPECT_NE(staging.reserve(32 << 20).start, nullptr);
  EXPECT_NE(staging.take(4 << 20).start, nullptr) << "idle buffers make room, and reserved ones take none";
}

}  // namespace
}  // namespace spinloom::mpi
