// The way that a message takes, by its layout, its place and the prices.
#include "mpi/moving/way.hpp"

#include <gtest/gtest.h>

#include "memory/layout/type.hpp"

namespace spinloom::mpi {
namespace {

Settings with(const char* prices) {
  Settings settings;
  settings.prices = *read_prices(prices);
  return settings;
}

TEST(Ways, ThinTypesArePackedAndDenseOnesAreOffered) {
  const auto int32 = *layout::primitive("int32_t");
  const Settings settings = with("staged=9000,block=0.3,near_line=1,far_line=2,far_jump=8");
  const auto thin = make_form(*layout::vector(30'000, 1, 100, int32));
  const auto dense = make_form(*layout::vector(30'000, 1, 2, int32));
  EXPECT_DOUBLE_EQ(thin->spread, 16);
  EXPECT_NEAR(dense->spread, 2, 0.01);
  const Reach both{true, false, true};
  EXPECT_EQ(choose(settings, *thin, 1, thin->size, both).way, Way::staged);
  EXPECT_EQ(choose(settings, *dense, 1, dense->size, both).way, Way::mapped);
  EXPECT_EQ(choose(settings, *dense, 1, dense->size, {}).way, Way::staged);
  EXPECT_EQ(choose(settings, *dense, 1, 4'096, both).way, Way::pass);
  EXPECT_EQ(choose(settings, *basic_form(4, 4), 1 << 20, 4 << 20, both).way, Way::pass);
  EXPECT_EQ(choose(settings, *unknown_form(8), 1 << 20, 8 << 20, both).way, Way::pass);
  Settings forced;
  forced.path = Path::mapped;
  EXPECT_EQ(choose(forced, *thin, 1, thin->size, both).way, Way::mapped);
  EXPECT_EQ(choose(forced, *thin, 1, thin->size, {false, false, true}).way, Way::staged);
  EXPECT_EQ(choose(forced, *basic_form(4, 4), 1 << 20, 4 << 20, both).way, Way::mapped);
  forced.path = Path::cma;
  EXPECT_EQ(choose(forced, *thin, 1, thin->size, both).way, Way::cma);
  EXPECT_EQ(choose(forced, *thin, 1, thin->size, {true, false, false}).way, Way::staged);
}

TEST(Ways, WhatARankSendsToItselfIsCopiedOnceUnlessItIsOneRun) {
  const auto int32 = *layout::primitive("int32_t");
  const auto thin = make_form(*layout::vector(30'000, 1, 100, int32));
  const Reach itself{.is_within = true};
  for (const Path path : {Path::automatic, Path::staged, Path::mapped, Path::joint, Path::cma}) {
    Settings settings;
    settings.path = path;
    EXPECT_EQ(choose(settings, *thin, 1, thin->size, itself).way, Way::within);
    EXPECT_EQ(choose(settings, *basic_form(4, 4), 1 << 20, 4 << 20, itself).way, Way::pass);
  }
  Settings settings;
  EXPECT_EQ(choose(settings, *thin, 1, 4'096, itself).way, Way::pass);
  settings.path = Path::pass;
  EXPECT_EQ(choose(settings, *thin, 1, thin->size, itself).way, Way::pass);
}

// 64 columns of a matrix with 128 rows of 128 doubles: each line belongs to eight of them.
TEST(Ways, LinesThatElementsShareCountOnceAndArePackedAtOnce) {
  const auto column = make_form(*layout::resized(0, 8, *layout::vector(128, 1, 128, *layout::primitive("double"))));
  EXPECT_DOUBLE_EQ(column->spread, 8);
  EXPECT_DOUBLE_EQ(work_of(*column, column->size).lines, 128);
  EXPECT_DOUBLE_EQ(work_of(*column, 64 * column->size).lines, 128 * 9) << "eight lines, and one where a run begins";
  EXPECT_EQ(column->chunk_bytes(4'096), 8 * column->size);
  EXPECT_EQ(column->chunk_bytes(1 << 20), 1 << 20);
  const auto vector = make_form(*layout::vector(128, 1, 128, *layout::primitive("double")));
  EXPECT_NEAR(work_of(*vector, 64 * vector->size).lines, 128 * 64, 64) << "neighbours share a line";
  EXPECT_EQ(vector->chunk_bytes(4'096), 4'096);
}

TEST(Ways, LongBlocksOutsideTheHeapAreReadBySystemCalls) {
  const auto byte = *layout::primitive("byte");
  const Settings settings = with("near_line=2,far_line=3,cma_block=200,cma_line=4");
  const auto long_blocks = make_form(*layout::vector(16, 64 << 10, 128 << 10, byte));
  const auto short_blocks = make_form(*layout::vector(16'384, 64, 128, byte));
  EXPECT_EQ(choose(settings, *long_blocks, 1, long_blocks->size, {false, false, true}).way, Way::cma);
  EXPECT_EQ(choose(with("cma_line=6"), *long_blocks, 1, long_blocks->size, {true, false, true}).way, Way::mapped);
  EXPECT_EQ(choose(settings, *short_blocks, 1, short_blocks->size, {false, false, true}).way, Way::staged);
  Settings dear = settings;
  dear.prices.cma_line_ns = 1000;
  EXPECT_EQ(choose(dear, *long_blocks, 1, long_blocks->size, {false, false, true}).way, Way::staged);
}

TEST(Ways, ASenderThatWaitsHelpsWhereTheMessageIsLong) {
  const Settings settings = with("mapped=1000,joint=2000,near_line=1,far_line=2,far_jump=2,deep_line=0");
  const auto form = make_form(*layout::vector(1024, 64, 128, *layout::primitive("byte")));
  const auto few = make_form(*layout::vector(256, 64, 128, *layout::primitive("byte")));
  const Reach waits{true, true, false};
  EXPECT_EQ(choose(settings, *form, 1, form->size, waits).way, Way::joint);
  const Choice works = choose(settings, *form, 1, form->size, {true, false, false});
  EXPECT_TRUE(works.way == Way::mapped && works.joins) << "it may come to wait";
  const Choice brief = choose(settings, *few, 1, few->size, waits);
  EXPECT_TRUE(brief.way == Way::mapped && !brief.joins);
  EXPECT_EQ(choose(settings, *form, 1, form->size, {false, true, false}).way, Way::staged);
  Settings forced;
  forced.path = Path::joint;
  EXPECT_EQ(choose(forced, *few, 1, few->size, waits).way, Way::joint);
  EXPECT_EQ(choose(forced, *few, 1, few->size, {true, false, false}).way, Way::mapped);
  forced.path = Path::mapped;
  EXPECT_FALSE(choose(forced, *form, 1, form->size, waits).joins);
}

TEST(Ways, ACheaperWayThatIsNotOpenStandsInNobodysWay) {
  const Settings settings = with("cma=0,cma_block=0,cma_line=0");
  const auto form = make_form(*layout::vector(64, 4096, 8192, *layout::primitive("byte")));
  EXPECT_EQ(choose(settings, *form, 1, form->size, {true, false, false}).way, Way::mapped);
}

TEST(Ways, PricesAreReadOrRefusedAsAWhole) {
  const auto read = read_prices("staged=12.5,far_line=3e1");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->staged_ns, 12.5);
  EXPECT_EQ(read->far_line_ns, 30);
  EXPECT_EQ(read->block_ns, Prices{}.block_ns);
  EXPECT_TRUE(read_prices("").has_value());
  for (const char* const wrong :
       {"staged", "staged=", "staged=x", "staged=-1", "staged=1e10", "staged=nan", "unknown=1", "staged=1;"}) {
    EXPECT_FALSE(read_prices(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace spinloom::mpi
