// Report - the launcher's messages to the process that started it, one a line: "rank 0 ended 12345 0 17".
//
// Contract: say() writes one line at once. It takes no memory and no lock, so that a signal handler may call it.
//     rank R ended PS CODE CALLS  rank R ended at modelled time PS with exit code CODE, after CALLS calls
//     time PS                     modelled time of the run
//     trouble CODE SENTENCE       the reason why the run failed; CODE is a name from base/result.hpp
// Threads: one. Time: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace spinloom::job {

class Report {
 public:
  explicit Report(int descriptor) : descriptor_(descriptor) {}

  void say(const char* format, ...) const __attribute__((format(printf, 2, 3)));
  void say_trouble(const Error& error) const;

 private:
  int descriptor_;
};

}  // namespace spinloom::job
