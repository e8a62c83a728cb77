// Wanted - a collective call of the program as the NIC needs it: what it sends and receives, and why it stays with the MPI
//   if it does.
//
// Contract: wanted::Bcast and its like take the arguments of the call, without the request. carry() gives it to the NIC and
//   makes the request; nothing: the MPI carries it.
// Invariants: (1) `stays` follows from what all ranks of the communicator see alike, but for wrong arguments: the numbers of
//   bytes, the communicator, the operation and its type; never from a rank's own datatypes, addresses or MPI_IN_PLACE.
// Threads: the caller's lock. Time: none.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "mpi/abi/layer.hpp"
#include "mpi/nic_team.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

struct Wanted {
  const char* stays = nullptr;
  NicTeam::Facts facts{};
  std::shared_ptr<NicTeam> team;
  bool has_send = false, has_receive = false;
  bool in_place = false;  // `send` is a part of `receive`, and the NIC is told so
  bool copies_send = false;  // what is sent must be out of the way of what is received
  bool fills_receive = false;  // what is received is there before, too: a broadcast's root
  bool keeps_receive = false;  // nothing is received after all
  Place send, receive;
  // Calls whose blocks differ: each in its order, in place of `send` or `receive`.
  bool has_lists = false;
  std::vector<Place> sends, receives;
  std::vector<uint64_t> bytes_of_ranks;  // of reduce-scatter

  // Of a communicator on the NIC; else it stays.
  Wanted(int operation, Comm comm);
  [[nodiscard]] int size() const { return static_cast<int>(team->size()); }
  [[nodiscard]] int rank() const { return static_cast<int>(team->rank()); }
  [[nodiscard]] bool is_root(int root);  // keeps it, too

  void set_send(const void* buffer, int64_t count, Datatype type) { has_send = set(send, buffer, count, type); }
  void set_receive(const void* buffer, int64_t count, Datatype type) {
    has_receive = set(receive, buffer, count, type);
  }
  // The block of `count` elements of rank `i` in a buffer.
  [[nodiscard]] static const void* block(const void* buffer, int64_t count, Datatype type, int i);
  void set_bytes(int64_t count, Datatype type);
  void set_arithmetic(Op op, Datatype type);

 private:
  [[nodiscard]] bool set(Place& place, const void* buffer, int64_t count, Datatype type);
  Comm comm_;
};

enum class Lasts : uint8_t { once, persistent };
[[nodiscard]] std::optional<int> carry(const char* call, Wanted& wanted, Comm comm, Lasts lasts, Request* request);

namespace wanted {

struct Barrier {
  Wanted operator()(Comm comm) const { return {SPL_BARRIER, comm}; }
};

struct Bcast {
  template <class N>
  Wanted operator()(void* buffer, N count, Datatype type, int root, Comm comm) const {
    Wanted made(SPL_BCAST, comm);
    if (made.stays != nullptr) return made;
    made.fills_receive = made.keeps_receive = made.is_root(root);
    made.set_bytes(count, type);
    made.set_receive(buffer, count, type);
    return made;
  }
};

struct Gather {
  template <class N>
  Wanted operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root,
                    Comm comm) const {
    Wanted made(SPL_GATHER, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    made.in_place = is_root && out == in_place;
    if (is_root) made.set_receive(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    if (made.in_place) {
      made.set_send(Wanted::block(in, in_count, in_type, root), in_count, in_type);
    } else {
      made.set_send(out, out_count, out_type);
    }
    made.set_bytes(is_root ? in_count : out_count, is_root ? in_type : out_type);
    return made;
  }
};

struct Scatter {
  template <class N>
  Wanted operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root,
                    Comm comm) const {
    Wanted made(SPL_SCATTER, comm);
    if (made.stays != nullptr) return made;
    const bool is_root = made.is_root(root);
    if (is_root) made.set_send(out, static_cast<int64_t>(out_count) * made.size(), out_type);
    if (is_root && in == in_place) {
      made.set_receive(Wanted::block(out, out_count, out_type, root), out_count, out_type);
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
  Wanted operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                    Comm comm) const {
    Wanted made(SPL_ALLGATHER, comm);
    if (made.stays != nullptr) return made;
    made.in_place = out == in_place;
    made.set_receive(in, static_cast<int64_t>(in_count) * made.size(), in_type);
    if (made.in_place) {
      made.set_send(Wanted::block(in, in_count, in_type, made.rank()), in_count, in_type);
    } else {
      made.set_send(out, out_count, out_type);
    }
    made.set_bytes(in_count, in_type);
    return made;
  }
};

struct Alltoall {
  template <class N>
  Wanted operator()(const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type,
                    Comm comm) const {
    Wanted made(SPL_ALLTOALL, comm);
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
  Wanted operator()(const void* out, void* in, N count, Datatype type, Op op, Comm comm) const {
    Wanted made(operation, comm);
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
  Wanted operator()(const void* out, void* in, N count, Datatype type, Op op, int root, Comm comm) const {
    Wanted made(SPL_REDUCE, comm);
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

}  // namespace wanted

}  // namespace spinloom::mpi::SPINLOOM_ABI
