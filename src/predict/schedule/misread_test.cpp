// The count of what LogGOPSim takes otherwise: dependencies between CPUs, and receives on another CPU.
#include "predict/schedule/misread.hpp"

#include <gtest/gtest.h>

#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

Misread of(std::string_view first, std::string_view second) {
  return misread(test::read(text("num_ranks 2\nrank 0 {\n", first, "}\nrank 1 {\n", second, "}\n")));
}

TEST(Misread, NothingOfWhatIsOnOneCpu) {
  EXPECT_EQ(of("a: calc 5 cpu 3\nb: send 1b to 1 cpu 3\nb requires a\n", "recv 1b from 0 cpu 3\n"), Misread());
  EXPECT_EQ(misread(test::dissemination(64)), Misread());
  EXPECT_EQ(misread(Schedule()), Misread());
}

TEST(Misread, NothingOfCpusThatDoNotWaitForEachOther) {
  EXPECT_EQ(of("a: calc 5\nb: send 1b to 1\nb requires a\nc: calc 7 cpu 1\n", "recv 1b from 0\ncalc 7 cpu 1\n"),
            Misread());
}

TEST(Misread, DependenciesBetweenCpusAreCountedForEachRank) {
  const Schedule shared = test::read(
      "num_ranks 3\nrank 0 {\na: calc 1\nb: calc 2 cpu 1\nb requires a\n}\nrank 1 {\na: calc 1\nb: calc 2 cpu 1\n"
      "b requires a\n}\nrank 2 {\na: calc 1\nb: calc 2 cpu 1\nb irequires a\n}\n");
  EXPECT_EQ(misread(shared), (Misread{3, 0}));
}

TEST(Misread, ReceivesOnAnotherCpuThanTheirSendsAre) {
  EXPECT_EQ(of("send 1b to 1 cpu 1\n", "recv 1b from 0\n"), (Misread{0, 1}));
  // Each CPU has as many receives as sends, but with the other tag.
  EXPECT_EQ(of("send 1b to 1 tag 1\nsend 1b to 1 tag 2 cpu 1\n", "recv 1b from 0 tag 2\nrecv 1b from 0 tag 1 cpu 1\n"),
            (Misread{0, 1}));
  EXPECT_EQ(of("send 1b to 1 tag 1\nsend 1b to 1 tag 2 cpu 1\n", "recv 1b from 0 tag 2 cpu 1\nrecv 1b from 0 tag 1\n"),
            Misread());
  // The sender of a receive of any is not known before: only the number of messages for each CPU.
  EXPECT_EQ(of("send 1b to 1 tag 1\nsend 1b to 1 tag 2 cpu 1\n", "recv 1b from -1\nrecv 1b from 0 tag -1 cpu 1\n"),
            Misread());
  EXPECT_EQ(of("send 1b to 1 tag 1\nsend 1b to 1 tag 2 cpu 1\n", "recv 1b from -1\nrecv 1b from 0 tag -1\n"),
            (Misread{0, 1}));
}

TEST(Misread, PassesCountAsWhatIsWrittenOut) {
  Schedule schedule(1);
  Builder builder;
  builder.add(schedule.intern_shape({.size = 1}), 0);
  builder.add(schedule.intern_shape({.size = 1, .cpu = 1}), 0);
  builder.require(1, 0, Awaits::end);
  builder.require(2, 1, Awaits::end);  // the next pass
  schedule.intern(0, builder.take(5));
  EXPECT_EQ(misread(schedule), (Misread{9, 0}));
  EXPECT_EQ(misread(schedule.unrolled()), (Misread{9, 0}));
}

}  // namespace
}  // namespace spinloom::schedule
