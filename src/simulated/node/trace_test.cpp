// Trace and DepthSeries stay within their bounds and record only what happened.
#include "simulated/node/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulated/node/depth_series.hpp"

namespace spinloom::simulated {
namespace {

TEST(TraceTest, KeepsTheFirstSpansAndCountsTheRest) {
  Trace trace;
  for (uint64_t number = 0; number < limits::trace_spans_max + 3; ++number) {
    trace.span({Track::dma, 0, number, 1_ns, 2_ns});
  }
  EXPECT_EQ(trace.spans().size(), limits::trace_spans_max);
  EXPECT_EQ(trace.spans().back().number, limits::trace_spans_max - 1);
  EXPECT_EQ(trace.dropped(), 3u);
}

TEST(DepthSeriesTest, AnIntervalHoldsItsLargestDepth) {
  DepthSeries series;
  series.sample(Time{100}, 1);
  series.sample(Time{300}, 4);
  series.sample(Time{900}, 2);
  series.sample(Time{2500}, 3);
  ASSERT_EQ(series.points().size(), 2u);
  EXPECT_EQ(series.points()[0].start, Time{0});
  EXPECT_EQ(series.points()[0].depth, 4u);
  EXPECT_EQ(series.points()[1].start, Time{2000});
  EXPECT_EQ(series.points()[1].depth, 3u);
}

TEST(DepthSeriesTest, StaysBoundedAndKeepsThePeak) {
  DepthSeries series;
  constexpr int64_t samples = int64_t{100} * limits::depth_points_max;
  for (int64_t index = 0; index < samples; ++index) {
    series.sample(Time{index * 1000}, index == samples / 3 ? 777 : static_cast<uint64_t>(index % 5));
  }
  const auto& points = series.points();
  EXPECT_LE(points.size(), limits::depth_points_max);
  EXPECT_GT(points.size(), limits::depth_points_max / 2);
  const auto less_deep = [](const auto& a, const auto& b) { return a.depth < b.depth; };
  EXPECT_EQ(std::max_element(points.begin(), points.end(), less_deep)->depth, 777u);
  const auto earlier = [](const auto& a, const auto& b) { return a.start < b.start; };
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), earlier));
  EXPECT_EQ(points.front().start, Time{0});
}

}  // namespace
}  // namespace spinloom::simulated
