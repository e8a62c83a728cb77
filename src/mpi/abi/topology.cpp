#include "mpi/abi/topology.hpp"

#include <algorithm>
#include <numeric>

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

Neighbours ordered_neighbours_of(Comm comm) {
  Neighbours found = neighbours_of(comm);
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology != cartesian && topology != graph && topology != distributed_graph) return {};
  // Each message is the number of the slot that it comes from.
  const size_t out = found.to.size();
  const size_t in = found.from.size();
  std::vector<int> sent(out);
  std::iota(sent.begin(), sent.end(), 0);
  std::vector<int> got(in, -1);
  std::vector<int> out_counts(out, static_cast<int>(sizeof(int)));
  std::vector<int> in_counts(in, static_cast<int>(sizeof(int)));
  std::vector<Aint> out_places(out);
  std::vector<Aint> in_places(in);
  for (size_t i = 0; i < out; ++i) out_places[i] = static_cast<Aint>(i * sizeof(int));
  for (size_t i = 0; i < in; ++i) in_places[i] = static_cast<Aint>(i * sizeof(int));
  const std::vector<Datatype> types(std::max<size_t>(1, std::max(in, out)), handles().byte);
  const int code = real.Neighbor_alltoallw(sent.data(), out_counts.data(), out_places.data(), types.data(), got.data(),
                                           in_counts.data(), in_places.data(), types.data(), comm);
  found.known = found.known && code == success;
  found.order.resize(in);
  std::iota(found.order.begin(), found.order.end(), 0);
  std::ranges::stable_sort(found.order, {}, [&](int slot) { return got[static_cast<size_t>(slot)]; });
  // Two messages of one sender from one slot, or one from nowhere: not a matching.
  for (size_t i = 0; i < in && found.known; ++i) {
    if (found.from[i] < 0) continue;
    found.known = got[i] >= 0;
    for (size_t k = 0; k < i; ++k) found.known = found.known && !(found.from[i] == found.from[k] && got[i] == got[k]);
  }
  // All ranks go one way.
  int size = 0;
  if (real.Comm_size(comm, &size) != success) return {};
  const auto mine = static_cast<uint8_t>(found.known ? 1 : 0);
  std::vector<uint8_t> each(static_cast<size_t>(size));
  if (real.Allgather(&mine, 1, handles().byte, each.data(), 1, handles().byte, comm) != success) return {};
  found.known = std::ranges::all_of(each, [](uint8_t one) { return one != 0; });
  return found;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
