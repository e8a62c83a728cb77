// Version - which MPI is loaded, by the text of MPI_Get_library_version.
//
// Contract: library_version() is the whole text, empty where the MPI gives none; it may be asked before MPI_Init.
// Invariants: the text does not change in a process. Threads: any. Time: one call of the MPI, at the first question.
#pragma once

#include <string>
#include <string_view>

namespace spinloom::mpi::SPINLOOM_ABI {

[[nodiscard]] const std::string& library_version();
[[nodiscard]] bool version_has(std::string_view words);
// True under MPICH's interface before MPICH 5, and where its version is not known.
[[nodiscard]] bool is_before_mpich_5();

}  // namespace spinloom::mpi::SPINLOOM_ABI
