// MpiBeside - whether this process has an MPI library, which may use the same launcher, and how far it has come.
//
// Contract: mpi_beside() says how far that library has come. It matters because the library and Spinloom share one
//   PMI-1 connection, and launchers differ in what they accept twice: those of MPICH answer every "init" and hang up
//   at the first "finalize"; Slurm answers only the first "init".
// Invariants: (1) of MPI only MPI_Initialized and MPI_Finalized are called, which is allowed at any time; nothing of
//   MPI is linked or loaded.
// Threads: any. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::live {

enum class MpiStage : uint8_t { absent, not_initialized, initialized, finalized };

struct MpiBeside {
  MpiStage stage = MpiStage::absent;
  bool open_mpi = false;  // Open MPI uses PMIx, never PMI-1
};

[[nodiscard]] MpiBeside mpi_beside();

}  // namespace spinloom::live
