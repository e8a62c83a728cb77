// MpiBeside - the MPI library of this process, where there is one: it has dealings with the same launcher.
//
// Contract: mpi_beside() says how far that library is. PMI-1 is one connection for both, and launchers differ in what
//   they take twice: MPICH's answer every "init" and hang up at the first "finalize"; Slurm answers the first "init"
//   only.
// Invariants: (1) nothing of MPI is linked, loaded or called but MPI_Initialized and MPI_Finalized, which may be called
//   at any time.
// Threads: any. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::live {

enum class MpiStage : uint8_t { absent, ahead, running, over };

struct MpiBeside {
  MpiStage stage = MpiStage::absent;
  bool open_mpi = false;  // it has PMIx, never PMI-1
};

[[nodiscard]] MpiBeside mpi_beside();

}  // namespace spinloom::live
