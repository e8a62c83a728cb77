// Fiber - a program's stack and registers; a scheduler switches to a fiber and back.
//
// Contract: resume() runs the body until it yields or ends; yield() returns to the caller of resume(). The first
//   resume() starts the body.
// Invariants: (1) below a stack lies memory without access: an overflow faults; (2) errno belongs to the fiber; (3) a
//   fiber that has not ended may be destroyed: then its body never goes on, and no destructors run.
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
  // True if an address lies in the memory that guards the stack's end.
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
