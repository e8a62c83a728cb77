// RoundTrip - how long to wait for an acknowledgement, from measured round trips (RFC 6298, in whole picoseconds).
//
// Contract: sample() takes the round trip of a packet that was sent once: an acknowledgement of a packet that was sent
//   again could be for either transmission (Karn). timeout(tries) is how long to wait for a packet that has left
//   `tries` times; it doubles each time, up to `most`.
// Invariants: (1) least <= timeout() <= most; (2) the same samples give the same times on every machine.
// Threads: one owner. Time: an argument, never read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/units.hpp"

namespace spinloom::slmp {

class RoundTrip {
 public:
  RoundTrip(Time first, Time least, Time most) : first_(first), least_(least), most_(most) {}

  void sample(Time measured) {
    const int64_t ps = std::max<int64_t>(0, measured.ps);
    if (!has_sample_) {
      has_sample_ = true;
      smooth_ps_ = ps;
      variation_ps_ = ps / 2;
      return;
    }
    variation_ps_ += (std::abs(smooth_ps_ - ps) - variation_ps_) / 4;
    smooth_ps_ += (ps - smooth_ps_) / 8;
  }

  [[nodiscard]] Time timeout(uint32_t tries) const {
    int64_t ps = std::clamp(has_sample_ ? smooth_ps_ + 4 * variation_ps_ : first_.ps, least_.ps, most_.ps);
    for (uint32_t i = 1; i < tries && ps < most_.ps; ++i) ps *= 2;
    return {std::min(ps, most_.ps)};
  }
  // Returns the total wait for a packet that leaves `tries` times.
  [[nodiscard]] Time total_wait(uint32_t tries) const {
    Time sum{};
    for (uint32_t left = 1; left <= tries; ++left) sum += timeout(left);
    return sum;
  }

 private:
  Time first_;
  Time least_;
  Time most_;
  bool has_sample_ = false;
  int64_t smooth_ps_ = 0;
  int64_t variation_ps_ = 0;
};

}  // namespace spinloom::slmp
