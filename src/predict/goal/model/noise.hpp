// Noise - a CPU that does something else for a while, again and again, as an operating system's clock tick.
//
// Contract: in each period the CPUs of a rank are away for the first `length`. The seed gives when a rank's periods
//   begin; they begin at 0 for all ranks if the noise `is_synchronised`. end_of_work() gives the time when a CPU that
//   begins some work has done it.
// Invariants: (1) work of 0 takes no time, even while the CPU is away; (2) the same seed gives the same phases.
// Threads: plain values. Time: modelled, in picoseconds. Work: constant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "predict/goal/model/model.hpp"

namespace spinloom::goal {

class Phases {
 public:
  Phases(const Noise& noise, uint32_t ranks) : period_(noise.period_ps), length_(noise.length_ps), phases_(ranks) {
    if (noise.is_synchronised) return;
    Random random(noise.seed, "goal.noise");
    for (uint64_t& phase : phases_) phase = random.below(period_);
  }

  // Returns `time_ps_max` + 1 if the time is later than `time_ps_max`.
  [[nodiscard]] uint64_t end_of_work(uint32_t rank, uint64_t now_ps, uint64_t work_ps) const {
    if (work_ps == 0) return now_ps;
    const uint64_t at = now_ps + phases_[rank];
    const uint64_t each = period_ - length_;  // work of a period
    const uint64_t in_period = at % period_;
    const uint64_t work = at / period_ * each + (in_period > length_ ? in_period - length_ : 0) + work_ps;
    const uint64_t periods = (work - 1) / each;
    const unsigned __int128 end =
        static_cast<unsigned __int128>(periods) * period_ + length_ + (work - periods * each) - phases_[rank];
    return static_cast<uint64_t>(std::min<unsigned __int128>(end, time_ps_max + 1));
  }

 private:
  uint64_t period_;
  uint64_t length_;
  std::vector<uint64_t> phases_;
};

}  // namespace spinloom::goal
