#include "mpi/abi/int_counts.hpp"

#include <mutex>
#include <set>
#include <vector>

#include "mpi/abi/topology.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Returns a copy of the list that lives for ever, because a non-blocking call may read its lists until it ends. Equal
// lists are kept once.
const int* kept(std::vector<int> list) {
  static std::mutex mutex;
  static auto& lists = *new std::set<std::vector<int>>;
  const std::lock_guard lock(mutex);
  return lists.insert(std::move(list)).first->data();
}

// Lists of a call as ints.
class Lists {
 public:
  template <class T>
  const int* ints(const T* wide, int length) {
    std::vector<int> made(static_cast<size_t>(length));
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = static_cast<int>(wide[i]);
      fits_ = fits_ && made[i] == wide[i];
    }
    return kept(std::move(made));
  }
  int ints(Count wide) {
    const auto made = static_cast<int>(wide);
    fits_ = fits_ && made == wide;
    return made;
  }
  template <class Call>
  int call(Comm comm, Call&& call) const {
    if (fits_) return call();
    const int answer = real.Comm_call_errhandler(comm, error_other);
    return answer == success ? error_other : answer;
  }

 private:
  bool fits_ = true;
};

int size_of(Comm comm) {
  int is_inter = 0;
  int size = 0;
  const bool known = real.Comm_test_inter(comm, &is_inter) == success &&
                     (is_inter != 0 ? real.Comm_remote_size(comm, &size) : real.Comm_size(comm, &size)) == success;
  return known ? size : 0;
}

// Returns the number of entries that the lists of a rooted call have at this rank.
int at_root(int root, Comm comm) {
  int rank = 0;
  int is_inter = 0;
  if (real.Comm_rank(comm, &rank) != success || real.Comm_test_inter(comm, &is_inter) != success) return 0;
  return (is_inter != 0 ? root < 0 && root != proc_null : rank == root) ? size_of(comm) : 0;
}

struct Lengths {
  int out, in;
};
Lengths of_all(const void* out, Comm comm) {
  const int size = size_of(comm);
  return {out == in_place ? 0 : size, size};
}
Lengths of_neighbours(const void*, Comm comm) {
  const Neighbours found = neighbours_of(comm);
  return {static_cast<int>(found.to.size()), static_cast<int>(found.from.size())};
}

// Types is a datatype for all blocks, or a list of datatypes.
template <auto small, auto lengths, class Types, class... More>
int exchange(const void* out, const Count* out_counts, const Aint* out_places, Types out_types, void* in,
             const Count* in_counts, const Aint* in_places, Types in_types, Comm comm, More... more) {
  const Lengths n = lengths(out, comm);
  Lists lists;
  const int* const counts = lists.ints(out_counts, n.out);
  const int* const places = lists.ints(out_places, n.out);
  const int* const their_counts = lists.ints(in_counts, n.in);
  const int* const their_places = lists.ints(in_places, n.in);
  return lists.call(comm, [&] {
    return (real.*small)(out, counts, places, out_types, in, their_counts, their_places, in_types, comm, more...);
  });
}

// The places of MPI_Neighbor_alltoallw are addresses in both forms.
template <auto small, class... More>
int exchange_neighbours_w(const void* out, const Count* out_counts, const Aint* out_places, const Datatype* out_types,
                          void* in, const Count* in_counts, const Aint* in_places, const Datatype* in_types, Comm comm,
                          More... more) {
  const Lengths n = of_neighbours(out, comm);
  Lists lists;
  const int* const counts = lists.ints(out_counts, n.out);
  const int* const their_counts = lists.ints(in_counts, n.in);
  return lists.call(comm, [&] {
    return (real.*small)(out, counts, out_places, out_types, in, their_counts, in_places, in_types, comm, more...);
  });
}

template <auto small, auto lengths, class... More>
int gather_all_v(const void* out, Count out_count, Datatype out_type, void* in, const Count* in_counts,
                 const Aint* in_places, Datatype in_type, Comm comm, More... more) {
  const Lengths n = lengths(nullptr, comm);
  Lists lists;
  const int count = out == in_place ? 0 : lists.ints(out_count);
  const int* const counts = lists.ints(in_counts, n.in);
  const int* const places = lists.ints(in_places, n.in);
  return lists.call(comm,
                    [&] { return (real.*small)(out, count, out_type, in, counts, places, in_type, comm, more...); });
}

template <auto small, class... More>
int reduce_scatter(const void* out, void* in, const Count* counts, Datatype type, Op operation, Comm comm,
                   More... more) {
  int size = 0;
  if (real.Comm_size(comm, &size) != success) size = 0;
  Lists lists;
  const int* const ints = lists.ints(counts, size);
  return lists.call(comm, [&] { return (real.*small)(out, in, ints, type, operation, comm, more...); });
}

template <auto small, class... More>
int gather_v(const void* out, Count out_count, Datatype out_type, void* in, const Count* in_counts,
             const Aint* in_places, Datatype in_type, int root, Comm comm, More... more) {
  const int n = at_root(root, comm);
  Lists lists;
  const int count = out == in_place ? 0 : lists.ints(out_count);
  const int* const counts = lists.ints(in_counts, n);
  const int* const places = lists.ints(in_places, n);
  return lists.call(
      comm, [&] { return (real.*small)(out, count, out_type, in, counts, places, in_type, root, comm, more...); });
}

template <auto small, class... More>
int scatter_v(const void* out, const Count* out_counts, const Aint* out_places, Datatype out_type, void* in,
              Count in_count, Datatype in_type, int root, Comm comm, More... more) {
  const int n = at_root(root, comm);
  Lists lists;
  const int* const counts = lists.ints(out_counts, n);
  const int* const places = lists.ints(out_places, n);
  const int count = in == in_place ? 0 : lists.ints(in_count);
  return lists.call(
      comm, [&] { return (real.*small)(out, counts, places, out_type, in, count, in_type, root, comm, more...); });
}

}  // namespace

void int_count_collectives() {
#define SPINLOOM_BY(name, iname, make)                                                                           \
  if (real.large.name == nullptr) real.wide.name = make.template operator()<&Counted<int>::name>();              \
  if (real.large.iname == nullptr) real.wide.iname = make.template operator()<&Counted<int>::iname, Request*>(); \
  if (real.large.name##_init == nullptr && real.name##_init != nullptr) {                                        \
    real.wide.name##_init = make.template operator()<&Counted<int>::name##_init, Info, Request*>();              \
  }
  const auto all_v = []<auto small, class... More>() { return &exchange<small, of_all, Datatype, More...>; };
  const auto neighbours_v = []<auto small, class... More>() {
    return &exchange<small, of_neighbours, Datatype, More...>;
  };
  const auto all_w = []<auto small, class... More>() { return &exchange<small, of_all, const Datatype*, More...>; };
  const auto neighbours_w = []<auto small, class... More>() { return &exchange_neighbours_w<small, More...>; };
  const auto gather_all = []<auto small, class... More>() { return &gather_all_v<small, of_all, More...>; };
  const auto gather_neighbours = []<auto small, class... More>() {
    return &gather_all_v<small, of_neighbours, More...>;
  };
  const auto gather = []<auto small, class... More>() { return &gather_v<small, More...>; };
  const auto scatter = []<auto small, class... More>() { return &scatter_v<small, More...>; };
  const auto bcast = []<auto small, class... More>() {
    return &IntCountForm<int(void*, Count, Datatype, int, Comm, More...)>::template call<small>;
  };
  const auto rooted = []<auto small, class... More>() {
    return &IntCountForm<int(const void*, Count, Datatype, void*, Count, Datatype, int, Comm,
                             More...)>::template call<small>;
  };
  const auto plain = []<auto small, class... More>() {
    return &IntCountForm<int(const void*, Count, Datatype, void*, Count, Datatype, Comm,
                             More...)>::template call<small>;
  };
  SPINLOOM_BY(Bcast, Ibcast, bcast)
  SPINLOOM_BY(Gather, Igather, rooted)
  SPINLOOM_BY(Gatherv, Igatherv, gather)
  SPINLOOM_BY(Scatter, Iscatter, rooted)
  SPINLOOM_BY(Scatterv, Iscatterv, scatter)
  SPINLOOM_BY(Allgather, Iallgather, plain)
  SPINLOOM_BY(Allgatherv, Iallgatherv, gather_all)
  SPINLOOM_BY(Alltoall, Ialltoall, plain)
  SPINLOOM_BY(Alltoallv, Ialltoallv, all_v)
  SPINLOOM_BY(Alltoallw, Ialltoallw, all_w)
  SPINLOOM_BY(Neighbor_allgather, Ineighbor_allgather, plain)
  SPINLOOM_BY(Neighbor_allgatherv, Ineighbor_allgatherv, gather_neighbours)
  SPINLOOM_BY(Neighbor_alltoall, Ineighbor_alltoall, plain)
  SPINLOOM_BY(Neighbor_alltoallv, Ineighbor_alltoallv, neighbours_v)
  SPINLOOM_BY(Neighbor_alltoallw, Ineighbor_alltoallw, neighbours_w)
  const auto reduce = []<auto small, class... More>() {
    return &IntCountForm<int(const void*, void*, Count, Datatype, Op, int, Comm, More...)>::template call<small>;
  };
  const auto reduce_all = []<auto small, class... More>() {
    return &IntCountForm<int(const void*, void*, Count, Datatype, Op, Comm, More...)>::template call<small>;
  };
  const auto scatter_reduced = []<auto small, class... More>() { return &reduce_scatter<small, More...>; };
  SPINLOOM_BY(Reduce, Ireduce, reduce)
  SPINLOOM_BY(Allreduce, Iallreduce, reduce_all)
  SPINLOOM_BY(Reduce_scatter, Ireduce_scatter, scatter_reduced)
  SPINLOOM_BY(Reduce_scatter_block, Ireduce_scatter_block, reduce_all)
  SPINLOOM_BY(Scan, Iscan, reduce_all)
  SPINLOOM_BY(Exscan, Iexscan, reduce_all)
#undef SPINLOOM_BY
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
