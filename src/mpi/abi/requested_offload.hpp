// RequestedOffload - a collective call of the program as the NIC needs it: what it sends and receives, and why it stays
//   with the MPI, if it does.
//
// Contract: requested::Bcast and its like take the arguments of the call, without the request. carry() gives it to the
//   NIC, makes the request, and returns the code of the call; nothing: the MPI has to carry it.
// Invariants: (1) `why_mpi` follows from what all ranks of the communicator see alike, but for wrong arguments: the
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
  const char* why_mpi = nullptr;  // the reason why the MPI carries the call; null: the NIC does
  NicTeam::Facts facts{};
  std::shared_ptr<NicTeam> team;
  bool has_send = false, has_receive = false;
  bool in_place = false;  // `send` is a part of `receive`; the NIC may take it from there
  bool copies_send = false;  // the call must copy what it sends, because what is received may overwrite it
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
  static void empty_blocks_of_nobody(std::vector<Place>& blocks, const std::vector<uint32_t>& peers) {
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

enum class Lifetime : uint8_t { once, persistent };
[[nodiscard]] std::optional<int> carry(const char* call, RequestedOffload& requested, Lifetime lifetime,
                                       Request* request);

namespace requested {

struct Barrier {
  RequestedOffload operator()(Comm comm) const { return {SPL_BARRIER, comm}; }
};

struct Bcast {
  template <class N>
  RequestedOffload operator()(void* buffer, N count, Datatype type, int root, Comm comm) const {
    RequestedOffload requested(SPL_BCAST, comm);
    if (requested.why_mpi != nullptr) return requested;
    requested.fills_receive = requested.keeps_receive = requested.is_root(root);
    requested.set_bytes(count, type);
    requested.set_receive(buffer, count, type);
    return requested;
  }
};

struct Gather {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              int root, Comm comm) const {
    RequestedOffload requested(SPL_GATHER, comm);
    if (requested.why_mpi != nullptr) return requested;
    const bool is_root = requested.is_root(root);
    requested.in_place = is_root && out == in_place;
    if (is_root) requested.set_receive(in, static_cast<int64_t>(in_count) * requested.size(), in_type);
    if (requested.in_place) {
      requested.set_send(RequestedOffload::block(in, in_count, in_type, root), in_count, in_type);
    } else {
      requested.set_send(out, out_count, out_type);
    }
    requested.set_bytes(is_root ? in_count : out_count, is_root ? in_type : out_type);
    return requested;
  }
};

struct Scatter {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              int root, Comm comm) const {
    RequestedOffload requested(SPL_SCATTER, comm);
    if (requested.why_mpi != nullptr) return requested;
    const bool is_root = requested.is_root(root);
    if (is_root) requested.set_send(out, static_cast<int64_t>(out_count) * requested.size(), out_type);
    if (is_root && in == in_place) {
      requested.set_receive(RequestedOffload::block(out, out_count, out_type, root), out_count, out_type);
      requested.copies_send = true;
    } else {
      requested.set_receive(in, in_count, in_type);
    }
    requested.set_bytes(is_root ? out_count : in_count, is_root ? out_type : in_type);
    return requested;
  }
};

struct Allgather {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    RequestedOffload requested(SPL_ALLGATHER, comm);
    if (requested.why_mpi != nullptr) return requested;
    requested.in_place = out == in_place;
    requested.set_receive(in, static_cast<int64_t>(in_count) * requested.size(), in_type);
    if (requested.in_place) {
      requested.set_send(RequestedOffload::block(in, in_count, in_type, requested.rank()), in_count, in_type);
    } else {
      requested.set_send(out, out_count, out_type);
    }
    requested.set_bytes(in_count, in_type);
    return requested;
  }
};

struct Alltoall {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                              Comm comm) const {
    RequestedOffload requested(SPL_ALLTOALL, comm);
    if (requested.why_mpi != nullptr) return requested;
    requested.copies_send = out == in_place;
    requested.set_receive(in, static_cast<int64_t>(in_count) * requested.size(), in_type);
    if (requested.copies_send) {
      requested.set_send(in, static_cast<int64_t>(in_count) * requested.size(), in_type);
    } else {
      requested.set_send(out, static_cast<int64_t>(out_count) * requested.size(), out_type);
    }
    requested.set_bytes(in_count, in_type);
    return requested;
  }
};

// Reductions with one count for all.
template <int operation>
struct Reduction {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, N count, Datatype type, Op op, Comm comm) const {
    RequestedOffload requested(operation, comm);
    if (requested.why_mpi != nullptr) return requested;
    const int64_t sent = operation == SPL_REDUCE_SCATTER_BLOCK ? static_cast<int64_t>(count) * requested.size() : count;
    requested.in_place = out == in_place && operation != SPL_REDUCE_SCATTER_BLOCK;
    requested.copies_send = out == in_place && operation == SPL_REDUCE_SCATTER_BLOCK;
    requested.keeps_receive = operation == SPL_EXSCAN && requested.rank() == 0;
    requested.set_send(out == in_place ? in : out, sent, type);
    requested.set_receive(in, count, type);
    requested.set_bytes(count, type);
    requested.set_arithmetic(op, type);
    return requested;
  }
};

struct Reduce {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, N count, Datatype type, Op op, int root, Comm comm) const {
    RequestedOffload requested(SPL_REDUCE, comm);
    if (requested.why_mpi != nullptr) return requested;
    const bool is_root = requested.is_root(root);
    requested.in_place = is_root && out == in_place;
    requested.set_send(requested.in_place ? in : out, count, type);
    if (is_root) requested.set_receive(in, count, type);
    requested.set_bytes(count, type);
    requested.set_arithmetic(op, type);
    return requested;
  }
};

struct Gatherv {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, const N* counts,
                              const Displacement<N>* displs, Datatype in_type, int root, Comm comm) const {
    RequestedOffload requested(SPL_GATHERV, comm);
    if (requested.why_mpi != nullptr) return requested;
    const BlocksV<N> blocks(in, counts, displs, in_type);
    const bool is_root = requested.is_root(root);
    requested.has_lists = true;
    if (is_root) requested.add_all(requested.receives, blocks, requested.size());
    if (is_root && out == in_place) {
      requested.sends.push_back(requested.receives[static_cast<size_t>(root)]);
      requested.copies_send = true;
    } else {
      requested.add(requested.sends, out, out_count, out_type);
    }
    return requested;
  }
};

struct Scatterv {
  template <class N>
  RequestedOffload operator()(const void* out, const N* counts, const Displacement<N>* displs, Datatype out_type,
                              void* in, N in_count, Datatype in_type, int root, Comm comm) const {
    RequestedOffload requested(SPL_SCATTERV, comm);
    if (requested.why_mpi != nullptr) return requested;
    const bool is_root = requested.is_root(root);
    requested.has_lists = true;
    if (is_root) requested.add_all(requested.sends, BlocksV<N>(out, counts, displs, out_type), requested.size());
    if (is_root && in == in_place) {
      requested.receives.push_back(requested.sends[static_cast<size_t>(root)]);
      requested.copies_send = true;
    } else {
      requested.add(requested.receives, in, in_count, in_type);
    }
    return requested;
  }
};

struct Allgatherv {
  template <class N>
  RequestedOffload operator()(const void* out, N out_count, Datatype out_type, void* in, const N* counts,
                              const Displacement<N>* displs, Datatype in_type, Comm comm) const {
    RequestedOffload requested(SPL_ALLGATHERV, comm);
    if (requested.why_mpi != nullptr) return requested;
    requested.has_lists = true;
    requested.add_all(requested.receives, BlocksV<N>(in, counts, displs, in_type), requested.size());
    requested.copies_send = out == in_place;
    if (requested.copies_send) {
      requested.sends.push_back(requested.receives[static_cast<size_t>(requested.rank())]);
    } else {
      requested.add(requested.sends, out, out_count, out_type);
    }
    return requested;
  }
};

template <class Out, class In>
RequestedOffload all_to_all(int operation, const Out& out, const In& in, Comm comm) {
  RequestedOffload requested(operation, comm);
  if (requested.why_mpi != nullptr) return requested;
  requested.has_lists = true;
  requested.add_all(requested.receives, in, requested.size());
  requested.copies_send = out.buffer == in_place;
  if (requested.copies_send) {
    requested.sends = requested.receives;
  } else {
    requested.add_all(requested.sends, out, requested.size());
  }
  return requested;
}

struct Alltoallv {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_displs,
                              Datatype out_type, void* in, const N* in_counts, const Displacement<N>* in_displs,
                              Datatype in_type, Comm comm) const {
    return all_to_all(SPL_ALLTOALLV, BlocksV<N>(out, out_counts, out_displs, out_type),
                      BlocksV<N>(in, in_counts, in_displs, in_type), comm);
  }
};

struct Alltoallw {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_displs,
                              const Datatype* out_types, void* in, const N* in_counts, const Displacement<N>* in_displs,
                              const Datatype* in_types, Comm comm) const {
    return all_to_all(SPL_ALLTOALLV, BlocksW<N, Displacement<N>>(out, out_counts, out_displs, out_types),
                      BlocksW<N, Displacement<N>>(in, in_counts, in_displs, in_types), comm);
  }
};

template <class Out, class In>
RequestedOffload among_neighbours(int operation, const Out& out, const In& in, Comm comm) {
  RequestedOffload requested(operation, comm);
  if (requested.why_mpi != nullptr) return requested;
  requested.has_lists = true;
  requested.set_neighbours(RequestedOffload::Order::matters);
  if (requested.why_mpi != nullptr) return requested;
  requested.add_all(requested.sends, out, static_cast<int>(requested.destinations.size()));
  requested.add_all(requested.receives, in, static_cast<int>(requested.sources.size()));
  RequestedOffload::empty_blocks_of_nobody(requested.sends, requested.destinations);
  RequestedOffload::empty_blocks_of_nobody(requested.receives, requested.sources);
  return requested;
}

template <class In>
RequestedOffload from_neighbours(const void* out, int64_t count, Datatype type, const In& in, Comm comm) {
  RequestedOffload requested(SPL_NEIGHBOR_ALLGATHERV, comm);
  if (requested.why_mpi != nullptr) return requested;
  requested.has_lists = true;
  requested.set_neighbours(RequestedOffload::Order::any);
  if (requested.why_mpi != nullptr) return requested;
  requested.add(requested.sends, out, count, type);
  requested.add_all(requested.receives, in, static_cast<int>(requested.sources.size()));
  RequestedOffload::empty_blocks_of_nobody(requested.receives, requested.sources);
  return requested;
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
                              const Displacement<N>* displs, Datatype in_type, Comm comm) const {
    return from_neighbours(out, out_count, out_type, BlocksV<N>(in, counts, displs, in_type), comm);
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
  RequestedOffload operator()(const void* out, const N* out_counts, const Displacement<N>* out_displs,
                              Datatype out_type, void* in, const N* in_counts, const Displacement<N>* in_displs,
                              Datatype in_type, Comm comm) const {
    return among_neighbours(SPL_NEIGHBOR_ALLTOALLV, BlocksV<N>(out, out_counts, out_displs, out_type),
                            BlocksV<N>(in, in_counts, in_displs, in_type), comm);
  }
};

struct Neighbor_alltoallw {
  template <class N>
  RequestedOffload operator()(const void* out, const N* out_counts, const Aint* out_displs, const Datatype* out_types,
                              void* in, const N* in_counts, const Aint* in_displs, const Datatype* in_types,
                              Comm comm) const {
    return among_neighbours(SPL_NEIGHBOR_ALLTOALLV, BlocksW<N, Aint>(out, out_counts, out_displs, out_types),
                            BlocksW<N, Aint>(in, in_counts, in_displs, in_types), comm);
  }
};

struct Reduce_scatter {
  template <class N>
  RequestedOffload operator()(const void* out, void* in, const N* counts, Datatype type, Op op, Comm comm) const {
    RequestedOffload requested(SPL_REDUCE_SCATTER, comm);
    if (requested.why_mpi != nullptr) return requested;
    int64_t total = 0;
    for (int i = 0; i < requested.size(); ++i) {
      if (counts[i] < 0) total = INT64_MIN / 2;
      total += counts[i];
    }
    requested.copies_send = out == in_place;
    requested.set_send(requested.copies_send ? in : out, total < 0 ? -1 : total, type);
    requested.set_receive(in, counts[requested.rank()], type);
    requested.set_arithmetic(op, type);
    if (requested.why_mpi != nullptr) return requested;
    const auto size = static_cast<uint64_t>(layer.types.form(type)->size);
    for (int i = 0; i < requested.size(); ++i)
      requested.bytes_of_ranks.push_back(static_cast<uint64_t>(counts[i]) * size);
    return requested;
  }
};

}  // namespace requested

}  // namespace spinloom::mpi::SPINLOOM_ABI
