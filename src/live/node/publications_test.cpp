// An owner waits for running peers that are inside of its gates, gives up on stopped ones, and throws ended ones out.
#include "live/node/publications.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::live {
namespace {

using Gate = DirectGate<SharedWord>;

// Hands the engine's questions to the publications, as Node does.
class Asked final : public nic::Publisher {
 public:
  explicit Asked(Publications& publications) : publications_(publications) {}
  [[nodiscard]] bool close(nic::PortalIndex portal) override { return publications_.close(portal); }
  void note_change(nic::PortalIndex portal) override { publications_.note_change(portal); }

 private:
  Publications& publications_;
};

class PublicationsTest : public testing::Test {
 protected:
  static constexpr uint64_t number = 1;  // the first record's

  void SetUp() override {
    auto segment = Segment::create(0, 3, {1, 2});
    ASSERT_TRUE(segment.ok()) << segment.error().message;
    segment_ = std::move(*segment);
    publications_.emplace(segment_, 3, [this](uint32_t rank) { return ended_.contains(rank); });
    asked_.emplace(*publications_);
    bench_.nic.set_publisher(*asked_);
    nic::Entry entry = bench_.entry(5);
    entry.options.event_comm_disable = true;
    bench_.append(entry);
    publications_->refresh(bench_.nic);
    ASSERT_TRUE(enter(1));
    Gate::leave(slot(1));
  }

  [[nodiscard]] SharedWord& slot(uint32_t rank) { return segment_.channel_of(rank)->direct_slot; }
  [[nodiscard]] bool enter(uint32_t rank) {
    return Gate::enter(segment_.header().direct.portals[0].gate, slot(rank), number);
  }
  [[nodiscard]] bool is_inside(uint32_t rank) { return Gate::is_inside(slot(rank), number); }

  nic::Bench bench_;
  Segment segment_;
  std::set<uint32_t> ended_;
  std::optional<Publications> publications_;
  std::optional<Asked> asked_;
};

TEST_F(PublicationsTest, RunningPeersAreWaitedForThoughOneIsStopped) {
  ASSERT_TRUE(enter(1));  // it stays
  publications_->pause();  // it waits for a second
  publications_->resume();
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> is_in{false};
    std::thread peer([&] {
      EXPECT_TRUE(enter(2));
      is_in = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      Gate::leave(slot(2));
    });
    while (!is_in) std::this_thread::yield();
    publications_->pause();
    EXPECT_FALSE(is_inside(2));
    EXPECT_TRUE(is_inside(1));
    peer.join();
    publications_->resume();
  }
}

TEST_F(PublicationsTest, AClosingThatFailsChangesNothing) {
  ASSERT_TRUE(enter(1));
  EXPECT_FALSE(publications_->close(bench_.portal));
  EXPECT_TRUE(enter(2)) << "the gate is open";
  Gate::leave(slot(2));
  Gate::leave(slot(1));
  EXPECT_TRUE(publications_->close(bench_.portal));
  EXPECT_FALSE(enter(2));
}

TEST_F(PublicationsTest, APeerThatEndedInsideIsOutside) {
  ASSERT_TRUE(enter(1));
  ended_.insert(1);
  EXPECT_TRUE(publications_->close(bench_.portal));
  EXPECT_FALSE(is_inside(1));
}

TEST_F(PublicationsTest, AfterTheEndNoGateOpens) {
  publications_->end();
  EXPECT_FALSE(enter(1));
  publications_->pause();
  publications_->resume();
  publications_->note_change(bench_.portal);
  publications_->refresh(bench_.nic);
  EXPECT_FALSE(enter(1));
}

}  // namespace
}  // namespace spinloom::live
