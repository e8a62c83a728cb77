// Shown - hides those of the library's MPI names that the process would not find without the library.
//
// Contract: settle_shown() looks for a loaded MPI. If there is one, each MPI_X and PMPI_X of ours that no other object
//   defines is taken out of our symbol table, and weak references that were bound to it are null again. At the
//   process's start, weak references to names that only we define are made null even if no MPI is loaded.
//   is_ours_alone() is true if no MPI is loaded and only we define a name. dlsym_behind() returns the dlsym that the
//   program would call without ours.
// Invariants: (1) a name that was taken out does not come back; (2) strong references keep what they were bound to.
// Threads: any; a thread that calls while another settles returns at once. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::mpi {

enum class Moment : uint8_t { start, later };

void settle_shown(Moment moment);
[[nodiscard]] bool is_ours_alone(const char* name);
[[nodiscard]] void* dlsym_behind();

}  // namespace spinloom::mpi
