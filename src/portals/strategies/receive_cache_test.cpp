// The cache over a loopback NIC of 64 KiB: which receives stay, go, or fall back.
#include "portals/strategies/receive_cache.hpp"

#include <gtest/gtest.h>

#include "memory/layout/text.hpp"
#include "portals/testbed/loopback_testbed.hpp"

namespace spinloom::strategies {
namespace {

constexpr uint64_t nic_bytes = 1 << 16;

class ReceiveCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    nic::NicLimits limits;
    limits.nic_memory_bytes = nic_bytes;
    bed_ = std::move(*testbed::LoopbackTestbed::create(1, limits, {}));
    interface_ = &bed_->rank(0);
    const nic::QueueId queue = interface_->eq_alloc(16).value();
    const nic::PortalIndex portal = interface_->pt_alloc(queue).value();
    const testbed::TestHandlers handlers = bed_->handlers("scatter").value();
    // This test receives nothing, so any handlers will do.
    const HandlerImage image{"indexed", handlers.image, handlers.payload_entry, handlers.completion_entry, {}};
    NicFacts facts;
    facts.hpus = 4;
    facts.payload_bytes = 2048;
    facts.state_bytes = nic_bytes;
    facts.packet_buffer_bytes = 1 << 20;
    facts.packet_time = 76_ns;
    cache_ = std::make_unique<ReceiveCache>(ReceiveCache::Nic{*interface_, portal, queue, {image}, facts, {}});
  }

  ReceiveCache::Lease acquire(const layout::Type& type, TypeAttributes attributes = {}) {
    auto lease = cache_->acquire(type, 1, Strategy::specialised, attributes);
    EXPECT_TRUE(lease) << (lease ? "" : lease.error().message);
    return *lease;
  }
  void use(const layout::Type& type, TypeAttributes attributes = {}) { cache_->give_back(acquire(type, attributes)); }

  std::unique_ptr<testbed::LoopbackTestbed> bed_;
  portals::Interface* interface_ = nullptr;
  std::unique_ptr<ReceiveCache> cache_;
};

// An unordered list of 3000 offsets takes about 12 KB as a specialised plan: five fit.
layout::Type spread(int seed, int entries) {
  return layout::parse(text("idxblock(1, rand(", seed, ", 90000, ", entries, "), int)")).value();
}

TEST_F(ReceiveCacheTest, KeepsWhatWasPrepared) {
  const layout::Type type = spread(1, 3000);
  const auto first = acquire(type);
  EXPECT_EQ(first.strategy, Strategy::specialised);
  cache_->give_back(first);
  const auto again = acquire(type);
  EXPECT_EQ(again.receive, first.receive);
  cache_->give_back(again);
  EXPECT_EQ(cache_->statistics().hits, 1u);
  EXPECT_EQ(cache_->statistics().misses, 1u);
}

TEST_F(ReceiveCacheTest, EvictsTheLeastRecentlyUsed) {
  for (int seed = 1; seed <= 5; ++seed) use(spread(seed, 3000));
  EXPECT_EQ(cache_->statistics().evictions, 0u);
  use(spread(1, 3000));  // receive 2 is the oldest now
  use(spread(6, 3000));
  EXPECT_EQ(cache_->statistics().evictions, 1u);
  use(spread(1, 3000));
  EXPECT_EQ(cache_->statistics().hits, 2u);
  use(spread(2, 3000));
  EXPECT_EQ(cache_->statistics().hits, 2u) << "2 was evicted";
}

TEST_F(ReceiveCacheTest, HigherPriorityStays) {
  TypeAttributes important;
  important.priority = 1;
  use(spread(1, 3000), important);
  for (int seed = 2; seed <= 8; ++seed) use(spread(seed, 3000));
  use(spread(1, 3000), important);
  EXPECT_EQ(cache_->statistics().hits, 1u);
  EXPECT_EQ(cache_->statistics().fallbacks, 0u);
}

TEST_F(ReceiveCacheTest, FallsBackWhenAllIsInUse) {
  std::vector<ReceiveCache::Lease> leases;
  for (int seed = 1; seed <= 5; ++seed) leases.push_back(acquire(spread(seed, 3000)));
  const auto sixth = acquire(spread(6, 3000));
  EXPECT_EQ(sixth.strategy, Strategy::host_mpitypes);
  EXPECT_EQ(cache_->statistics().fallbacks, 1u);
  EXPECT_EQ(cache_->statistics().evictions, 0u);
  cache_->give_back(sixth);
  cache_->give_back(leases[0]);
  const auto retried = acquire(spread(6, 3000));
  EXPECT_EQ(retried.strategy, Strategy::specialised) << "tried on the NIC again once there is room";
  cache_->give_back(retried);
  for (size_t i = 1; i < leases.size(); ++i) cache_->give_back(leases[i]);
}

TEST_F(ReceiveCacheTest, WhatFitsNoNicEvictsNobody) {
  use(spread(1, 3000));
  const auto huge = acquire(spread(2, 20000));
  EXPECT_EQ(huge.strategy, Strategy::host_mpitypes);
  EXPECT_EQ(cache_->statistics().evictions, 0u);
  cache_->give_back(huge);
}

TEST_F(ReceiveCacheTest, WhatWouldNotFitBesideTheImportantEvictsNobody) {
  TypeAttributes important;
  important.priority = 1;
  for (int seed = 1; seed <= 2; ++seed) use(spread(seed, 3000), important);  // two fifths of the memory
  use(spread(3, 3000));
  const auto large = acquire(spread(4, 12000));  // four fifths
  EXPECT_EQ(large.strategy, Strategy::host_mpitypes);
  EXPECT_NE(large.fallback.find("memory.state_bytes"), std::string::npos) << large.fallback;
  EXPECT_EQ(cache_->statistics().evictions, 0u);
  cache_->give_back(large);
  use(spread(3, 3000));
  EXPECT_EQ(cache_->statistics().hits, 1u);
}

TEST_F(ReceiveCacheTest, ATypeMayRefuseOffload) {
  TypeAttributes attributes;
  attributes.offload = false;
  const auto lease = acquire(spread(1, 3000), attributes);
  EXPECT_EQ(lease.strategy, Strategy::host_mpitypes);
  EXPECT_EQ(cache_->nic_memory_bytes(), 0u);
  cache_->give_back(lease);
}

TEST_F(ReceiveCacheTest, GivesEverythingBack) {
  for (int seed = 1; seed <= 4; ++seed) use(spread(seed, 3000));
  EXPECT_GT(cache_->nic_memory_bytes(), 0u);
  ASSERT_TRUE(cache_->clear());
  EXPECT_EQ(cache_->nic_memory_bytes(), 0u);
  EXPECT_EQ(bed_->nic(0).state().nic_memory_used, 0u);
}

}  // namespace
}  // namespace spinloom::strategies
