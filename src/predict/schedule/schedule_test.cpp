// Schedules in memory: their size, shared shapes and programs, layouts, and descriptions.
#include "predict/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

Shape shape_of(Kind kind, uint64_t size, uint32_t tag = 0) {
  Shape shape;
  shape.kind = kind;
  shape.size = size;
  shape.tag = tag;
  return shape;
}

TEST(Schedule, TakesTwelveBytesAnOperationAndFourAnEdge) {
  EXPECT_EQ(sizeof(Operation), 12U);
  EXPECT_EQ(sizeof(Edge), 4U);
}

TEST(Schedule, LayoutsCostAScheduleWithoutThemNothing) {
  // A rank's own program: 12 B an operation, 4 B an edge, and Shapes of 16 B, which are few.
  constexpr uint32_t count = 100'000;
  const auto made = [](bool with_layouts) {
    Schedule schedule(1);
    Builder builder;
    const TransferLayouts layouts =
        with_layouts ? TransferLayouts{schedule.intern_layout(Layout{"blob", 2, 8}), contiguous} : TransferLayouts();
    for (uint32_t number = 0; number < count; ++number) {
      builder.add(schedule.intern_shape(shape_of(Kind::send, 8), layouts), number % 7);
      for (uint32_t before = 1; before <= 2 && before <= number; ++before) {
        builder.require(number, number - before, Awaits::end);
      }
    }
    schedule.intern(0, builder.take());
    return schedule;
  };
  EXPECT_LT(made(false).memory_bytes(), 21U * count);  // two edges each: 20 B
  EXPECT_LT(made(true).memory_bytes(), made(false).memory_bytes() + 200);
  EXPECT_EQ(made(false).all_transfer_layouts().size(), 0U);
}

TEST(Schedule, AShapeWithALayoutIsAnotherOne) {
  Schedule schedule(2);
  const Shape send = shape_of(Kind::send, 8);
  EXPECT_EQ(schedule.intern_shape(send), 0U);
  const uint32_t first = schedule.intern_layout(Layout{"x", 2, 8});
  EXPECT_EQ(schedule.intern_layout(Layout{"x", 2, 8}), first);
  EXPECT_EQ(schedule.intern_layout(Layout{"x", 4, 16}), 1U);
  EXPECT_EQ(schedule.intern_shape(send, {first, contiguous}), 1U);
  EXPECT_EQ(schedule.intern_shape(send), 0U);
  EXPECT_EQ(schedule.transfer_layouts(0), TransferLayouts());
  EXPECT_EQ(schedule.transfer_layouts(1), (TransferLayouts{first, contiguous}));
  // Ranks as far from their peers share a Program, and its layouts stay.
  Builder builder;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    builder.add(1, 1 - rank);
    schedule.intern(rank, builder.take());
  }
  EXPECT_EQ(schedule.shape(schedule.program(1).operations[0]).peer, Peer::relative);
  EXPECT_EQ(schedule.transfer_layouts(schedule.program(1).operations[0]), (TransferLayouts{first, contiguous}));
}

TEST(Schedule, BeginsWithoutOperations) {
  const Schedule schedule(3);
  EXPECT_EQ(schedule.ranks(), 3U);
  EXPECT_EQ(schedule.operations(), 0U);
  EXPECT_EQ(schedule.program(2).size(), 0U);
  EXPECT_EQ(Schedule().ranks(), 0U);
}

TEST(Schedule, AShapeIsKeptOnce) {
  Schedule schedule(1);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t size = 0; size < 5000; ++size) {
      EXPECT_EQ(schedule.intern_shape(shape_of(Kind::compute, size)), size);
    }
  }
  Shape other = shape_of(Kind::compute, 0);
  other.cpu = 1;
  EXPECT_EQ(schedule.intern_shape(other), 5000U);
  EXPECT_EQ(schedule.shapes().size(), 5001U);
}

// Rules: GOAL-30.
TEST(Builder, EdgesThatWaitForTheEndComeFirst) {
  Schedule schedule(1);
  Builder builder;
  const uint32_t shape = schedule.intern_shape(shape_of(Kind::compute, 1));
  for (int i = 0; i < 5; ++i) builder.add(shape, 0);
  builder.require(4, 1, Awaits::start);
  builder.require(3, 1, Awaits::end);
  builder.require(3, 0, Awaits::end);
  builder.require(2, 1, Awaits::start);
  builder.require(2, 1, Awaits::end);
  const Program program = builder.take();
  EXPECT_EQ(test::edges_of(program, 0), " 3");
  EXPECT_EQ(test::edges_of(program, 1), " 3 2 start:4 start:2");
  EXPECT_EQ(test::edges_of(program, 2), "");
  EXPECT_EQ(program.dependency_counts(), (std::vector<uint32_t>{0, 0, 2, 2, 1}));
  EXPECT_EQ(builder.size(), 0U);
  EXPECT_EQ(builder.take(), Program());
}

TEST(Schedule, EqualRanksShareOneProgram) {
  constexpr uint32_t ranks = 65536;
  Schedule schedule(ranks);
  Builder builder;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t first = builder.add(schedule.intern_shape(shape_of(Kind::compute, 100)), 0);
    const uint32_t second = builder.add(schedule.intern_shape(shape_of(Kind::send, 8)), 0);
    builder.require(second, first, Awaits::end);
    schedule.intern(rank, builder.take());
  }
  EXPECT_EQ(schedule.operations(), 2 * ranks);
  EXPECT_EQ(schedule.number_of_program(1), schedule.number_of_program(ranks - 1));
  EXPECT_EQ(schedule.programs().size(), 2U);  // the empty one, and that of all
  EXPECT_LT(schedule.memory_bytes(), 5U * ranks);
}

TEST(Schedule, RanksWithEquallyFarPeersShareOneProgram) {
  const Schedule schedule = test::dissemination(65536);
  EXPECT_EQ(schedule.programs().size(), 3U);  // the empty one, that of rank 0, that of all others
  EXPECT_EQ(schedule.number_of_program(1), schedule.number_of_program(65535));
  EXPECT_EQ(schedule.peer(65535, schedule.program(65535).operations[0]), 0U);
  EXPECT_EQ(schedule.peer(0, schedule.program(0).operations[1]), 65535U);
  EXPECT_LT(schedule.memory_bytes(), 5U * 65536);
}

TEST(Schedule, APeerThatIsNoRankStaysWhatItIs) {
  Schedule schedule(4);
  Builder builder;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    builder.add(schedule.intern_shape(shape_of(Kind::send, 8)), 9);
    builder.add(schedule.intern_shape(shape_of(Kind::receive, 8)), any);
    schedule.intern(rank, builder.take());
    EXPECT_EQ(schedule.peer(rank, schedule.program(rank).operations[0]), 9U);
    EXPECT_EQ(schedule.peer(rank, schedule.program(rank).operations[1]), any);
  }
}

TEST(Schedule, GivesOneProgramToSeveralRanksAsItIs) {
  Schedule schedule(8);
  Shape ring = shape_of(Kind::send, 8);
  ring.peer = Peer::relative;
  Builder builder;
  builder.add(schedule.intern_shape(ring), 1);
  const uint32_t given[] = {3, 7};
  schedule.intern_for(given, builder.take());
  EXPECT_EQ(schedule.number_of_program(3), schedule.number_of_program(7));
  EXPECT_EQ(schedule.peer(7, schedule.program(7).operations[0]), 0U);
  EXPECT_EQ(schedule.program(0).size(), 0U);
}

TEST(Schedule, DescribesAnOperation) {
  const Schedule schedule = test::read(
      "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 7\nrecv 5b from -1 tag -1\ncalc 33\nrecv 5b from 1\n}\nrank 1{}");
  const auto said = [&](uint32_t number) { return schedule.describe(0, schedule.program(0).operations[number]); };
  EXPECT_EQ(said(0), "send of 8 B to 1 with tag 7");
  EXPECT_EQ(said(1), "receive of 5 B from any rank with any tag");
  EXPECT_EQ(said(2), "computation of 33");
  EXPECT_EQ(said(3), "receive of 5 B from 1");
}

}  // namespace
}  // namespace spinloom::schedule
