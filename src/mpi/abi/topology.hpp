// Topology - the neighbours of this rank in a communicator, as the neighbourhood calls order them.
//
// Contract: `is_known` is false in what neighbours_of() returns where there is no topology. Threads: any. Time: none.
#pragma once

#include <array>
#include <vector>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The forms of MPI_Neighbor_alltoall: plain is that call itself, v and w are its other forms. Completion
// says how each is completed.
enum class AlltoallForm : uint8_t { plain, v, w };
enum class Completion : uint8_t { blocking, non_blocking, persistent };

struct Neighbours {
  bool is_known = false;
  std::vector<int> to;  // ranks of the communicator, or proc_null
  std::vector<int> from;
  // The slots of `from` in an order in which the messages of one sender meet them, when it sends in the order of its
  // own. It differs among MPIs and forms where a neighbour is met twice.
  struct Order {
    bool is_known = false;
    std::vector<int> slots;
  };
  std::array<Order, 9> orders;  // the index is order()
  // This rank has a neighbour more than once, where others cannot know: no rank of the communicator may then use
  // `orders`.
  bool meets_twice = false;
  [[nodiscard]] const Order& order(AlltoallForm form, Completion completion) const {
    return orders[3 * static_cast<size_t>(completion) + static_cast<size_t>(form)];
  }
  [[nodiscard]] bool knows(AlltoallForm form, Completion completion) const {
    return is_known && order(form, completion).is_known;
  }
};

[[nodiscard]] Neighbours neighbours_of(Comm comm);
// The neighbours with their orders. What is known is known on all ranks alike; only `meets_twice` may differ.
[[nodiscard]] Neighbours ordered_neighbours_of(Comm comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
