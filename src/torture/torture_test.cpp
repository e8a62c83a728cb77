// Runs each kind of exchange for some seeds, so that sanitizers see them all; checks replay, and the errors of
// configurations. The scenarios themselves run in tests/torture/test_torture.py.
#include <gtest/gtest.h>

#include <set>

#include "torture/region.hpp"
#include "torture/run.hpp"

namespace spinloom::torture {
namespace {

Config faulty() {
  Config config;
  config.ranks = 3;
  config.messages = 50;
  config.drop = 40;
  config.duplicate = 40;
  config.reorder = 80;
  config.corrupt = 20;
  return config;
}

class EveryWork : public testing::TestWithParam<size_t> {};

TEST_P(EveryWork, KeepsItsPromises) {
  Config config = faulty();
  config.weights[GetParam()] = 1;
  const auto work = static_cast<Work>(GetParam());
  // These alone send nothing to the NIC.
  if (work == Work::frame_host || work == Work::frame_change) config.weights[static_cast<size_t>(Work::frame_echo)] = 1;
  FaultCounts faults{};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcome outcome = run(config, seed);
    ASSERT_EQ(outcome.violation, "") << "seed " << seed;
    EXPECT_GE(outcome.messages, 50u);
    for (size_t i = 0; i < fault_count; ++i) faults[i] += outcome.faults[i];
  }
  for (const Fault fault : {Fault::drop, Fault::duplicate, Fault::reorder, Fault::corrupt}) {
    EXPECT_GT(count_of(faults, fault), 0u) << name_of(fault);
  }
}

INSTANTIATE_TEST_SUITE_P(Torture, EveryWork, testing::Range(size_t{0}, work_count),
                         [](const auto& work) { return std::string(name_of(static_cast<Work>(work.param))); });

TEST(Torture, ARankDies) {
  Config config = faulty();
  config.dead = 1;
  config.weights[static_cast<size_t>(Work::put)] = 2;
  config.weights[static_cast<size_t>(Work::get)] = 1;
  config.weights[static_cast<size_t>(Work::fetch_atomic)] = 1;
  uint64_t died = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Outcome outcome = run(config, seed);
    ASSERT_EQ(outcome.violation, "") << "seed " << seed;
    died += count_of(outcome.faults, Fault::peer_dead);
  }
  EXPECT_GT(died, 10u);
}

TEST(Torture, TheSameSeedIsTheSameRun) {
  for (const bool frames : {false, true}) {
    Config config = faulty();
    for (size_t work = 0; work < work_count; ++work) {
      config.weights[work] = (static_cast<Work>(work) >= first_frame_work) == frames ? 1 : 0;
    }
    config.weights[static_cast<size_t>(Work::forward)] = 0;  // forward.cpp says why
    std::set<uint64_t> hashes;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Outcome once = run(config, seed);
      const Outcome again = run(config, seed);
      EXPECT_EQ(once.hash, again.hash);
      EXPECT_EQ(once.steps, again.steps);
      hashes.insert(once.hash);
    }
    EXPECT_EQ(hashes.size(), 10u);
  }
}

TEST(Torture, WhatAConfigurationMaySay) {
  Config config;
  EXPECT_FALSE(check(config).ok()) << "no work";
  EXPECT_TRUE(config.set("work.put", 3).ok());
  EXPECT_TRUE(check(config).ok());
  EXPECT_TRUE(config.set("work.frame_echo", 1).ok());
  EXPECT_NE(check(config).error().message.find("NICs of different kinds"), std::string::npos);
  EXPECT_NE(config.set("ranks", 9).error().message.find("2 to 8"), std::string::npos);
  EXPECT_NE(config.set("wrok.put", 5).error().message.find("there are: ranks"), std::string::npos);
}

TEST(Region, SeesEveryByte) {
  Region region(10);
  EXPECT_TRUE(region.check("r").ok());
  for (int64_t at = -static_cast<int64_t>(Region::guard_bytes); at < 10 + static_cast<int64_t>(Region::guard_bytes);
       ++at) {
    region.data()[at] ^= 1;
    EXPECT_NE(region.check("r").error().message.find(text("byte ", at)), std::string::npos);
    region.data()[at] ^= 1;
  }
  const uint8_t bytes[] = {1, 2, 3};
  region.expect(4, bytes, 3);
  EXPECT_FALSE(region.check("r").ok()) << "they have not come";
  region.spoil();
  EXPECT_TRUE(region.check("r").ok());
}

}  // namespace
}  // namespace spinloom::torture
