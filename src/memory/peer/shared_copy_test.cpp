// A copy that two ends share: each part is copied once, whatever a peer writes.
#include "memory/peer/shared_copy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace spinloom::peer {
namespace {

struct Ends {
  std::unique_ptr<SharedCopyMemory> memory = std::make_unique<SharedCopyMemory>();
  SharedCopy receiver{*memory};
  CopyHelper helper{*memory};
};

uint64_t address(const std::vector<uint8_t>& bytes) { return reinterpret_cast<uint64_t>(bytes.data()); }

void copy(const CopyPart& part) {
  std::memcpy(reinterpret_cast<void*>(part.to), reinterpret_cast<const void*>(part.from), part.length);
}

TEST(SharedCopy, EveryPartIsTakenOnceByOneOfBoth) {
  Ends ends;
  EXPECT_FALSE(ends.helper.take()) << "there is no copy yet";
  ends.receiver.begin({1000, 5000, 10}, 4);
  const auto first = ends.helper.take();
  const auto second = ends.receiver.take();
  const auto third = ends.helper.take();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->from, 1000u);
  EXPECT_EQ(first->length, 4u);
  EXPECT_EQ(second->to, 5004u);
  EXPECT_EQ(third->from, 1008u);
  EXPECT_EQ(third->length, 2u) << "the last one ends where the copy does";
  EXPECT_FALSE(ends.receiver.take());
  EXPECT_FALSE(ends.helper.take());
  EXPECT_FALSE(ends.receiver.is_helper_done());
  ends.helper.report(true);
  EXPECT_FALSE(ends.receiver.is_helper_done());
  ends.helper.report(false);
  EXPECT_TRUE(ends.receiver.is_helper_done());
  EXPECT_TRUE(ends.receiver.has_failed());
  ends.receiver.end();
  ends.receiver.begin({1000, 5000, 10}, 10);
  EXPECT_FALSE(ends.receiver.has_failed()) << "a new copy";
  ends.receiver.take_remaining();
  EXPECT_FALSE(ends.helper.take());
  EXPECT_TRUE(ends.receiver.is_helper_done());
}

TEST(SharedCopy, TwoThreadsCopyEveryByteOfEveryCopy) {
  Ends ends;
  std::atomic<bool> over{false};
  uint64_t helped = 0;
  std::thread helper([&] {
    while (!over) {
      if (const auto part = ends.helper.take()) {
        copy(*part);
        ends.helper.report(true);
        ++helped;
      }
    }
  });
  Random random(1, "shared copy");
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t length = 1 + random.below(600);
    std::vector<uint8_t> from(length), to(length, 0);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(random.next() | 1);
    ends.receiver.begin({address(from), address(to), length}, 1 + random.below(100));
    while (const auto part = ends.receiver.take()) copy(*part);
    while (!ends.receiver.is_helper_done()) std::this_thread::yield();
    ends.receiver.end();
    ASSERT_EQ(to, from) << "round " << round;
  }
  over = true;
  helper.join();
  RecordProperty("parts_of_the_helper", static_cast<int>(helped));
}

TEST(SharedCopy, TheReceiversLoopsEndWhateverThePeerWrites) {
  Ends ends;
  ends.receiver.begin({1000, 5000, 100}, 10);
  int taken = 0;
  while (ends.receiver.take()) {
    ends.memory->next = uint64_t{1} << 32;  // the first part, again and again
    ASSERT_LE(++taken, 10);
  }
  EXPECT_TRUE(ends.receiver.is_helper_done());
  ends.receiver.end();
  ends.receiver.begin({1000, 5000, 100}, 10);
  ends.memory->next = 0;  // a copy that never began
  EXPECT_FALSE(ends.receiver.take());
  EXPECT_FALSE(ends.receiver.is_helper_done()) << "what a peer says it has taken, it must end";
}

TEST(SharedCopy, AHelperTakesNothingFromNonsense) {
  Ends ends;
  const auto say = [&](uint64_t next, uint64_t length, uint64_t part_bytes) {
    ends.memory->next = next;
    ends.memory->length = length;
    ends.memory->part_bytes = part_bytes;
    return ends.helper.take();
  };
  EXPECT_FALSE(say(0, 100, 0));
  EXPECT_FALSE(say(0, 0, 100));
  EXPECT_FALSE(say(10, 100, 10));
  EXPECT_FALSE(say(UINT64_MAX, UINT64_MAX, 1));
  const auto last = say(UINT32_MAX - 1, UINT64_MAX, UINT64_MAX / (UINT32_MAX - 1));
  ASSERT_TRUE(last);
  EXPECT_LE(last->length, UINT64_MAX / (UINT32_MAX - 1));
}

}  // namespace
}  // namespace spinloom::peer
