// DepthSeries - the length of a queue over virtual time, in a bounded number of points.
//
// Contract: the owner calls sample(now, depth) after each change. points() gives (beginning of an interval, largest
//   depth in it) in order of time, for the intervals in which something changed. When the series is full, neighbouring
//   intervals are joined and every interval is twice as long as before.
// Invariants: (1) at most limits::depth_points_max points; (2) the largest point is the largest depth sampled.
// Threads: one owner. Time: virtual, an argument that never runs backwards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "base/units.hpp"

namespace spinloom::simulated {

class DepthSeries {
 public:
  struct Point {
    Time start;
    uint64_t depth = 0;
  };

  void sample(Time now, uint64_t depth) {
    if (!points_.empty() && interval_of(points_.back().start) == interval_of(now)) {
      points_.back().depth = std::max(points_.back().depth, depth);
      return;
    }
    if (points_.size() == limits::depth_points_max) {
      join_intervals();
      return sample(now, depth);
    }
    points_.push_back({Time{interval_of(now) * interval_.ps}, depth});
  }
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  [[nodiscard]] int64_t interval_of(Time time) const { return time.ps / interval_.ps; }

  void join_intervals() {
    interval_ = interval_ * 2;
    size_t count = 0;
    for (const Point& point : points_) {
      const Time start{interval_of(point.start) * interval_.ps};
      if (count > 0 && points_[count - 1].start == start) {
        points_[count - 1].depth = std::max(points_[count - 1].depth, point.depth);
      } else {
        points_[count++] = {start, point.depth};
      }
    }
    points_.resize(count);
  }

  Time interval_ = 1_ns;
  std::vector<Point> points_;
};

}  // namespace spinloom::simulated
