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
  // The slots of `from`, as messages of one sender come: in the order of its slots. Where a rank is a neighbour more than
  // once, the MPIs differ in which of its messages goes to which slot.
  std::vector<int> order;
};

[[nodiscard]] Neighbours neighbours_of(Comm comm);
// The same with `order`, which the MPI itself is asked for by a call. Collective.
[[nodiscard]] Neighbours ordered_neighbours_of(Comm comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
