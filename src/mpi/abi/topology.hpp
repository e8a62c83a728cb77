// Topology - the neighbours of this rank in a communicator, as the neighbourhood calls order them.
//
// Contract: neighbours_of() gives none where there is no topology. Threads: any. Time: none.
#pragma once

#include <array>
#include <vector>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

enum class Completion : uint8_t { blocking, non_blocking };
enum class Spread : uint8_t { same, several, types };  // MPI_Neighbor_alltoall, and those with v and w

struct Neighbours {
  bool known = false;
  std::vector<int> to;  // ranks of the communicator, or proc_null
  std::vector<int> from;
  // The slots of `from`, as messages of one sender come: in the order of its slots. Where a rank is a neighbour more than
  // once, MPIs differ in which of its messages goes to which slot, and so do the calls of one MPI.
  std::array<std::vector<int>, 6> orders;
  [[nodiscard]] const std::vector<int>& order(Spread spread, Completion form) const {
    return orders[2 * static_cast<size_t>(spread) + static_cast<size_t>(form)];
  }
};

[[nodiscard]] Neighbours neighbours_of(Comm comm);
// The same with the orders, which the MPI's own calls tell. Collective.
[[nodiscard]] Neighbours ordered_neighbours_of(Comm comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
