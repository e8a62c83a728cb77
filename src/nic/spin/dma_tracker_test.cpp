// DMAs of handlers: the order of their reports, handles, pieces, and random ends.
#include "nic/spin/dma_tracker.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "nic/spin/testing/replay.hpp"

namespace spinloom::spin {
namespace {

constexpr Owner work{1, 4};
constexpr HerId her{9};

struct DmaTrackerTest : testing::Test {
  // Ends a DMA; returns the offsets of the reports that are due.
  std::vector<uint64_t> end(DmaId dma) {
    const auto ended = dmas.end(dma);
    EXPECT_TRUE(ended.has_value());
    if (ended) dmas.retire(queue, *ended);
    std::vector<uint64_t> due;
    while (const auto report = dmas.next_report(queue)) due.push_back(report->offset);
    return due;
  }
  DmaTracker dmas;
  DmaQueue queue;
};

TEST_F(DmaTrackerTest, AReportWaitsForTheDmasBeforeIt) {
  const DmaId first = dmas.issue(queue, work, her, false).dma;
  const DmaId second = dmas.issue(queue, work, her, false).dma;
  const DmaId third = dmas.issue(queue, work, her, false).dma;
  dmas.report(second, {20, 1, 0});
  dmas.report(third, {30, 1, 0});
  EXPECT_TRUE(end(third).empty());
  EXPECT_TRUE(end(second).empty());
  EXPECT_EQ(queue.open, 3u);
  EXPECT_EQ(end(first), (std::vector<uint64_t>{20, 30}));
  EXPECT_EQ(queue.open, 0u);
  EXPECT_EQ(dmas.size(), 0u);
}

TEST_F(DmaTrackerTest, OneWithoutAReportLeavesAtOnce) {
  const DmaId reports = dmas.issue(queue, work);
  const DmaId silent = dmas.issue(queue, work);
  dmas.report(reports, {1, 1, 0});
  EXPECT_TRUE(end(silent).empty());
  EXPECT_EQ(queue.open, 1u);
  EXPECT_EQ(end(reports), (std::vector<uint64_t>{1}));
}

TEST_F(DmaTrackerTest, OverPiecesItEndsWithTheLastOfThem) {
  const DmaId whole = dmas.issue(queue, work, her, true).dma;
  dmas.split(whole, 2);
  const DmaId a = dmas.issue_piece(whole);
  const DmaId b = dmas.issue_piece(whole);
  EXPECT_EQ(dmas.owner(b).slot, work.slot);
  EXPECT_FALSE(dmas.source_read(a).has_value());
  EXPECT_EQ(dmas.source_read(b), her);
  EXPECT_FALSE(dmas.end(b).has_value());
  const auto ended = dmas.end(a);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->dma, whole);
  EXPECT_EQ(ended->her, her);
  EXPECT_FALSE(ended->resumes);  // the handler has gone on when the source was read
}

TEST_F(DmaTrackerTest, AHandlerThatWaitsIsResumedByTheEnd) {
  const auto [dma, handle] = dmas.issue(queue, work, her, false);
  EXPECT_TRUE(dmas.is_open(handle, her));
  EXPECT_FALSE(dmas.is_open(handle, HerId{8}));
  dmas.wait(handle, her);
  EXPECT_TRUE(dmas.end(dma)->resumes);
}

TEST_F(DmaTrackerTest, AHandleNamesNothingAfterTheEnd) {
  const auto [dma, handle] = dmas.issue(queue, work, her, false);
  EXPECT_TRUE(end(dma).empty());
  const auto next = dmas.issue(queue, work, her, false);
  EXPECT_EQ(next.dma, dma);  // the slot is used again
  EXPECT_NE(next.handle, handle);
  EXPECT_FALSE(dmas.is_open(handle, her));
}

TEST_F(DmaTrackerTest, OneAloneIsForgottenByItsEnd) {
  const DmaId alone = dmas.issue_unqueued({3, 11});
  const auto ended = dmas.end(alone);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->owner.kind, 3);
  EXPECT_EQ(ended->owner.slot, 11u);
  EXPECT_EQ(dmas.size(), 0u);
}

TEST_F(DmaTrackerTest, RandomEndsGiveReportsInOrderOfIssue) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  std::vector<DmaId> open;
  uint64_t issued = 0;
  uint64_t reported = 0;
  uint64_t expected = 0;
  uint64_t last = 0;
  for (int step = 0; step < 20000 || !open.empty(); ++step) {
    if (step < 20000 && random.below(2) == 0) {
      open.push_back(dmas.issue(queue, work));
      ++issued;
      if (random.below(2) == 0) continue;
      dmas.report(open.back(), {issued, 1, 0});
      ++expected;
    } else if (!open.empty()) {
      const size_t chosen = random.below(open.size());
      const DmaId dma = open[chosen];
      open.erase(open.begin() + static_cast<long>(chosen));
      for (const uint64_t offset : end(dma)) {
        ASSERT_GT(offset, last);
        last = offset;
        ++reported;
      }
    }
  }
  EXPECT_EQ(reported, expected);
  EXPECT_GT(expected, 1000u);
  EXPECT_EQ(queue.open, 0u);
  EXPECT_EQ(dmas.size(), 0u);
}

}  // namespace
}  // namespace spinloom::spin
