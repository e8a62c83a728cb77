// Each pass with its before and after, and the normal forms of whole types.
#include "memory/layout/passes.hpp"

#include <gtest/gtest.h>

#include "memory/layout/normalise.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

TEST(Passes, MergeNeighbours) {
  std::vector<int64_t> offsets = {0, 8, 16, 40, 44, 30};
  std::vector<int64_t> lengths = {8, 8, 0, 4, 4, 10};
  merge_neighbours(offsets, lengths);
  // The run at 30 touches the run at 40, but comes behind it in packed order: they stay apart.
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 40, 30}));
  EXPECT_EQ(lengths, (std::vector<int64_t>{16, 8, 10}));
}

TEST(Passes, RegularStep) {
  EXPECT_EQ(regular_step({5, 9, 13}), 4);
  EXPECT_EQ(regular_step({5, 1, -3}), -4);
  EXPECT_EQ(regular_step({5, 9, 14}), std::nullopt);
  EXPECT_EQ(regular_step({5}), std::nullopt);
}

TEST(Passes, Repeat) {
  EXPECT_TRUE(repeat(0, 8, run_of(0, 4)).empty());
  EXPECT_TRUE(repeat(3, 8, {}).empty());
  EXPECT_EQ(describe(repeat(1, 8, run_of(16, 4))), "16 + run(4 B)");
  EXPECT_EQ(describe(repeat(3, 4, run_of(16, 4))), "16 + run(12 B)");
  EXPECT_EQ(describe(repeat(3, 8, run_of(16, 4))), "16 + vector(3, 4 B, stride 8 B)");
  EXPECT_EQ(describe(repeat(3, -4, run_of(0, 4))), "0 + vector(3, 4 B, stride -4 B)");
  // The outer stride goes on where the inner vector ends: one level.
  EXPECT_EQ(describe(repeat(2, 24, repeat(3, 8, run_of(0, 4)))), "0 + vector(6, 4 B, stride 8 B)");
  EXPECT_EQ(describe(repeat(2, 32, repeat(3, 8, run_of(0, 4)))),
            "0 + loop(2, stride 32 B, vector(3, 4 B, stride 8 B))");
  EXPECT_EQ(describe(repeat(5, 64, repeat(2, 32, repeat(3, 8, run_of(0, 4))))),
            "0 + loop(10, stride 32 B, vector(3, 4 B, stride 8 B))");
}

TEST(Passes, Scatter) {
  EXPECT_EQ(describe(scatter({40}, run_of(2, 4))), "42 + run(4 B)");
  EXPECT_EQ(describe(scatter({40, 48, 56}, run_of(0, 4))), "40 + vector(3, 4 B, stride 8 B)");
  EXPECT_EQ(describe(scatter({40, 44, 60}, run_of(0, 4))), "40 + runs(2, 12 B)");
  EXPECT_EQ(describe(scatter({0, 4, 60, 64}, run_of(0, 4))), "0 + vector(2, 8 B, stride 60 B)");
  EXPECT_EQ(describe(scatter({40, 0, 60}, run_of(0, 4))), "40 + list(3 x 4 B)");
  EXPECT_EQ(describe(scatter({40, 0, 60}, repeat(2, 8, run_of(0, 4)))), "40 + list(3, vector(2, 4 B, stride 8 B))");
}

TEST(Passes, ScatterRuns) {
  EXPECT_EQ(describe(scatter_runs({0, 16, 50}, {4, 4, 4})), "0 + list(3 x 4 B)");
  EXPECT_EQ(describe(scatter_runs({0, 16, 32}, {4, 4, 4})), "0 + vector(3, 4 B, stride 16 B)");
  EXPECT_EQ(describe(scatter_runs({8, 16, 32}, {4, 8, 4})), "8 + runs(3, 16 B)");
  EXPECT_EQ(describe(scatter_runs({8, 16}, {8, 8})), "8 + run(16 B)");
  EXPECT_TRUE(scatter_runs({8, 16}, {0, 0}).empty());
}

TEST(Passes, Gather) {
  const PlacedNest vector = repeat(2, 8, run_of(0, 4));
  EXPECT_EQ(describe(gather({{}, run_of(8, 4), {}})), "8 + run(4 B)");
  EXPECT_EQ(describe(gather({run_of(0, 4), run_of(4, 12)})), "0 + run(16 B)");
  EXPECT_EQ(describe(gather({run_of(0, 4), run_of(8, 12)})), "0 + runs(2, 16 B)");
  EXPECT_EQ(describe(gather({displaced(vector, 0), displaced(vector, 64), displaced(vector, 512)})),
            "0 + list(3, vector(2, 4 B, stride 8 B))");
  const PlacedNest mixed = gather({run_of(100, 4), vector});
  EXPECT_EQ(describe(mixed), "100 + members(0 + run(4 B), -100 + vector(2, 4 B, stride 8 B))");
  EXPECT_EQ(describe(gather({run_of(0, 1), mixed})),
            "0 + members(0 + run(1 B), 100 + run(4 B), 0 + vector(2, 4 B, stride 8 B))");
}

TEST(Normalise, ResizedFoldsIntoStrides) {
  const auto form = [](const char* source) { return describe(normalise(test::must_parse(source))); };
  EXPECT_EQ(form("contig(4, resized(0B, 16B, double))"), "0 + vector(4, 8 B, stride 16 B)");
  EXPECT_EQ(form("vector(3, 2, 4, resized(-8B, 8B, double))"), "0 + vector(3, 16 B, stride 32 B)");
  EXPECT_EQ(form("struct([(0B, double), (8B, double), (32B, 2, double)])"), "0 + vector(2, 16 B, stride 32 B)");
  EXPECT_EQ(form("indexed([0 x 3, 3 x 1, 9 x 4], int)"), "0 + vector(2, 16 B, stride 36 B)");
  EXPECT_EQ(form("contig(1, hvector(1, 1, 99B, contig(1, vector(4, 1, 1, int))))"), "0 + run(16 B)");
  EXPECT_EQ(form("indexed([0 x 1, 9 x 2, 30 x 1], vector(2, 1, 3, int))"),
            "0 + members(0 + vector(2, 4 B, stride 12 B), 144 + loop(2, stride 16 B, vector(2, 4 B, stride 12 B)), "
            "480 + vector(2, 4 B, stride 12 B))");
  EXPECT_EQ(form("contig(0, int)"), "nothing");
}

TEST(PassLog, CountsWhatChangedSomething) {
  const PassLog log;
  (void)repeat(3, 8, run_of(0, 8));                      // collapses
  (void)scatter_runs({0, 8, 100, 300}, {8, 8, 16, 16});  // merges the first two; equal lengths
  (void)scatter({0, 40, 80}, run_of(0, 8));              // regular
  const std::map<std::string_view, int64_t> expected = {{"runs that touch collapsed", 1},
                                                        {"neighbours merged", 1},
                                                        {"equal lengths made one length", 1},
                                                        {"regular list made a stride", 1}};
  EXPECT_EQ(log.counts(), expected);
  {
    const PassLog inner;
    (void)repeat(1, 8, run_of(0, 8));
    EXPECT_EQ(inner.counts().size(), 1U);
  }
  EXPECT_EQ(log.counts(), expected);
}

}  // namespace
}  // namespace spinloom::layout
