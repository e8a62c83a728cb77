// Watch - a caller's look at a long piece of work, which it may end.
//
// Contract: called now and then with how much has been done; false ends the work, with an error that says so. Progress
//   calls it at most once for each `steps_between` steps.
// Threads: called by the thread that works. Time: none; nobody here knows how long it is between two calls.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"

namespace spinloom::schedule {

using Watch = std::function<bool(uint64_t done)>;

class Progress {
 public:
  static constexpr uint64_t steps_between = uint64_t{1} << 20;
  Progress(const Watch& watch, const char* what) : watch_(watch), what_(what) {}

  [[nodiscard]] Status advance(uint64_t steps) {
    done_ += steps;
    if (done_ < next_) return {};
    next_ = done_ + steps_between;
    if (!watch_ || watch_(done_)) return {};
    return fail(Code::stalled, what_, " was ended from outside");
  }

 private:
  const Watch& watch_;
  const char* what_;
  uint64_t done_ = 0;
  uint64_t next_ = steps_between;
};

}  // namespace spinloom::schedule
