// Shown - which of the library's names of MPI the process sees: those that it would find without the library, too.
//
// Contract: settle_shown() looks whether an MPI is loaded. If so, each MPI_X and PMPI_X of ours that no other object
//   defines is taken out of our symbol table, and weak references that were bound to it are null again. At the
//   process's start weak references to what nobody defines are null in any case. is_nobodys() says, while no MPI is
//   loaded, that a name is ours alone. dlsym_behind() is the dlsym that the program would call without ours.
// Invariants: (1) what has been taken out does not come back; (2) strong references keep what they were bound to.
// Threads: any; one that comes while another settles goes on at once. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::mpi {

enum class Moment : uint8_t { start, later };

void settle_shown(Moment moment);
[[nodiscard]] bool is_nobodys(const char* name);
[[nodiscard]] void* dlsym_behind();

}  // namespace spinloom::mpi
