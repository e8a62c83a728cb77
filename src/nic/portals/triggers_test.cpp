// Counters and triggered operations: their order, cancelling, persistent ones, and limits.
#include "nic/portals/triggers.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spinloom::nic {
namespace {

constexpr CounterId counter{0};

struct TriggersTest : testing::Test {
  TriggersTest() { EXPECT_TRUE(triggers.alloc({counter, 4}).ok()); }
  // A put that the test recognises by its match bits.
  Command put(uint64_t name, uint64_t threshold, uint64_t every = 0) {
    Put body;
    body.match_bits = name;
    return {body, Trigger{counter, threshold, every}, 0};
  }
  void wait(const Command& command) {
    ASSERT_TRUE(triggers.may_wait(command).ok());
    triggers.wait(command);
  }
  void count(uint64_t success, uint64_t failure = 0) { triggers.count(counter, {success, failure}, out); }
  std::vector<uint64_t> run() {
    std::vector<uint64_t> names;
    while (triggers.has_fired() && names.size() < 100) {
      const uint32_t slot = triggers.take_fired();
      names.push_back(std::get<Put>(triggers.command(slot).body).match_bits);
      triggers.finish_run(slot);
    }
    return names;
  }
  using Names = std::vector<uint64_t>;
  Triggers triggers{6};
  Actions out;
};

TEST_F(TriggersTest, CountsAreTold) {
  count(2, 1);
  ASSERT_EQ(out.list.size(), 1u);
  EXPECT_EQ(std::get<PostCounter>(out.list[0]).value, (CounterValue{2, 1}));
  triggers.set(counter, {7, 0}, out);
  EXPECT_EQ(triggers.value(counter), (CounterValue{7, 0}));
  triggers.count(CounterId{5}, {1, 0}, out);  // no such counter
  EXPECT_EQ(out.list.size(), 2u);
}

// Rules: P4F-15.1, P4F-15.2, P4F-15.9, P4F-15.10.
TEST_F(TriggersTest, WhatIsReachedFiresInTheOrderGiven) {
  wait(put(1, 3));
  wait(put(2, 1));
  wait(put(3, 3));
  count(1);
  EXPECT_EQ(run(), Names{2});
  count(1, 1);  // failures count, too
  EXPECT_EQ(run(), (Names{1, 3}));
  EXPECT_EQ(triggers.size(), 0u);
}

TEST_F(TriggersTest, FailuresLetNothingGoWhereOnlySuccessesDo) {
  ASSERT_TRUE(triggers.free(counter).ok());
  ASSERT_TRUE(triggers.alloc({counter, 4, true}).ok());
  wait(put(1, 2));
  count(1, 5);
  EXPECT_EQ(run(), Names{});
  count(1);
  EXPECT_EQ(run(), Names{1});
}

// Rules: P4F-15.3.
TEST_F(TriggersTest, OneThatIsReachedAlreadyFiresAtOnce) {
  count(5);
  wait(put(1, 5));
  EXPECT_EQ(run(), Names{1});
}

TEST_F(TriggersTest, APersistentOneComesAgain) {
  wait(put(1, 2, 2));
  count(5);
  EXPECT_EQ(run(), (Names{1, 1}));  // it comes at 2 and at 4
  count(1);
  EXPECT_EQ(run(), Names{1});
  EXPECT_EQ(triggers.size(), 1u);
}

TEST_F(TriggersTest, LimitsAreNamed) {
  for (uint64_t name = 0; name < 4; ++name) wait(put(name, 100));
  EXPECT_NE(triggers.may_wait(put(4, 100)).error().message.find("max_triggered_ops"), std::string::npos);
  const Command increment{CounterInc{counter, {1, 0}}, Trigger{counter, 100}, 0};
  wait(increment);
  wait(increment);
  EXPECT_NE(triggers.may_wait(increment).error().message.find("triggered_commands"), std::string::npos);
}

// Rules: P4F-10.20, P4F-10.22.
TEST_F(TriggersTest, CancellingForgetsWhatWaitsAndEndsItsDescriptors) {
  const DescriptorRef descriptor = Descriptor::make();
  descriptor->begin();
  Command command = put(1, 3);
  std::get<Put>(command.body).descriptor = descriptor;
  wait(command);
  ASSERT_TRUE(triggers.cancel(counter).ok());
  EXPECT_FALSE(descriptor->in_use());
  count(10);
  EXPECT_TRUE(run().empty());
}

TEST_F(TriggersTest, ACancelledOneThatHasFiredRunsOnceMore) {
  wait(put(1, 1, 1));
  count(1);
  ASSERT_TRUE(triggers.cancel(counter).ok());
  EXPECT_EQ(run(), Names{1});
  count(5);
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(triggers.size(), 0u);
}

TEST_F(TriggersTest, ACounterThatResetsItselfStartsAPersistentOneOnceARound) {
  ASSERT_TRUE(triggers.auto_reset({counter, 2}).ok());
  EXPECT_FALSE(triggers.may_wait(put(1, 3)).ok());  // the counter never reaches the threshold
  wait(put(1, 1, 1));
  count(1);
  EXPECT_EQ(run(), Names{1});
  count(1);  // the round ends
  EXPECT_EQ(triggers.value(counter), CounterValue{});
  EXPECT_TRUE(run().empty());
  count(1);
  EXPECT_EQ(run(), Names{1});
}

TEST_F(TriggersTest, OnlyACounterThatNothingWaitsForJustAdds) {
  EXPECT_TRUE(triggers.only_adds(counter));
  EXPECT_EQ(triggers.add(counter, 3), (CounterValue{3, 0}));
  wait(put(1, 9));
  EXPECT_FALSE(triggers.only_adds(counter));
  EXPECT_FALSE(triggers.only_adds(CounterId{3}));
}

}  // namespace
}  // namespace spinloom::nic
