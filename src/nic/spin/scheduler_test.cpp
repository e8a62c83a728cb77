// The scheduler of HPUs: order of readiness, masks, virtual HPUs, and random work.
#include "nic/spin/scheduler.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/random.hpp"
#include "nic/spin/testing/replay.hpp"

namespace spinloom::spin {
namespace {

constexpr ContextId plain{0};
constexpr ContextId masked{1};
constexpr ContextId rows{2};

struct SchedulerTest : testing::Test {
  SchedulerTest() {
    scheduler.add(plain, std::nullopt, 0);
    scheduler.add(masked, HpuMask::range(2, 1), 0);
    scheduler.add(rows, std::nullopt, 2);
  }
  void expect_next(uint32_t her, uint32_t hpu) {
    const auto start = scheduler.next();
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->her, HerId{her});
    EXPECT_EQ(start->hpu, HpuId{hpu});
  }
  Scheduler scheduler{3};
};

// Rules: FPS-51.
TEST_F(SchedulerTest, RunsInOrderOfReadinessOnTheLowestIdleHpu) {
  for (uint32_t her = 0; her < 5; ++her) scheduler.ready(HerId{her}, plain, {});
  expect_next(0, 0);
  expect_next(1, 1);
  expect_next(2, 2);
  EXPECT_EQ(scheduler.hpus_busy(), 3u);
  EXPECT_FALSE(scheduler.next().has_value());
  EXPECT_FALSE(scheduler.ended({HpuId{1}, plain, {}}).has_value());
  expect_next(3, 1);
}

// Rules: FPS-66.
TEST_F(SchedulerTest, OneThatWaitsForItsMaskLetsOthersPass) {
  scheduler.ready(HerId{0}, masked, {});
  scheduler.ready(HerId{1}, masked, {});
  scheduler.ready(HerId{2}, plain, {});
  expect_next(0, 2);
  expect_next(2, 0);
  EXPECT_FALSE(scheduler.next().has_value());  // HPU 1 is idle, but not in the mask
  EXPECT_FALSE(scheduler.ended({HpuId{2}, masked, {}}).has_value());
  expect_next(1, 2);
}

TEST_F(SchedulerTest, AVirtualHpuKeepsItsHpuWhileItHasWork) {
  const VhpuId first{0};
  const VhpuId second{1};
  scheduler.ready(HerId{0}, rows, first);
  scheduler.ready(HerId{1}, rows, first);
  scheduler.ready(HerId{2}, rows, second);
  expect_next(0, 0);
  expect_next(2, 1);
  EXPECT_FALSE(scheduler.next().has_value());  // HER 1 waits for its virtual HPU
  EXPECT_EQ(scheduler.ended({HpuId{0}, rows, first}), HerId{1});
  EXPECT_EQ(scheduler.hpus_busy(), 2u);
  EXPECT_FALSE(scheduler.ended({HpuId{0}, rows, first}).has_value());
  scheduler.ready(HerId{3}, rows, first);
  expect_next(3, 0);
}

// Handlers of 10 cycles each on one HPU.
TEST(Scheduler, AContextThatWasWithoutWorkGetsNoCreditForThatTime) {
  constexpr ContextId busy{0};
  constexpr ContextId late{1};
  Scheduler scheduler(1, Fairness::by_cycles);
  scheduler.add(busy, std::nullopt, 0);
  scheduler.add(late, std::nullopt, 0);
  uint32_t her = 0;
  const auto run = [&](ContextId wanted) {
    const auto start = scheduler.next();
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->her.value % 2, wanted.value) << "HER " << start->her;
    scheduler.charge(wanted, 10);
    EXPECT_FALSE(scheduler.ended({start->hpu, wanted, {}}).has_value());
  };
  const auto ready = [&](ContextId context) { scheduler.ready(HerId{2 * her++ + context.value}, context, {}); };
  for (int i = 0; i < 20; ++i) ready(busy);
  for (int i = 0; i < 10; ++i) run(busy);
  for (int i = 0; i < 5; ++i) ready(late);  // the two take turns from here on
  run(late);
  for (int i = 0; i < 4; ++i) {
    run(busy);
    run(late);
  }
  run(busy);
}

// Compares with a model that keeps everything in plain lists.
TEST(Scheduler, RandomWorkEndsAndEachHpuRunsOneAtATime) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  constexpr uint32_t hpus = 4;
  Scheduler scheduler(hpus);
  scheduler.add(plain, std::nullopt, 0);
  scheduler.add(masked, HpuMask::range(1, 2), 0);
  scheduler.add(rows, std::nullopt, 3);
  struct Work {
    ContextId context;
    VhpuId vhpu;
  };
  std::map<uint32_t, Work> work;                    // the key is the HER
  std::map<uint32_t, uint32_t> running;             // HPU -> HER
  std::map<uint32_t, std::deque<uint32_t>> in_row;  // virtual HPU -> HERs in order of readiness
  uint32_t given = 0;
  uint32_t begun = 0;
  const auto begin = [&](uint32_t her, uint32_t hpu) {
    ++begun;
    ASSERT_TRUE(running.emplace(hpu, her).second) << "HPU " << hpu << " runs " << running[hpu];
    const Work& one = work.at(her);
    if (one.context == masked) {
      EXPECT_TRUE(HpuMask::range(1, 2).holds(hpu));
    }
    if (one.context == rows) {
      EXPECT_EQ(in_row[one.vhpu.value].front(), her);
      in_row[one.vhpu.value].pop_front();
      for (const auto& [other_hpu, other] : running) {
        const Work& beside = work.at(other);
        EXPECT_FALSE(other != her && beside.context == rows && beside.vhpu == one.vhpu) << "HPU " << other_hpu;
      }
    }
  };
  for (int step = 0; step < 20000; ++step) {
    if (random.below(2) == 0 && given - begun < 40) {
      const uint32_t her = given++;
      const auto context = static_cast<uint32_t>(random.below(3));
      Work one{ContextId{context}, context == 2 ? VhpuId{static_cast<uint32_t>(random.below(3))} : VhpuId{}};
      work[her] = one;
      if (one.vhpu.exists()) in_row[one.vhpu.value].push_back(her);
      scheduler.ready(HerId{her}, one.context, one.vhpu);
    } else if (!running.empty()) {
      auto chosen = running.begin();
      std::advance(chosen, static_cast<long>(random.below(running.size())));
      const auto [hpu, her] = *chosen;
      running.erase(chosen);
      const Work& one = work.at(her);
      if (const auto next = scheduler.ended({HpuId{hpu}, one.context, one.vhpu})) begin(next->value, hpu);
    }
    while (const auto start = scheduler.next()) begin(start->her.value, start->hpu.value);
    ASSERT_EQ(scheduler.hpus_busy(), running.size());
  }
  while (!running.empty()) {
    const auto [hpu, her] = *running.begin();
    running.erase(running.begin());
    const Work& one = work.at(her);
    if (const auto next = scheduler.ended({HpuId{hpu}, one.context, one.vhpu})) begin(next->value, hpu);
    while (const auto start = scheduler.next()) begin(start->her.value, start->hpu.value);
  }
  EXPECT_EQ(begun, given);
  EXPECT_GT(given, 1000u);
}

}  // namespace
}  // namespace spinloom::spin
