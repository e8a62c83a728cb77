// Process - another process of this machine, held by a descriptor (pidfd). After a process has ended, another process
// may get its number; the descriptor still means the process that ended.
//
// Contract: open() takes hold of the process that has this number now. descriptor() becomes readable when that
//   process ends. is_alive() says whether the process lived a moment ago, so that its number still means it.
// Invariants: (1) when is_alive() returns true, the number has not been given to another process: the system hands out
//   numbers in a circle, and `alive_valid_ns` is too short for a whole turn; (2) while the process lives, a thread's
//   calls of is_alive() poll the descriptor at most once in `alive_valid_ns`.
// Threads: one owner; is_alive() from any. Time: is_alive() reads the monotonic clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace spinloom::peer {

class Process {
 public:
  static constexpr int64_t alive_valid_ns = 100'000;

  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Returns 0, or the errno of the system call that failed; ESRCH if there is no such process.
  [[nodiscard]] int open(int64_t id);
  [[nodiscard]] int64_t id() const { return id_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool is_alive() const;

 private:
  int64_t id_ = 0;
  int descriptor_ = -1;
  mutable std::atomic<int64_t> alive_ns_{INT64_MIN / 2};  // the time when the process was last found alive
};

}  // namespace spinloom::peer
