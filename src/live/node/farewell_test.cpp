// The peers for which a leaving process waits.
#include "live/node/farewell.hpp"

#include <gtest/gtest.h>

namespace spinloom::live {
namespace {

constexpr Time ms{1'000'000'000};
constexpr nic::Rank one{1};

Outstanding left(uint64_t packets, uint64_t moved) {
  Outstanding made;
  made.packets = packets;
  made.bytes = packets * 10;
  made.progress = moved;
  return made;
}

TEST(Farewell, APeerThatTakesALittleNowAndThenIsWaitedFor) {
  Farewell farewell(3);
  Time now{};
  for (uint64_t packets = 100; packets > 0; --packets) {
    for (int look = 0; look < 4; ++look, now = now + ms * 1000) {
      EXPECT_TRUE(farewell.update(now, one, left(packets, 7))) << packets;
    }
  }
  EXPECT_FALSE(farewell.update(now, one, left(0, 7)));
  EXPECT_EQ(farewell.loss_text(), "");
}

TEST(Farewell, WhatMovesAtThePeerCountsAlso) {
  Farewell farewell(2);
  Time now{};
  for (uint64_t moved = 0; moved < 100; ++moved, now = now + ms * 4000) {
    EXPECT_TRUE(farewell.update(now, one, left(3, moved)));
  }
}

TEST(Farewell, APeerThatTakesNothingIsGivenUp) {
  Farewell farewell(3);
  EXPECT_TRUE(farewell.update(ms, one, left(4, 0)));
  EXPECT_TRUE(farewell.update(Farewell::patience, one, left(4, 0)));
  EXPECT_EQ(farewell.loss_text(), "");
  EXPECT_FALSE(farewell.update(Farewell::patience + ms, one, left(4, 0)));
  EXPECT_FALSE(farewell.update(Farewell::patience + ms * 2, nic::Rank{2}, left(0, 0)));
  EXPECT_EQ(farewell.loss_text(),
            "lost, for it was not taken: 4 packets with 40 B to rank 1, which took nothing for 5 s");
  EXPECT_FALSE(farewell.update(Farewell::patience * 2, one, left(4, 0))) << "a second farewell does not wait again";
  EXPECT_TRUE(farewell.update(Farewell::patience * 3, one, left(3, 0))) << "but for a peer that has come back";
  EXPECT_EQ(farewell.loss_text(), "");
}

TEST(Farewell, APeerThatHasNotComeIsWaitedForUntilItIsGoneOrTheLimit) {
  Farewell farewell(3, ms * 60'000);
  Outstanding none_yet = left(4, 0);
  none_yet.is_awaited = true;
  EXPECT_TRUE(farewell.update(ms, one, none_yet));
  EXPECT_TRUE(farewell.update(Farewell::patience * 3, one, none_yet));
  EXPECT_FALSE(farewell.update(ms * 60'001, one, none_yet));
  Farewell other(3);
  EXPECT_TRUE(other.update(ms, one, none_yet));
  none_yet.is_lost = true;
  EXPECT_FALSE(other.update(Farewell::patience * 3, one, none_yet));
  EXPECT_NE(other.loss_text(), "");
}

TEST(Farewell, APeerThatMayBeWritingHereIsWaitedForUntilItIsGone) {
  Farewell farewell(2);
  Outstanding writing = left(0, 0);
  writing.may_write = true;
  EXPECT_TRUE(farewell.update(ms, one, writing));
  EXPECT_TRUE(farewell.update(Farewell::patience * 100, one, writing));
  writing.is_lost = true;
  EXPECT_FALSE(farewell.update(Farewell::patience * 101, one, writing));
  EXPECT_EQ(farewell.loss_text(), "");
}

TEST(Farewell, APeerThatGoesMeanwhileLosesWhatItHadNotTaken) {
  Farewell farewell(3);
  EXPECT_TRUE(farewell.update(ms, one, left(4, 0)));
  Outstanding gone = left(2, 0);
  gone.is_lost = true;
  EXPECT_FALSE(farewell.update(ms * 2, one, gone));
  EXPECT_FALSE(farewell.update(ms * 3, one, gone));
  EXPECT_FALSE(farewell.update(ms * 3, nic::Rank{2}, gone)) << "known to be gone before";
  EXPECT_EQ(farewell.loss_text(), "lost, for it was not taken: 2 packets with 20 B to rank 1, which is gone");
}

TEST(Farewell, EndsAtItsLimitAlsoForWhoGoesOnTaking) {
  Farewell farewell(3, ms * 10'000);
  const Time start = ms * 500;
  farewell.begin(start);
  Time now = start;
  uint64_t packets = 1000;
  for (; now < start + ms * 10'000; now = now + ms * 1000) EXPECT_TRUE(farewell.update(now, one, left(--packets, 0)));
  EXPECT_EQ(farewell.late_text(), "");
  EXPECT_FALSE(farewell.update(now, one, left(--packets, 0)));
  EXPECT_FALSE(farewell.update(now, nic::Rank{2}, left(0, 0)));
  EXPECT_EQ(farewell.late_text(), "rank 1 has not taken 989 packets with 9890 B");
  EXPECT_EQ(farewell.loss_text(),
            "lost, for it was not taken: 989 packets with 9890 B to rank 1, which has not taken all in 10 s");
  EXPECT_FALSE(farewell.may_be_written());
  farewell.begin(now + ms);  // PtlFini after PtlNIFini
  EXPECT_FALSE(farewell.update(now + ms, one, left(--packets, 0))) << "the limit is not waited for twice";
  EXPECT_EQ(farewell.late_text(), "") << "nor told";
  now = now + ms * 20'000;
  farewell.begin(now);
  EXPECT_TRUE(farewell.update(now, one, left(--packets, 0))) << "another farewell, much later";
  EXPECT_FALSE(farewell.update(now, one, left(0, 0)));
  EXPECT_EQ(farewell.loss_text(), "");
}

TEST(Farewell, SaysWhoMayStillWriteAtTheLimit) {
  Farewell farewell(2, ms * 10'000);
  Outstanding writing = left(0, 0);
  writing.may_write = true;
  farewell.begin(Time{});
  EXPECT_TRUE(farewell.update(ms * 9'999, one, writing));
  EXPECT_FALSE(farewell.may_be_written());
  EXPECT_FALSE(farewell.update(ms * 10'000, one, writing));
  EXPECT_TRUE(farewell.may_be_written());
  EXPECT_EQ(farewell.late_text(), "rank 1 may still write to this process's memory, where a message of its lands");
  EXPECT_EQ(farewell.loss_text(), "");
  farewell.begin(ms * 11'000);
  EXPECT_TRUE(farewell.update(ms * 11'000, one, writing)) << "the call is made again, and waits again";
  EXPECT_FALSE(farewell.update(ms * 11'000, one, left(0, 1)));
  EXPECT_FALSE(farewell.may_be_written()) << "it has ended";
  EXPECT_EQ(farewell.late_text(), "");
}

TEST(Farewell, APeerThatDoesNotReplyIsGivenUpAndTold) {
  Farewell farewell(2, ms * 100'000);
  Outstanding owing = left(0, 0);
  owing.replies = 1;
  farewell.begin(Time{});
  EXPECT_TRUE(farewell.update(Time{}, one, owing));
  EXPECT_FALSE(farewell.may_be_written());
  EXPECT_FALSE(farewell.update(Farewell::patience, one, owing));
  EXPECT_TRUE(farewell.may_be_written());
  EXPECT_EQ(farewell.owing_text(), "rank 1 has not replied");
  EXPECT_EQ(farewell.late_text(), "");
  EXPECT_EQ(farewell.loss_text(), "");
  EXPECT_FALSE(farewell.update(Farewell::patience, one, left(0, 0)));
  EXPECT_FALSE(farewell.may_be_written()) << "it has come";
  EXPECT_EQ(farewell.owing_text(), "");
}

TEST(Farewell, AcknowledgementsAreNoLoss) {
  Farewell farewell(2);
  Outstanding notes = left(4, 0);
  notes.control_packets = 4;
  EXPECT_TRUE(farewell.update(Time{}, one, notes));
  EXPECT_FALSE(farewell.update(Farewell::patience, one, notes));
  EXPECT_EQ(farewell.loss_text(), "");
}

TEST(Farewell, ALineNamesAFewOfMany) {
  Farewell farewell(100);
  for (const Time at : {Time{}, Farewell::patience}) {
    for (uint32_t rank = 0; rank < 100; ++rank) std::ignore = farewell.update(at, nic::Rank{rank}, left(1, 0));
  }
  EXPECT_NE(farewell.loss_text().find("to rank 7,"), std::string::npos);
  EXPECT_EQ(farewell.loss_text().find("to rank 8,"), std::string::npos);
  EXPECT_NE(farewell.loss_text().find("; and some to 92 more ranks"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::live
