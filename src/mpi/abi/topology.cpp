#include "mpi/abi/topology.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "mpi/abi/version.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

size_t length(int count) { return static_cast<size_t>(std::max(count, 0)); }

bool find_on_grid(Comm comm, Neighbours& neighbours) {
  int dimensions = 0;
  if (real.Cartdim_get(comm, &dimensions) != success) return false;
  for (int i = 0; i < dimensions; ++i) {
    int before = proc_null;
    int behind = proc_null;
    if (real.Cart_shift(comm, i, 1, &before, &behind) != success) return false;
    for (const int neighbour : {before, behind}) neighbours.to.push_back(neighbour);
  }
  neighbours.from = neighbours.to;
  return true;
}

bool find_in_graph(Comm comm, Neighbours& neighbours) {
  int rank = 0;
  int count = 0;
  if (real.Comm_rank(comm, &rank) != success || real.Graph_neighbors_count(comm, rank, &count) != success) return false;
  neighbours.to.resize(length(count));
  if (real.Graph_neighbors(comm, rank, count, neighbours.to.data()) != success) return false;
  neighbours.from = neighbours.to;
  return true;
}

bool find_in_distributed_graph(Comm comm, Neighbours& neighbours) {
  int in = 0;
  int out = 0;
  int is_weighted = 0;
  if (real.Dist_graph_neighbors_count(comm, &in, &out, &is_weighted) != success) return false;
  neighbours.from.resize(length(in));
  neighbours.to.resize(length(out));
  std::vector<int> in_weights(length(in) + 1);
  std::vector<int> out_weights(length(out) + 1);
  return real.Dist_graph_neighbors(comm, in, neighbours.from.data(), in_weights.data(), out, neighbours.to.data(),
                                   out_weights.data()) == success;
}

}  // namespace

Neighbours neighbours_of(Comm comm) {
  Neighbours neighbours;
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology == cartesian) neighbours.is_known = find_on_grid(comm, neighbours);
  if (topology == graph) neighbours.is_known = find_in_graph(comm, neighbours);
  if (topology == distributed_graph) neighbours.is_known = find_in_distributed_graph(comm, neighbours);
  return neighbours;
}

namespace {

enum class SlotOrder : uint8_t { unknown, same, mirrored, reversed };

// The n-th message of a sender to a neighbour that it meets twice goes to the n-th slot (same), to the other one of
// that dimension, as MPI 4.0 says (mirrored), or to the n-th from the last (reversed).
struct OrdersOfVersion {
  std::string_view version_prefix;
  std::array<SlotOrder, 9> orders;  // blocking, non-blocking and persistent, each for alltoall, alltoallv, alltoallw
};
constexpr auto same = SlotOrder::same;
constexpr auto mirrored = SlotOrder::mirrored;
constexpr auto reversed = SlotOrder::reversed;
constexpr auto none = SlotOrder::unknown;
// The orders of these versions, as seen on grids with periodic dimensions of one and two ranks.
constexpr OrdersOfVersion on_grids[] = {
    {"Open MPI v4.1.4,", {mirrored, mirrored, mirrored, same, same, same, none, none, none}},
    {"MPICH Version: 4.0.2 ", {reversed, same, same, reversed, same, same, reversed, same, same}},
    {"MPICH Version: 5.0.2 ",
     {mirrored, mirrored, mirrored, mirrored, mirrored, mirrored, mirrored, mirrored, mirrored}},
};
constexpr OrdersOfVersion where_none_is_met_twice = {"", {same, same, same, same, same, same, same, same, same}};
constexpr OrdersOfVersion unseen = {"", {}};

// Returns the MPI's version, with one space in place of each run of white space, so that it can be compared.
std::string spaced_version() {
  std::string version;
  for (const char letter : library_version()) {
    const bool is_space = std::isspace(static_cast<unsigned char>(letter)) != 0;
    if (!is_space) version.push_back(letter);
    if (is_space && !version.ends_with(' ')) version.push_back(' ');
  }
  return version;
}

const OrdersOfVersion& orders_on_grids() {
  static const OrdersOfVersion& orders = []() -> const OrdersOfVersion& {
    const std::string version = spaced_version();
    for (const OrdersOfVersion& version_orders : on_grids) {
      if (version.starts_with(version_orders.version_prefix)) return version_orders;
    }
    return unseen;
  }();
  return orders;
}

std::vector<int> slots_in(SlotOrder order, size_t count) {
  std::vector<int> slots(order == SlotOrder::unknown ? 0 : count);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int>(order == mirrored ? i ^ 1U : i);
  if (order == reversed) std::ranges::reverse(slots);
  return slots;
}

bool repeats(std::vector<int> ranks) {
  std::erase(ranks, proc_null);
  std::ranges::sort(ranks);
  return std::ranges::adjacent_find(ranks) != ranks.end();
}

// True if ranks meet a neighbour twice on a grid, which all of its ranks see alike: along a periodic dimension of one
// or two ranks the two neighbours are the same.
bool grid_repeats(Comm comm) {
  int dimensions = 0;
  if (real.Cartdim_get(comm, &dimensions) != success) return true;
  std::vector<int> sides(length(dimensions) + 1);
  std::vector<int> periods(sides.size());
  std::vector<int> place(sides.size());
  if (real.Cart_get(comm, dimensions, sides.data(), periods.data(), place.data()) != success) return true;
  for (size_t i = 0; i < length(dimensions); ++i) {
    if (periods[i] != 0 && sides[i] <= 2) return true;
  }
  return false;
}

// True if a rank meets a neighbour twice on a graph, whose edges all of its ranks see.
bool graph_repeats(Comm comm) {
  int size = 0;
  if (real.Comm_size(comm, &size) != success) return true;
  for (int rank = 0; rank < size; ++rank) {
    int count = 0;
    if (real.Graph_neighbors_count(comm, rank, &count) != success) return true;
    std::vector<int> ranks(length(count) + 1, proc_null);
    if (real.Graph_neighbors(comm, rank, count, ranks.data()) != success || repeats(std::move(ranks))) return true;
  }
  return false;
}

}  // namespace

Neighbours ordered_neighbours_of(Comm comm) {
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology != cartesian && topology != graph && topology != distributed_graph) return {};
  Neighbours neighbours = neighbours_of(comm);
  const OrdersOfVersion* by_version = &where_none_is_met_twice;
  if (topology == cartesian && grid_repeats(comm)) by_version = &orders_on_grids();
  if (topology == graph && graph_repeats(comm)) by_version = &unseen;
  neighbours.meets_twice = topology == distributed_graph && (repeats(neighbours.to) || repeats(neighbours.from));
  for (size_t i = 0; i < neighbours.orders.size(); ++i) {
    neighbours.orders[i] = {by_version->orders[i] != SlotOrder::unknown,
                            slots_in(by_version->orders[i], neighbours.from.size())};
  }
  return neighbours;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
