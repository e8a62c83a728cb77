// RmaWindow::wait_for - how calls of windows on the NIC wait.
//
// Contract: wait_for() calls test(&done) under the lock until `done` is not 0; test() returns a code of Portals. In
//   between the layer and the MPI make progress. Threads and time: see rma_window.hpp.
#pragma once

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/entry/spin.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

template <class Test>
int RmaWindow::wait_for(Test test) {
  Spin spin;
  for (;;) {
    {
      const Lock lock;
      int done = 0;
      if (test(&done) != PTL_OK) return failed();
      if (done != 0) return success;
    }
    if (layer.has_work()) layer.progress(Layer::Waiting::blocked);
    if (!spin.pause()) continue;
    int flag = 0;
    (void)real.Iprobe(any_source, any_tag, layer.teams.comm(), &flag, status_ignore);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
