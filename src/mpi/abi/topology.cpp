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

namespace {

bool repeats(std::vector<int> ranks) {
  std::erase(ranks, proc_null);
  std::ranges::sort(ranks);
  return std::ranges::adjacent_find(ranks) != ranks.end();
}

// One int from each slot of `to`: its number. What came to the slots of `from`; empty if the MPI fails.
class Probe {
 public:
  explicit Probe(const Neighbours& all, Comm comm)
      : comm_(comm),
        out_(all.to.size()),
        in_(all.from.size()),
        sent_(std::max<size_t>(1, out_)),
        counts_(std::max({size_t{1}, out_, in_}), static_cast<int>(sizeof(int))),
        types_(counts_.size(), handles().byte) {
    std::iota(sent_.begin(), sent_.end(), 0);
    for (size_t i = 0; i < counts_.size(); ++i) {
      places_.push_back(static_cast<int>(i * sizeof(int)));
      addresses_.push_back(static_cast<Aint>(i * sizeof(int)));
    }
  }

  [[nodiscard]] std::vector<int> got(Spread spread, Completion form) const {
    std::vector<int> got(std::max<size_t>(1, in_), -1);
    if (call(spread, form, got.data()) != success) return {};
    got.resize(in_);
    return got;
  }

 private:
  [[nodiscard]] int call(Spread spread, Completion form, int* got) const {
    constexpr int one = sizeof(int);
    const Datatype byte = handles().byte;
    const auto same = [&](auto function, auto... more) {
      return function(sent_.data(), one, byte, got, one, byte, comm_, more...);
    };
    const auto several = [&](auto function, auto... more) {
      return function(sent_.data(), counts_.data(), places_.data(), byte, got, counts_.data(), places_.data(), byte,
                      comm_, more...);
    };
    const auto types = [&](auto function, auto... more) {
      return function(sent_.data(), counts_.data(), addresses_.data(), types_.data(), got, counts_.data(),
                      addresses_.data(), types_.data(), comm_, more...);
    };
    switch (spread) {
      case Spread::same: return in_form(form, same, real.Neighbor_alltoall, real.Ineighbor_alltoall);
      case Spread::several: return in_form(form, several, real.Neighbor_alltoallv, real.Ineighbor_alltoallv);
      case Spread::types: return in_form(form, types, real.Neighbor_alltoallw, real.Ineighbor_alltoallw);
    }
    return success;
  }

  template <class Call, class Blocking, class NonBlocking>
  static int in_form(Completion form, const Call& call, Blocking blocking, NonBlocking non_blocking) {
    if (form == Completion::blocking) return call(blocking);
    Request request{};
    const int code = call(non_blocking, &request);
    return code == success ? real.Wait(&request, status_ignore) : code;
  }

  Comm comm_;
  size_t out_, in_;
  std::vector<int> sent_, counts_, places_;
  std::vector<Aint> addresses_;
  std::vector<Datatype> types_;
};

// Whether no two slots have the same message.
bool is_matching(const std::vector<int>& from, const std::vector<int>& got) {
  if (got.size() != from.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0) continue;
    if (got[i] < 0) return false;
    for (size_t k = 0; k < i; ++k) {
      if (from[i] == from[k] && got[i] == got[k]) return false;
    }
  }
  return true;
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

Neighbours ordered_neighbours_of(Comm comm) {
  int topology = undefined;
  if (real.Topo_test(comm, &topology) != success) return {};
  if (topology != cartesian && topology != graph && topology != distributed_graph) return {};
  Neighbours found = neighbours_of(comm);
  std::vector<int> as_they_are(found.from.size());
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  found.orders.fill(as_they_are);
  if (!on_any(!found.known || repeats(found.to) || repeats(found.from), comm)) return found;
  const Probe probe(found, comm);
  for (const Spread spread : {Spread::same, Spread::several, Spread::types}) {
    for (const Completion form : {Completion::blocking, Completion::non_blocking}) {
      const std::vector<int> got = probe.got(spread, form);
      if (!is_matching(found.from, got)) {
        found.known = false;
        continue;
      }
      auto& order = found.orders[2 * static_cast<size_t>(spread) + static_cast<size_t>(form)];
      std::ranges::stable_sort(order, {}, [&](int slot) { return got[static_cast<size_t>(slot)]; });
    }
  }
  found.known = !on_any(!found.known, comm);
  return found;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
