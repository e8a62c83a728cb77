// Process - another process of this machine, held by a descriptor: its number may become another process's once it has
// ended, the descriptor stays its own.
//
// Contract: open() takes hold of the process that has this number now; descriptor() is readable once that has ended.
//   holds() says whether the number meant it until a moment ago.
// Invariants: (1) after holds() the number has not been given to anybody else: the system gives numbers in a circle,
//   and `fresh_ns` are too short for a whole turn of it; (2) holds() asks the system at most once in that time.
// Threads: one owner. Time: holds() reads the monotonic clock.
#pragma once

#include <cstdint>

namespace spinloom::peer {

class Process {
 public:
  static constexpr int64_t fresh_ns = 100'000;

  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // 0, or the errno of what the system refuses; ESRCH: there is no such process.
  [[nodiscard]] int open(int64_t id);
  [[nodiscard]] int64_t id() const { return id_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool holds() const;

 private:
  int64_t id_ = 0;
  int descriptor_ = -1;
  mutable int64_t seen_ns_ = INT64_MIN / 2;  // when it was found to live
};

}  // namespace spinloom::peer
