#include "mpi/abi/topology.hpp"

#include <algorithm>

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

size_t length(int count) { return static_cast<size_t>(std::max(count, 0)); }

bool find_on_grid(Comm comm, Neighbours& found) {
  int dimensions = 0;
  if (real.Cartdim_get(comm, &dimensions) != success) return false;
  for (int i = 0; i < dimensions; ++i) {
    int before = proc_null;
    int behind = proc_null;
    if (real.Cart_shift(comm, i, 1, &before, &behind) != success) return false;
    for (const int neighbour : {before, behind}) found.to.push_back(neighbour);
  }
  found.from = found.to;
  return true;
}

bool find_in_graph(Comm comm, Neighbours& found) {
  int rank = 0;
  int count = 0;
  if (real.Comm_rank(comm, &rank) != success || real.Graph_neighbors_count(comm, rank, &count) != success) return false;
  found.to.resize(length(count));
  if (real.Graph_neighbors(comm, rank, count, found.to.data()) != success) return false;
  found.from = found.to;
  return true;
}

bool find_in_distributed_graph(Comm comm, Neighbours& found) {
  int in = 0;
  int out = 0;
  int is_weighted = 0;
  if (real.Dist_graph_neighbors_count(comm, &in, &out, &is_weighted) != success) return false;
  found.from.resize(length(in));
  found.to.resize(length(out));
  std::vector<int> in_weights(length(in) + 1);
  std::vector<int> out_weights(length(out) + 1);
  return real.Dist_graph_neighbors(comm, in, found.from.data(), in_weights.data(), out, found.to.data(),
                                   out_weights.data()) == success;
}

}  // namespace

Neighbours neighbours_of(Comm comm) {
  Neighbours found;
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology == cartesian) found.known = find_on_grid(comm, found);
  if (topology == graph) found.known = find_in_graph(comm, found);
  if (topology == distributed_graph) found.known = find_in_distributed_graph(comm, found);
  return found;
}

namespace {

bool repeats(std::vector<int> ranks) {
  std::erase(ranks, proc_null);
  std::ranges::sort(ranks);
  return std::ranges::adjacent_find(ranks) != ranks.end();
}

// Whether it is so on any rank.
bool on_any(bool mine, Comm comm) {
  int size = 0;
  if (real.Comm_size(comm, &size) != success) return true;
  const auto told = static_cast<uint8_t>(mine ? 1 : 0);
  std::vector<uint8_t> each(static_cast<size_t>(size), 1);
  const Datatype byte = handles().byte;
  if (real.Allgather(&told, 1, byte, each.data(), 1, byte, comm) != success) return true;
  return std::ranges::any_of(each, [](uint8_t one) { return one != 0; });
}

}  // namespace

// MPIs, and the forms of a call, differ in which of two messages between the same ranks goes to which slot.
Neighbours distinct_neighbours_of(Comm comm) {
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology != cartesian && topology != graph && topology != distributed_graph) return {};
  Neighbours found = neighbours_of(comm);
  found.known = !on_any(!found.known || repeats(found.to) || repeats(found.from), comm);
  return found;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
