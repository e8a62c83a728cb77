// World - the name under which the ranks of one MPI_COMM_WORLD on one machine find each other without a call of MPI.
//
// Contract: world_name() makes the name from what the launcher put into this process: the namespace of PMIx, the job
//   and step of Slurm, the application of PALS, or the process at the other end of PMI_FD (MPICH's Hydra). It returns
//   an empty name if none of them is there: then the layer stays off. local_ranks() returns how many ranks of the world
//   run on this machine, if a launcher says so. foreign_launcher() describes the error if an MPI whose world has one
//   rank was started as one of several processes.
// Invariants: (1) ranks of one world on one machine get the same name, ranks of other worlds another; (2) the name is a
//   short word of letters, digits and dashes, safe as a file's name.
// Threads: none. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spinloom::mpi {

// `prefix`: the part of the name that the user's environment gives. `size`: the number of ranks of the world.
[[nodiscard]] std::string world_name(std::string_view prefix, int64_t size);

// Makes the name for a world of this process alone, with a launcher or without.
[[nodiscard]] std::string lone_name(std::string_view prefix);

// Returns 0 if no launcher says the number, or if its variables are about other processes than the `size` ranks.
[[nodiscard]] uint32_t local_ranks(int64_t size);

// Returns the number of tasks of node `node` in Slurm's list of tasks per node: "2,1(x3)" is 2 tasks, then 1 on each of
// three nodes. 0: the list is not understood, has no such node, or does not have `size` tasks in all.
[[nodiscard]] uint32_t tasks_of_node(std::string_view list, int64_t node, int64_t size);

// Returns a sentence, in one of the launcher's processes only; empty if nothing is wrong. A launcher within another one
// passes on the outer one's variables, so nothing is wrong if any of the variables gives a size of one rank.
[[nodiscard]] std::string foreign_launcher();

}  // namespace spinloom::mpi
