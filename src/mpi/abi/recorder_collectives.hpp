// Rules for collective calls, and for those that make and free communicators.
#pragma once

#include <tuple>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

class Collective : public Rule {
 protected:
  const Recorder::CommFacts& begin(trace::Signature& signature, Comm comm) {
    facts_ = recorder.comm(comm);
    signature.comm = facts_.number;
    return facts_;
  }
  // True if this rank is the root. The other ranks on the root's side of an intercommunicator take no part.
  bool begin_rooted(trace::Signature& signature, int root, Comm comm) {
    begin(signature, comm);
    signature.peer = Recorder::peer(root);
    takes_part_ = root != proc_null;
    return facts_.is_inter ? root == root_here : root == facts_.rank;
  }
  [[nodiscard]] bool takes_part() const { return takes_part_; }
  [[nodiscard]] int peer_count() const { return facts_.peers; }
  [[nodiscard]] const Recorder::CommFacts& facts() const { return facts_; }

  static void send(trace::Signature& signature, const void* buffer, int64_t count, Datatype type) {
    put(signature, signature.sends, buffer, count, type);
  }
  static void receive(trace::Signature& signature, const void* buffer, int64_t count, Datatype type) {
    put(signature, signature.receives, buffer, count, type);
  }
  // A side that is in place has no block. Reductions have put_operand(), which keeps the count and the type even then.
  static void put(trace::Signature& signature, std::vector<trace::Block>& blocks, const void* buffer, int64_t count,
                  Datatype type) {
    if (buffer == in_place) {
      signature.in_place = true;
    } else {
      blocks.push_back(block_of(buffer, count, type));
    }
  }
  // Equal blocks that follow each other: count elements for each of n peers.
  template <class N>
  static void put_each(std::vector<trace::Block>& blocks, int n, const void* buffer, N count, Datatype type) {
    const trace::Block first = block_of(buffer, count, type);
    const uint64_t step = static_cast<uint64_t>(count) * static_cast<uint64_t>(recorder.extent(first.type));
    for (int i = 0; i < n; ++i) {
      blocks.push_back({first.address + static_cast<uint64_t>(i) * step, first.count, first.type});
    }
  }
  template <class N, class Disp>
  static void put_list(trace::Signature& signature, std::vector<trace::Block>& blocks, int n, const void* buffer,
                       const N* counts, const Disp* displs, Datatype type) {
    if (buffer == in_place) {
      signature.in_place = true;
      return;
    }
    const uint32_t number = recorder.type(type);
    const auto extent = static_cast<uint64_t>(recorder.extent(number));
    for (int i = 0; i < n; ++i) {
      blocks.push_back({reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(displs[i]) * extent,
                        static_cast<int64_t>(counts[i]), number});
    }
  }
  // put_list() for blocks that have types of their own, and displacements in bytes.
  template <class N, class Disp>
  static void put_list(trace::Signature& signature, std::vector<trace::Block>& blocks, int n, const void* buffer,
                       const N* counts, const Disp* displs, const Datatype* types) {
    if (buffer == in_place) {
      signature.in_place = true;
      return;
    }
    for (int i = 0; i < n; ++i) {
      // A block without elements may name any type, or none.
      blocks.push_back({reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(displs[i]),
                        static_cast<int64_t>(counts[i]), counts[i] == 0 ? trace::none : recorder.type(types[i])});
    }
  }

 private:
  Recorder::CommFacts facts_;
  bool takes_part_ = true;
};

struct Barrier : Collective {
  template <class... More>
  void after(trace::Signature& signature, Comm comm, More... more) {
    begin(signature, comm);
    note_request(signature, false, more...);
  }
};

struct Bcast : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, void* buffer, N count, Datatype type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (is_root) {
      send(signature, buffer, count, type);
    } else if (takes_part()) {
      receive(signature, buffer, count, type);
    }
    note_request(signature, false, more...);
  }
};

struct Gather : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, N receive_count, Datatype receive_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (has_own_block(is_root)) send(signature, send_buffer, send_count, send_type);
    if (is_root) receive(signature, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }

 protected:
  // True if this rank has a block of its own: every rank has, but for those on the root's side of an intercommunicator.
  [[nodiscard]] bool has_own_block(bool is_root) const { return takes_part() && !(is_root && facts().is_inter); }
};
struct Gatherv : Gather {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, const N* counts, const Displacement<N>* displs, Datatype receive_type, int root,
             Comm comm, More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (has_own_block(is_root)) send(signature, send_buffer, send_count, send_type);
    if (is_root) put_list(signature, signature.receives, peer_count(), receive_buffer, counts, displs, receive_type);
    note_request(signature, false, more...);
  }
};
struct Scatter : Gather {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, N receive_count, Datatype receive_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (is_root) send(signature, send_buffer, send_count, send_type);
    if (has_own_block(is_root)) receive(signature, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }
};
struct Scatterv : Gather {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, const N* counts, const Displacement<N>* displs,
             Datatype send_type, void* receive_buffer, N receive_count, Datatype receive_type, int root, Comm comm,
             More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (is_root) put_list(signature, signature.sends, peer_count(), send_buffer, counts, displs, send_type);
    if (has_own_block(is_root)) receive(signature, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }
};

struct Allgather : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, N receive_count, Datatype receive_type, Comm comm, More... more) {
    begin(signature, comm);
    send(signature, send_buffer, send_count, send_type);
    receive(signature, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }
};
using Alltoall = Allgather;
struct Allgatherv : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, const N* counts, const Displacement<N>* displs, Datatype receive_type, Comm comm,
             More... more) {
    begin(signature, comm);
    send(signature, send_buffer, send_count, send_type);
    put_list(signature, signature.receives, peer_count(), receive_buffer, counts, displs, receive_type);
    note_request(signature, false, more...);
  }
};
// Alltoallv has one type for all peers, Alltoallw a list of types.
struct Alltoallv : Collective {
  template <class N, class Disp, class Types, class... More>
  void after(trace::Signature& signature, const void* send_buffer, const N* send_counts, const Disp* send_displs,
             Types send_types, void* receive_buffer, const N* receive_counts, const Disp* receive_displs,
             Types receive_types, Comm comm, More... more) {
    begin(signature, comm);
    put_list(signature, signature.sends, peer_count(), send_buffer, send_counts, send_displs, send_types);
    put_list(signature, signature.receives, peer_count(), receive_buffer, receive_counts, receive_displs,
             receive_types);
    note_request(signature, false, more...);
  }
};
using Alltoallw = Alltoallv;

struct Neighbor_allgather : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, N receive_count, Datatype receive_type, Comm comm, More... more) {
    begin(signature, comm);
    signature.sends.assign(static_cast<size_t>(facts().destinations), block_of(send_buffer, send_count, send_type));
    put_each(signature.receives, facts().sources, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }
};
struct Neighbor_allgatherv : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, const N* counts, const Displacement<N>* displs, Datatype receive_type, Comm comm,
             More... more) {
    begin(signature, comm);
    signature.sends.assign(static_cast<size_t>(facts().destinations), block_of(send_buffer, send_count, send_type));
    put_list(signature, signature.receives, facts().sources, receive_buffer, counts, displs, receive_type);
    note_request(signature, false, more...);
  }
};
struct Neighbor_alltoall : Collective {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, N send_count, Datatype send_type,
             void* receive_buffer, N receive_count, Datatype receive_type, Comm comm, More... more) {
    begin(signature, comm);
    put_each(signature.sends, facts().destinations, send_buffer, send_count, send_type);
    put_each(signature.receives, facts().sources, receive_buffer, receive_count, receive_type);
    note_request(signature, false, more...);
  }
};
struct Neighbor_alltoallv : Collective {
  template <class N, class Disp, class Types, class... More>
  void after(trace::Signature& signature, const void* send_buffer, const N* send_counts, const Disp* send_displs,
             Types send_types, void* receive_buffer, const N* receive_counts, const Disp* receive_displs,
             Types receive_types, Comm comm, More... more) {
    begin(signature, comm);
    put_list(signature, signature.sends, facts().destinations, send_buffer, send_counts, send_displs, send_types);
    put_list(signature, signature.receives, facts().sources, receive_buffer, receive_counts, receive_displs,
             receive_types);
    note_request(signature, false, more...);
  }
};
using Neighbor_alltoallw = Neighbor_alltoallv;

// The operand is in `sends`, with its count and type, even in place: then it lies where the result goes. Ranks on the
// root's side of an intercommunicator have none.
class Reduction : public Collective {
 protected:
  static void put_operand(trace::Signature& signature, const void* send_buffer, const void* receive_buffer,
                          int64_t count, Datatype type) {
    signature.in_place = send_buffer == in_place;
    signature.sends.push_back(block_of(signature.in_place ? receive_buffer : send_buffer, count, type));
  }
};
struct Reduce : Reduction {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, void* receive_buffer, N count, Datatype type, Op,
             int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(signature, root, comm);
    if (takes_part() && !(is_root && facts().is_inter))
      put_operand(signature, send_buffer, receive_buffer, count, type);
    if (is_root) receive(signature, receive_buffer, count, type);
    note_request(signature, false, more...);
  }
};
struct Allreduce : Reduction {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, void* receive_buffer, N count, Datatype type, Op,
             Comm comm, More... more) {
    begin(signature, comm);
    put_operand(signature, send_buffer, receive_buffer, count, type);
    receive(signature, receive_buffer, count, type);
    note_request(signature, false, more...);
  }
};
using Scan = Allreduce;
using Exscan = Allreduce;
struct Reduce_scatter_block : Reduction {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, void* receive_buffer, N count, Datatype type, Op,
             Comm comm, More... more) {
    begin(signature, comm);
    put_operand(signature, send_buffer, receive_buffer, static_cast<int64_t>(count) * facts().size, type);
    receive(signature, receive_buffer, count, type);
    note_request(signature, false, more...);
  }
};
struct Reduce_scatter : Reduction {
  template <class N, class... More>
  void after(trace::Signature& signature, const void* send_buffer, void* receive_buffer, const N* counts, Datatype type,
             Op, Comm comm, More... more) {
    begin(signature, comm);
    const auto* at = static_cast<const std::byte*>(send_buffer == in_place ? receive_buffer : send_buffer);
    for (int i = 0; i < facts().size; ++i) {
      put_operand(signature, at, receive_buffer, static_cast<int64_t>(counts[i]), type);
      at += static_cast<int64_t>(counts[i]) * recorder.extent(signature.sends.back().type);
    }
    signature.in_place = send_buffer == in_place;
    receive(signature, receive_buffer, static_cast<int64_t>(counts[facts().rank]), type);
    note_request(signature, false, more...);
  }
};

// The first argument is the parent, the last one is the new communicator.
struct CommMake : Rule {
  template <class... More>
  void after(trace::Signature& signature, Comm parent, More... more) {
    Comm* const made = std::get<sizeof...(more) - 1>(std::make_tuple(more...));
    signature.comm = recorder.comm_made(*made, parent).number;
  }
};
// Each side has a parent of its own, so none is recorded.
struct IntercommMake : Rule {
  void after(trace::Signature& signature, Comm, int, Comm, int, int, Comm* made) {
    signature.comm = recorder.comm(*made).number;
  }
};
// The new communicator can be looked at only when the request has ended.
struct CommMakeLater : Rule {
  void after(trace::Signature& signature, Comm, Comm*, Request* request) { note_request(signature, false, request); }
};
struct CommFree : Rule {
  void before(Comm*& comm) {
    number_ = recorder.number_of(*comm);
    recorder.drop_comm_attributes(*comm);
  }
  void after(trace::Signature& signature, Comm*) { signature.comm = number_; }

 private:
  uint32_t number_ = trace::none;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
