// Ranks that begin at any time find out that all have begun.
#include "portals/collective/meeting.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

TEST(Meeting, NobodyGoesOnBeforeAllHaveBegun) {
  for_seeds(200, [](Random& random) {
    testbed::LoopbackOptions driver;
    driver.ranks = static_cast<uint32_t>(1 + random.below(12));
    driver.racy_seed = random.below(UINT64_MAX);
    auto loopback = testbed::Loopback::create(driver);
    ASSERT_TRUE(loopback.ok());
    struct Member {
      std::unique_ptr<portals::Interface> interface;
      std::optional<Meeting> meeting;
      bool is_over = false;
    };
    std::vector<Member> ranks(driver.ranks);
    uint32_t begun = 0;
    bool all = false;
    for (int looks = 0; !all && looks < 100000; ++looks) {
      Member& one = ranks[random.below(ranks.size())];
      if (!one.meeting && random.below(8) == 0) {
        one.interface =
            std::make_unique<portals::Interface>((*loopback)->port(static_cast<uint32_t>(&one - ranks.data())));
        auto queue = one.interface->eq_alloc(64);
        ASSERT_TRUE(queue.ok());
        ASSERT_TRUE(one.interface->pt_alloc(*queue, {.index = nic::PortalIndex{3}}).ok());
        auto meeting = Meeting::begin(*one.interface, nic::PortalIndex{3}, driver.ranks, 0, {});
        ASSERT_TRUE(meeting.ok()) << meeting.error().message;
        one.meeting = std::move(*meeting);
        ++begun;
      }
      if (one.meeting && !one.is_over) {
        const auto over = one.meeting->step();
        ASSERT_TRUE(over.ok()) << over.error().message;
        one.is_over = *over;
        if (*over) {
          ASSERT_EQ(begun, driver.ranks) << "somebody has not begun";
          one.meeting->end();
          // A rank that is through may leave: its messages have arrived by then.
          if (random.below(2) == 0) {
            const auto rank = static_cast<uint32_t>(&one - ranks.data());
            ASSERT_TRUE((*loopback)->run().ok());
            (*loopback)->kill(rank);
            for (uint32_t other = 0; other < ranks.size(); ++other) {
              if (other != rank) (*loopback)->tell_lost(other, nic::Rank{rank});
            }
          }
        }
      }
      for (uint64_t steps = random.below(6); steps > 0; --steps) (*loopback)->step();
      all = true;
      for (const Member& member : ranks) all = all && member.is_over;
    }
    ASSERT_TRUE(all) << "it never ends";
  });
}

// Rank 2 is gone before it begins. Rank 0 waits for its message, and hears of its end only when it asks.
TEST(Meeting, WhoOwesAMessageAndIsGoneIsAnError) {
  constexpr uint32_t count = 3;
  testbed::LoopbackOptions driver;
  driver.ranks = count;
  auto loopback = testbed::Loopback::create(driver);
  ASSERT_TRUE(loopback.ok());
  std::vector<std::unique_ptr<portals::Interface>> interfaces;
  std::vector<Meeting> meetings;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    interfaces.push_back(std::make_unique<portals::Interface>((*loopback)->port(rank)));
    auto queue = interfaces[rank]->eq_alloc(64);
    ASSERT_TRUE(queue.ok());
    ASSERT_TRUE(interfaces[rank]->pt_alloc(*queue, {.index = nic::PortalIndex{3}}).ok());
    auto meeting = Meeting::begin(*interfaces[rank], nic::PortalIndex{3}, count, 0, {});
    ASSERT_TRUE(meeting.ok()) << meeting.error().message;
    meetings.push_back(std::move(*meeting));
  }
  (*loopback)->kill(2);
  for (uint32_t rank = 0; rank < 2; ++rank) (*loopback)->tell_lost(rank, nic::Rank{2});
  for (Meeting& meeting : meetings) {
    Result<bool> over = false;
    for (int looks = 0; over.ok() && looks < 1000; ++looks) {
      over = meeting.step();
      ASSERT_TRUE((*loopback)->run().ok());
    }
    ASSERT_FALSE(over.ok()) << "it waits for ever";
    EXPECT_EQ(over.error().message, Meeting::error_of_gone(2).message);
  }
  for (Meeting& meeting : meetings) meeting.end();
}

}  // namespace
}  // namespace spinloom::collective
