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

template <class Change>
void RmaWindow::change_under_lock(int target, Change change) {
  Spin spin;
  for (;;) {
    {
      const Lock lock;
      if (way_->begin_change(target)) {
        change();
        way_->end_change(target);
        return;
      }
    }
    (void)spin.pause();
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
