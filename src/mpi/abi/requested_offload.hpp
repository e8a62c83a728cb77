// RequestedOffload - a collective call of the program as the NIC needs it: what it sends and receives, and why it stays
//   with the MPI, if it does.
//
// Contract: requested::Bcast and its like take the arguments of the call, without the request. carry() gives it to the
//   NIC, makes the request, and returns the code of the call; nothing: the MPI has to carry it.
// Invariants: (1) `stays` follows from what all ranks of the communicator see alike, but for wrong arguments: the
//   numbers of bytes, the communicator, the operation and its type; never from a rank's own datatypes, addresses or
//   MPI_IN_PLACE.
// Threads: the caller's lock. Time: none.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/patterns.hpp"
#include "mpi/nic/nic_team.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

struct RequestedOffload {
  const char* stays = nullptr;  // the reason why the MPI carries the call; null: the NIC does
  NicTeam::Facts facts{};
  std::shared_ptr<NicTeam> team;
  bool has_send = false, has_receive = false;
  bool in_place = false;  // `send` is a part of `receive`; the NIC may take it from there
  bool copies_send = false;  // what is sent must be copied, because what is received may overwrite it
  bool fills_receive = false;  // `receive` is also packed before the call: at the root of a broadcast
  bool keeps_receive = false;  // the program's memory for `receive` keeps its bytes
  Place send, receive;
  // Calls whose blocks differ, and those with neighbours: each block in its order, in place of `send` and `receive`.
  bool has_lists = false;
  std::vector<Place> sends, receives;
  std::vector<uint32_t> sources, destinations;
  std::vector<uint64_t> bytes_of_ranks;  // the bytes that each rank receives, in MPI_Reduce_scatter only

  // The call stays with the MPI unless its communicator is on the NIC.
  RequestedOffload(int operation, Comm comm);
  [[nodiscard]] int size() const { return static_cast<int>(team->size()); }
  [[nodiscard]] int rank() const { return static_cast<int>(team->rank()); }
  // True if this rank is the root. Notes the root in `facts`; the call stays if it is no rank.
  [[nodiscard]] bool is_root(int root);

  void set_send(const void* buffer, int64_t count, Datatype type) { has_send = set(send, buffer, count, type); }
  void set_receive(const void* buffer, int64_t count, Datatype type) {
    has_receive = set(receive, buffer, count, type);
  }
  // Returns the address of rank `i`'s block in a buffer with a block of `count` elements for each rank.
  [[nodiscard]] static const void* block(const void* buffer, int64_t count, Datatype type, int i);
  void set_bytes(int64_t count, Datatype type);
  void add(std::vector<Place>& blocks, const void* buffer, int64_t count, Datatype type);
  // Adds the blocks of `number` ranks or neighbours.
  template <class From>
  void add_all(std::vector<Place>& blocks, const From& from, int number);
  // Finds the neighbours. The call stays where none are known. Where the order of messages matters, it also stays on a
  // graph, and on a grid where this rank has a neighbour twice: MPIs differ in that order.
  enum class Order : uint8_t { any, matters };
  void set_neighbours(Order order);
  // Empties the blocks for MPI_PROC_NULL, whose memory must not be touched.
  static void leave_out_nobody(std::vector<Place>& blocks, const std::vector<uint32_t>& peers) {
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] == UINT32_MAX) blocks[i].count = 0;
    }
  }
  void set_arithmetic(Op op, Datatype type);

  [[nodiscard]] Comm comm() const { return comm_; }

 private:
  [[nodiscard]] bool set(Place& place, const void* buffer, int64_t count, Datatype type);
  Comm comm_;
};

template <class From>
void RequestedOffload::add_all(std::vector<Place>& blocks, const From& from, int number) {
  struct Sink {  // takes the blocks from send() of patterns.hpp
    RequestedOffload& requested;
    std::vector<Place>& blocks;
    void send(int, const void* buffer, int64_t count, Datatype type) const {
      requested.add(blocks, buffer, count, type);
    }
  };
  const Sink sink{*this, blocks};
  blocks.reserve(static_cast<size_t>(number));
  for (int i = 0; i < number; ++i) SPINLOOM_ABI::send(sink, i, from, i);
}

enum class Lasts : uint8_t { once, persistent };
[[nodiscard]] std::optional<int> carry(const char* call, RequestedOffload& requested, Lasts lasts, Request* request);

namespace requested {

struct Barrier {
  RequestedOffload operator()(Comm comm) const { return {SPL_BARRIER, comm}; }
};

struct Bcast {
  template <class N>
  RequestedOffload operator()(void* buffer, N count, Datatype type, int root, Comm comm) const {
    RequestedOffload made(SPL_BCAST, comm);
    if (made.stays != nullptr) return made;
    made.fills_receive = made.keeps_receive = made.is_root(root);
    made.set_bytes(count, type);
    made.set_receive(buffer, count, type);
    return made;
  }
};

struct Gather {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              int root, Comm comm) const {
    RequestedOffload made(SPL_GATHER, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    made.in_place = is_root && out == in_place;
    if (is_root) made.set_receive(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    if (made.in_place) {
      made.set_send(RequestedOffload::block(in, in_count, in_type, root), in_count, in_type);
    } else {
      made.set_send(out, out_count, out_type);
    }
    made.set_bytes(is_root ? in_count : out_count, is_root ? in_type : out_type);
    return made;
  }
};

struct Scatter {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              int root, Comm comm) const {
    RequestedOffload made(SPL_SCATTER, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    if (is_root) made.set_send(out, static_cast<int64_t>(out_count) * made.size(), out_type);
    if (is_root && in == in_place) {
      made.set_receive(RequestedOffload::block(out, out_count, out_type, root), out_count, out_type);
      made.copies_send = true;
    } else {
      made.set_receive(in, in_count, in_type);
    }
    made.set_bytes(is_root ? out_count : in_count, is_root ? out_type : in_type);
    return made;
  }
};

struct Allgather {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    RequestedOffload made(SPL_ALLGATHER, comm);
    if (made.stays != nullptr) return made;
    made.in_place = out == in_place;
    made.set_receive(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    if (made.in_place) {
      made.set_send(RequestedOffload::block(in, in_count, in_type, made.rank()), in_count, in_type);
    } else {
      made.set_send(out, out_count, out_type);
    }
    made.set_bytes(in_count, in_type);
    return made;
  }
};

struct Alltoall {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    RequestedOffload made(SPL_ALLTOALL, comm);
    if (made.stays != nullptr) return made;
    made.copies_send = out == in_place;
    made.set_receive(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    if (made.copies_send) {
      made.set_send(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    } else {
      made.set_send(out, static_cast<int64_t>(out_count) * made.size(), out_type);
    }
    made.set_bytes(in_count, in_type);
    return made;
  }
};

// Reductions with one count for all.
template <int operation>
struct Reduction {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, N count, Datatype type, Op op, Comm comm) const {
    RequestedOffload made(operation, comm);
    if (made.stays != nullptr) return made;
    const int64_t sent = operation == SPL_REDUCE_SCATTER_BLOCK ? static_cast<int64_t>(count) * made.size() : count;
    made.in_place = out == in_place && operation != SPL_REDUCE_SCATTER_BLOCK;
    made.copies_send = out == in_place && operation == SPL_REDUCE_SCATTER_BLOCK;
    made.keeps_receive = operation == SPL_EXSCAN && made.rank() == 0;
    made.set_send(out == in_place ? in : out, sent, type);
    made.set_receive(in, count, type);
    made.set_bytes(count, type);
    made.set_arithmetic(op, type);
    return made;
  }
};

struct Reduce {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, N count, Datatype type, Op op, int root, Comm comm) const {
    RequestedOffload made(SPL_REDUCE, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    made.in_place = is_root && out == in_place;
    made.set_send(made.in_place ? in : out, count, type);
    if (is_root) made.set_receive(in, count, type);
    made.set_bytes(count, type);
    made.set_arithmetic(op, type);
    return made;
  }
};

struct Gatherv {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, const N* counts,
                              const Displacement<N>* places, Datatype in_type, int root, Comm comm) const {
    RequestedOffload made(SPL_GATHERV, comm);
    if (made.stays != nullptr) return made;
    const BlocksV<N> blocks(in, counts, places, in_type);
    const bool is_root = made.is_root(root);
    made.has_lists = true;
    if (is_root) made.add_all(made.receives, blocks, made.size());
    if (is_root && out == in_place) {
      made.sends.push_back(made.receives[static_cast<size_t>(root)]);
      made.copies_send = true;
    } else {
      made.add(made.sends, out, out_count, out_type);
    }
    return made;
  }
};

struct Scatterv {
  template <class N>
  RequestedOffload operator()(const void* out, const N* counts, const Displacement<N>* places, Datatype out_type,
                              void* in, N in_count, Datatype in_type, int root, Comm comm) const {
    RequestedOffload made(SPL_SCATTERV, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    made.has_lists = true;
    if (is_root) made.add_all(made.sends, BlocksV<N>(out, counts, places, out_type), made.size());
    if (is_root && in == in_place) {
      made.receives.push_back(made.sends[static_cast<size_t>(root)]);
      made.copies_send = true;
    } else {
      made.add(made.receives, in, in_count, in_type);
    }
    return made;
  }
};

struct Allgatherv {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, const N* counts,
                              const Displacement<N>* places, Datatype in_type, Comm comm) const {
    RequestedOffload made(SPL_ALLGATHERV, comm);
    if (made.stays != nullptr) return made;
    made.has_lists = true;
    made.add_all(made.receives, BlocksV<N>(in, counts, places, in_type), made.size());
    made.copies_send = out == in_place;
    if (made.copies_send) {
      made.sends.push_back(made.receives[static_cast<size_t>(made.rank())]);
    } else {
      made.add(made.sends, out, out_count, out_type);
    }
    return made;
  }
};

template <class Out, class In>
RequestedOffload all_to_all(int operation, const Out& out, const In& in, Comm comm) {
  RequestedOffload made(operation, comm);
  if (made.stays != nullptr) return made;
  made.has_lists = true;
  made.add_all(made.receives, in, made.size());
  made.copies_send = out.buffer == in_place;
  if (made.copies_send) {
    made.sends = made.receives;
  } else {
    made.add_all(made.sends, out, made.size());
  }
  return made;
}

struct Alltoallv {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_places,
                              Datatype out_type, void* in, const N* in_counts, const Displacement<N>* in_places,
                              Datatype in_type, Comm comm) const {
    return all_to_all(SPL_ALLTOALLV, BlocksV<N>(out, out_counts, out_places, out_type),
                      BlocksV<N>(in, in_counts, in_places, in_type), comm);
  }
};

struct Alltoallw {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_places,
                              const Datatype* out_types, void* in, const N* in_counts, const Displacement<N>* in_places,
                              const Datatype* in_types, Comm comm) const {
    return all_to_all(SPL_ALLTOALLV, BlocksW<N, Displacement<N>>(out, out_counts, out_places, out_types),
                      BlocksW<N, Displacement<N>>(in, in_counts, in_places, in_types), comm);
  }
};

template <class Out, class In>
RequestedOffload among_neighbours(int operation, const Out& out, const In& in, Comm comm) {
  RequestedOffload made(operation, comm);
  if (made.stays != nullptr) return made;
  made.has_lists = true;
  made.set_neighbours(RequestedOffload::Order::matters);
  if (made.stays != nullptr) return made;
  made.add_all(made.sends, out, static_cast<int>(made.destinations.size()));
  made.add_all(made.receives, in, static_cast<int>(made.sources.size()));
  RequestedOffload::leave_out_nobody(made.sends, made.destinations);
  RequestedOffload::leave_out_nobody(made.receives, made.sources);
  return made;
}

template <class In>
RequestedOffload from_neighbours(const void* out, int64_t count, Datatype type, const In& in, Comm comm) {
  RequestedOffload made(SPL_NEIGHBOR_ALLGATHERV, comm);
  if (made.stays != nullptr) return made;
  made.has_lists = true;
  made.set_neighbours(RequestedOffload::Order::any);
  if (made.stays != nullptr) return made;
  made.add(made.sends, out, count, type);
  made.add_all(made.receives, in, static_cast<int>(made.sources.size()));
  RequestedOffload::leave_out_nobody(made.receives, made.sources);
  return made;
}

struct Neighbor_allgather {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    return from_neighbours(out, out_count, out_type, Blocks(in, in_count, in_type), comm);
  }
};

struct Neighbor_allgatherv {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, const N* counts,
                              const Displacement<N>* places, Datatype in_type, Comm comm) const {
    return from_neighbours(out, out_count, out_type, BlocksV<N>(in, counts, places, in_type), comm);
  }
};

struct Neighbor_alltoall {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    return among_neighbours(SPL_NEIGHBOR_ALLTOALLV, Blocks(out, out_count, out_type), Blocks(in, in_count, in_type),
                            comm);
  }
};

struct Neighbor_alltoallv {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_places,
                              Datatype out_type, void* in, const N* in_counts, const Displacement<N>* in_places,
                              Datatype in_type, Comm comm) const {
    return among_neighbours(SPL_NEIGHBOR_ALLTOALLV, BlocksV<N>(out, out_counts, out_places, out_type),
                            BlocksV<N>(in, in_counts, in_places, in_type), comm);
  }
};

struct Neighbor_alltoallw {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Aint* out_places, const Datatype* out_types,
                              void* in, const N* in_counts, const Aint* in_places, const Datatype* in_types,
                              Comm comm) const {
    return among_neighbours(SPL_NEIGHBOR_ALLTOALLV, BlocksW<N, Aint>(out, out_counts, out_places, out_types),
                            BlocksW<N, Aint>(in, in_counts, in_places, in_types), comm);
  }
};

struct Reduce_scatter {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, const N* counts, Datatype type, Op op, Comm comm) const {
    RequestedOffload made(SPL_REDUCE_SCATTER, comm);
    if (made.stays != nullptr) return made;
    int64_t all = 0;
    for (int i = 0; i < made.size(); ++i) {
      if (counts[i] < 0) all = INT64_MIN / 2;
      all += counts[i];
    }
    made.copies_send = out == in_place;
    made.set_send(made.copies_send ? in : out, all < 0 ? -1 : all, type);
    made.set_receive(in, counts[made.rank()], type);
    made.set_arithmetic(op, type);
    if (made.stays != nullptr) return made;
    const auto size = static_cast<uint64_t>(layer.types.form(type)->size);
    for (int i = 0; i < made.size(); ++i) made.bytes_of_ranks.push_back(static_cast<uint64_t>(counts[i]) * size);
    return made;
  }
};

}  // namespace requested

}  // namespace spinloom::mpi::SPINLOOM_ABI
