// Undo - what was changed on the machine is put back when its owner ends: the last change first.
//
// Contract: add() takes a function that undoes one change. It runs once, in the destructor, and reports no failure.
//   A process that is killed puts nothing back. Threads: one owner. Time: that of the steps.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace spinloom::port {

class Undo {
 public:
  Undo() = default;
  Undo(Undo&& other) noexcept : steps_(std::exchange(other.steps_, {})) {}
  Undo& operator=(Undo&& other) noexcept {
    std::swap(steps_, other.steps_);
    return *this;
  }
  ~Undo() {
    for (; !steps_.empty(); steps_.pop_back()) steps_.back()();
  }

  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace spinloom::port
