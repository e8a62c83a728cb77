// RmaWindow::wait_for - how calls of windows wait.
//
// Contract: wait_for() calls test(&done) under the lock until `done` is not 0; test() returns a code of Portals. In
//   between the layer and the MPI make progress; who has waited for long sleeps between two looks, where the way can.
//   Where the machine has a processor for each rank, that is after some milliseconds, because to be woken takes longer
//   than most waits; elsewhere soon, because others need the processor.
// Threads and time: see rma_window.hpp.
#pragma once

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/entry/spin.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

template <class Test>
int RmaWindow::wait_for(Test test, int lock_of) {
  const int yields_before_sleep = layer.has_processor_each ? 2'000 : 50;
  Spin spin;
  int yields = 0;
  int code = PTL_OK;
  const auto is_over = [&] {
    const Lock lock;
    int done = 0;
    code = test(&done);
    return code != PTL_OK || done != 0;
  };
  for (;;) {
    if (is_over()) return code == PTL_OK ? success : failed();
    if (layer.has_work()) {
      layer.progress(Layer::Waiting::blocked);
      yields = 0;
    }
    if (!spin.pause()) continue;
    int flag = 0;
    (void)real.Iprobe(any_source, any_tag, layer.teams.comm(), &flag, status_ignore);
    if (++yields <= yields_before_sleep) continue;
    bool is_done = false;
    const auto is_needed = [&] { return !(is_done = is_over()); };
    if (way_->sleep(lock_of, is_needed) && is_done) return code == PTL_OK ? success : failed();
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
