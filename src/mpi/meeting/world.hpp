// World - the name under which the ranks of one MPI_COMM_WORLD on one machine find each other without a call of MPI.
//
// Contract: world_name() makes the name from what the launcher put into this process: the namespace of PMIx, the job
//   and step of Slurm or PALS, or the process at the other end of PMI_FD (MPICH's Hydra). Empty where none of them is
//   there: then no rank is known to be of this job, and the layer stays off. local_ranks() is how many ranks of it run
//   on this machine, where a launcher says so.
//   foreign_launcher() says what is wrong where an MPI whose world has one rank was started as one of several.
// Invariants: (1) ranks of one world on one machine get the same name, ranks of other worlds another; (2) the name is a
//   short word of letters, digits and dashes, safe as a file's name.
// Threads: none. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spinloom::mpi {

// `prefix`: what the user's environment adds to the name.
[[nodiscard]] std::string world_name(std::string_view prefix, int64_t size);

// For a world of this process alone, with a launcher or without.
[[nodiscard]] std::string lone_name(std::string_view prefix);

// 0: no launcher says it, or it speaks of other processes than the `size` ranks.
[[nodiscard]] uint32_t local_ranks(int64_t size);

// The number of tasks of node `node` in Slurm's list of tasks per node: "2,1(x3)" is 2 tasks, then 1 on each of three
// nodes. 0: the list is not understood, has no such node, or does not have `size` tasks in all.
[[nodiscard]] uint32_t tasks_of_node(std::string_view list, int64_t node, int64_t size);

// A sentence, of one process only; empty if nothing is wrong. Launchers within launchers hand on variables of the outer
// one: nothing is said where one of them speaks of one rank.
[[nodiscard]] std::string foreign_launcher();

}  // namespace spinloom::mpi
