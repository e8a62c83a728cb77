// Topology - the neighbours of this rank in a communicator, as the neighbourhood calls order them.
//
// Contract: neighbours_of() gives none where there is no topology. Threads: any. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

struct Neighbours {
  bool known = false;
  std::vector<int> to;  // ranks of the communicator, or proc_null
  std::vector<int> from;
};

[[nodiscard]] Neighbours neighbours_of(Comm comm);
// The same; not known on any rank where one of them meets a neighbour twice. Collective.
[[nodiscard]] Neighbours distinct_neighbours_of(Comm comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
