// Watch - who looks on while something long goes on, and may end it.
//
// Contract: called now and then with how much has been done; false ends it, with an error that says so. Looks calls it
//   once for so many steps.
// Threads: called by the thread that works. Time: none; how long it is between two calls nobody here knows.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"

namespace spinloom::schedule {

using Watch = std::function<bool(uint64_t done)>;

class Looks {
 public:
  static constexpr uint64_t steps_between = uint64_t{1} << 20;
  Looks(const Watch& watch, const char* what) : watch_(watch), what_(what) {}

  [[nodiscard]] Status did(uint64_t steps) {
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
