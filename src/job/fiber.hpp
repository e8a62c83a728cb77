// Fiber - a program's stack and registers, which a scheduler leaves and comes back to.
//
// Contract: resume() runs the body until it yields or ends; yield() goes back to where resume() was called. The body
//   starts at the first resume().
// Invariants: (1) under a stack lies memory that cannot be touched: running over its end faults; (2) errno belongs to
//   the fiber; (3) a fiber that has not ended may be dropped: nothing of it runs any more.
// Threads: one for all fibers of a scheduler. Time: none.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "base/result.hpp"

namespace spinloom::job {

class Fiber {
 public:
  static Result<std::unique_ptr<Fiber>> create(size_t stack_bytes, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();
  void yield();
  [[nodiscard]] bool ended() const { return ended_; }
  // Whether an address is in the memory that guards the stack's end.
  [[nodiscard]] bool guards(const void* address) const;

 private:
  Fiber(void* memory, size_t bytes, std::function<void()> body);
  static void start(unsigned int high, unsigned int low);

  void* memory_;
  size_t bytes_;
  std::function<void()> body_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  int errno_ = 0;
  bool ended_ = false;
};

}  // namespace spinloom::job
