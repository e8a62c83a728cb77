// The table of contexts: which are refused, which are in use, and their counts.
#include "nic/portals/context_table.hpp"

#include <gtest/gtest.h>

namespace spinloom::nic {
namespace {

constexpr ContextId id{0};

struct ContextTableTest : testing::Test {
  ContextTableTest() { given.context.payload_entry = 0; }
  Status create() { return contexts.create(given, 4, 64); }
  ContextTable contexts{1024};
  ContextCreate given{id, {}};
};

// Rules: SPIN-3.10.
TEST_F(ContextTableTest, WhatDoesNotFitTheNicIsRefused) {
  const auto refused = [&](const char* word) {
    const Status made = create();
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find(word), std::string::npos) << made.error().message;
  };
  given.context.user_header_bytes = 65;
  refused("link.payload");
  given.context.user_header_bytes = 0;
  given.context.hpus = HpuMask::range(4, 2);
  refused("mask");
  given.context.hpus = HpuMask::range(3, 2);
  given.context.state = {0, 8};
  refused("state window");
  ASSERT_TRUE(contexts.memory().allocate(64, 64).ok());
  EXPECT_TRUE(create().ok());
  EXPECT_EQ(contexts.size(), 1u);
}

TEST_F(ContextTableTest, OneInUseStays) {
  ASSERT_TRUE(create().ok());
  contexts.use_by_entry(id);
  contexts.use_by_message(id);
  contexts.use_by_message(ContextId{7});  // none
  EXPECT_FALSE(contexts.free(id).ok());
  contexts.leave_entry(id);
  EXPECT_FALSE(contexts.free(id).ok());
  contexts.leave_message(id);
  EXPECT_TRUE(contexts.free(id).ok());
  EXPECT_EQ(contexts.find(id), nullptr);
}

// Rules: SPIN-3.3.
TEST_F(ContextTableTest, MemoryOfAContextIsNotFreed) {
  const Result<uint64_t> offset = contexts.memory().allocate(64, 64);
  ASSERT_TRUE(offset.ok());
  given.context.constants = {*offset, 64};
  ASSERT_TRUE(create().ok());
  EXPECT_NE(contexts.free_memory(*offset).error().message.find("in use by context 0"), std::string::npos);
  ASSERT_TRUE(contexts.free(id).ok());
  EXPECT_TRUE(contexts.free_memory(*offset).ok());
}

TEST_F(ContextTableTest, CountsAreOfTheNicAndOfTheContext) {
  ASSERT_TRUE(create().ok());
  contexts.tally(id, Telemetry::packets, 3);
  contexts.tally(Telemetry::packets, 2);
  EXPECT_EQ(*contexts.read({Telemetry::packets, id}), 3u);
  EXPECT_EQ(*contexts.read({Telemetry::packets, {}}), 5u);
  EXPECT_FALSE(contexts.read({Telemetry::packets, ContextId{9}}).ok());
}

TEST_F(ContextTableTest, OneIsActivatedOnce) {
  given.context.active = false;
  ASSERT_TRUE(create().ok());
  EXPECT_TRUE(contexts.activate(id).ok());
  EXPECT_FALSE(contexts.activate(id).ok());
}

}  // namespace
}  // namespace spinloom::nic
