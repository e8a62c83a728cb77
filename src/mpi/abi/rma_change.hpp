// Changes of a target's elements under its lock, for the sources of RmaWindow that accumulate.
//
// Contract: RmaWindow::change_under_lock() (rma_window.hpp) calls `change` once, while no other rank changes elements
//   of the target. A call that takes longer than `change_bytes_max` bytes do is made in parts.
// Threads: any. Time: none; it waits for ranks that hold the lock.
#pragma once

#include <cstdint>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_wait.hpp"
#include "mpi/abi/rma_window.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

constexpr int64_t change_bytes_max = 64 << 10;

// A target's lock for changes, held until the end of the scope, also by an exception.
class HeldChange {
 public:
  HeldChange(RmaWay& way, int target) : way_(way), target_(target) {}
  HeldChange(const HeldChange&) = delete;
  HeldChange& operator=(const HeldChange&) = delete;
  ~HeldChange() { way_.end_change(target_); }

 private:
  RmaWay& way_;
  int target_;
};

template <class Change>
void RmaWindow::change_under_lock(int target, Change change) {
  Spin spin;
  for (;;) {
    {
      const Lock lock;
      if (way_->begin_change(target)) {
        const HeldChange held(*way_, target);
        return change();
      }
    }
    (void)spin.pause();
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
