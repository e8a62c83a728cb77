// StateFile - a file that says what a rank does now: one line "TIME STATE SENTENCE", for `spinloom trace --live`.
//
// Contract: open() makes the file anew, in place of one that lies there. say() replaces the line, if state or sentence
//   have changed. TIME (nanoseconds since the epoch) is when that was first said. STATE is `starts`, `runs`, or `left`
//   when the rank has left the job; the sentence completes "rank 0 ...". After `left` nothing more is said.
// Invariants: (1) while the rank's process lives, it holds a lock of the file (fcntl, F_SETLK): a reader that finds the
//   file unlocked and not `left` knows that the process has ended; (2) the line is written at once, so a process that
//   is killed leaves its last one. It is cut to 2 KiB; (3) a line that cannot be written is lost, and nothing else
//   happens.
// Threads: any. Time: the real-time clock.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/result.hpp"

namespace spinloom::live {

class StateFile {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StateFile>> open(const std::string& path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  void say(const char* state, const std::string& sentence);

 private:
  explicit StateFile(int file) : file_(file) {}

  int file_;
  std::mutex lock_;  // guards the members below
  std::string written_;
  bool has_left_ = false;
};

}  // namespace spinloom::live
