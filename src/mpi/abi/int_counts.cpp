#include "mpi/abi/int_counts.hpp"

#include <mutex>
#include <set>
#include <vector>

#include "mpi/abi/topology.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Returns a copy of the list that lives for ever, because a non-blocking call may read its lists until it ends. Equal
// lists are kept once.
const int* keep_forever(std::vector<int> list) {
  static std::mutex mutex;
  static auto& lists = *new std::set<std::vector<int>>;
  const std::lock_guard lock(mutex);
  return lists.insert(std::move(list)).first->data();
}

// Lists of a call as ints.
class IntLists {
 public:
  template <class T>
  const int* as_ints(const T* wide, int length) {
    std::vector<int> ints(static_cast<size_t>(length));
    for (size_t i = 0; i < ints.size(); ++i) {
      ints[i] = static_cast<int>(wide[i]);
      fits_ = fits_ && ints[i] == wide[i];
    }
    return keep_forever(std::move(ints));
  }
  int as_int(Count wide) {
    const auto value = static_cast<int>(wide);
    fits_ = fits_ && value == wide;
    return value;
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
  const bool is_known = real.Comm_test_inter(comm, &is_inter) == success &&
                        (is_inter != 0 ? real.Comm_remote_size(comm, &size) : real.Comm_size(comm, &size)) == success;
  return is_known ? size : 0;
}

// Returns the number of entries that the lists of a rooted call have at this rank.
int lists_at_root(int root, Comm comm) {
  int rank = 0;
  int is_inter = 0;
  if (real.Comm_rank(comm, &rank) != success || real.Comm_test_inter(comm, &is_inter) != success) return 0;
  return (is_inter != 0 ? root < 0 && root != proc_null : rank == root) ? size_of(comm) : 0;
}

struct Lengths {
  int out, in;
};
Lengths lengths_of_all(const void* out, Comm comm) {
  const int size = size_of(comm);
  return {out == in_place ? 0 : size, size};
}
Lengths lengths_of_neighbours(const void*, Comm comm) {
  const Neighbours neighbours = neighbours_of(comm);
  return {static_cast<int>(neighbours.to.size()), static_cast<int>(neighbours.from.size())};
}

// Types is a datatype for all blocks, or a list of datatypes.
template <auto small, auto lengths, class Types, class... More>
int exchange(const void* out, const Count* out_counts, const Aint* out_displs, Types out_types, void* in,
             const Count* in_counts, const Aint* in_displs, Types in_types, Comm comm, More... more) {
  const Lengths n = lengths(out, comm);
  IntLists lists;
  const int* const counts = lists.as_ints(out_counts, n.out);
  const int* const displs = lists.as_ints(out_displs, n.out);
  const int* const their_counts = lists.as_ints(in_counts, n.in);
  const int* const their_displs = lists.as_ints(in_displs, n.in);
  return lists.call(comm, [&] {
    return (real.*small)(out, counts, displs, out_types, in, their_counts, their_displs, in_types, comm, more...);
  });
}

// The places of MPI_Neighbor_alltoallw are addresses in both forms.
template <auto small, class... More>
int exchange_neighbours_w(const void* out, const Count* out_counts, const Aint* out_displs, const Datatype* out_types,
                          void* in, const Count* in_counts, const Aint* in_displs, const Datatype* in_types, Comm comm,
                          More... more) {
  const Lengths n = lengths_of_neighbours(out, comm);
  IntLists lists;
  const int* const counts = lists.as_ints(out_counts, n.out);
  const int* const their_counts = lists.as_ints(in_counts, n.in);
  return lists.call(comm, [&] {
    return (real.*small)(out, counts, out_displs, out_types, in, their_counts, in_displs, in_types, comm, more...);
  });
}

template <auto small, auto lengths, class... More>
int gather_all_v(const void* out, Count out_count, Datatype out_type, void* in, const Count* in_counts,
                 const Aint* in_displs, Datatype in_type, Comm comm, More... more) {
  const Lengths n = lengths(nullptr, comm);
  IntLists lists;
  const int count = out == in_place ? 0 : lists.as_int(out_count);
  const int* const counts = lists.as_ints(in_counts, n.in);
  const int* const displs = lists.as_ints(in_displs, n.in);
  return lists.call(comm,
                    [&] { return (real.*small)(out, count, out_type, in, counts, displs, in_type, comm, more...); });
}

template <auto small, class... More>
int reduce_scatter(const void* out, void* in, const Count* counts, Datatype type, Op operation, Comm comm,
                   More... more) {
  int size = 0;
  if (real.Comm_size(comm, &size) != success) size = 0;
  IntLists lists;
  const int* const ints = lists.as_ints(counts, size);
  return lists.call(comm, [&] { return (real.*small)(out, in, ints, type, operation, comm, more...); });
}

template <auto small, class... More>
int gather_v(const void* out, Count out_count, Datatype out_type, void* in, const Count* in_counts,
             const Aint* in_displs, Datatype in_type, int root, Comm comm, More... more) {
  const int n = lists_at_root(root, comm);
  IntLists lists;
  const int count = out == in_place ? 0 : lists.as_int(out_count);
  const int* const counts = lists.as_ints(in_counts, n);
  const int* const displs = lists.as_ints(in_displs, n);
  return lists.call(
      comm, [&] { return (real.*small)(out, count, out_type, in, counts, displs, in_type, root, comm, more...); });
}

template <auto small, class... More>
int scatter_v(const void* out, const Count* out_counts, const Aint* out_displs, Datatype out_type, void* in,
              Count in_count, Datatype in_type, int root, Comm comm, More... more) {
  const int n = lists_at_root(root, comm);
  IntLists lists;
  const int* const counts = lists.as_ints(out_counts, n);
  const int* const displs = lists.as_ints(out_displs, n);
  const int count = in == in_place ? 0 : lists.as_int(in_count);
  return lists.call(
      comm, [&] { return (real.*small)(out, counts, displs, out_type, in, count, in_type, root, comm, more...); });
}

}  // namespace

void int_count_collectives() {
#define SPINLOOM_BY(name, iname, make)                                                                           \
  if (real.large.name == nullptr) real.wide.name = make.template operator()<&Counted<int>::name>();              \
  if (real.large.iname == nullptr) real.wide.iname = make.template operator()<&Counted<int>::iname, Request*>(); \
  if (real.large.name##_init == nullptr && real.name##_init != nullptr) {                                        \
    real.wide.name##_init = make.template operator()<&Counted<int>::name##_init, Info, Request*>();              \
  }
  const auto all_v = []<auto small, class... More>() { return &exchange<small, lengths_of_all, Datatype, More...>; };
  const auto neighbours_v = []<auto small, class... More>() {
    return &exchange<small, lengths_of_neighbours, Datatype, More...>;
  };
  const auto all_w = []<auto small, class... More>() {
    return &exchange<small, lengths_of_all, const Datatype*, More...>;
  };
  const auto neighbours_w = []<auto small, class... More>() { return &exchange_neighbours_w<small, More...>; };
  const auto gather_all = []<auto small, class... More>() { return &gather_all_v<small, lengths_of_all, More...>; };
  const auto gather_neighbours = []<auto small, class... More>() {
    return &gather_all_v<small, lengths_of_neighbours, More...>;
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
