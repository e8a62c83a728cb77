// Rules for collective calls, and for those that make and free communicators.
#pragma once

#include <tuple>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

class Collective : public Rule {
 protected:
  const Recorder::CommFacts& begin(trace::Signature& to, Comm comm) {
    facts_ = recorder.comm(comm);
    to.comm = facts_.number;
    return facts_;
  }
  // True if this rank is the root. The other ranks on the root's side of an intercommunicator take no part.
  bool begin_rooted(trace::Signature& to, int root, Comm comm) {
    begin(to, comm);
    to.peer = Recorder::peer(root);
    takes_part_ = root != proc_null;
    return facts_.is_inter ? root == root_here : root == facts_.rank;
  }
  [[nodiscard]] bool takes_part() const { return takes_part_; }
  [[nodiscard]] int peers() const { return facts_.peers; }
  [[nodiscard]] const Recorder::CommFacts& facts() const { return facts_; }

  static void send(trace::Signature& to, const void* buffer, int64_t count, Datatype type) {
    put(to, to.sends, buffer, count, type);
  }
  static void receive(trace::Signature& to, const void* buffer, int64_t count, Datatype type) {
    put(to, to.receives, buffer, count, type);
  }
  // A side that is in place has no block. Reductions have put_operand(), which keeps the count and the type even then.
  static void put(trace::Signature& to, std::vector<trace::Block>& blocks, const void* buffer, int64_t count,
                  Datatype type) {
    if (buffer == in_place) {
      to.in_place = true;
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
  template <class N, class Place>
  static void put_list(trace::Signature& to, std::vector<trace::Block>& blocks, int n, const void* buffer,
                       const N* counts, const Place* places, Datatype type) {
    if (buffer == in_place) {
      to.in_place = true;
      return;
    }
    const uint32_t number = recorder.type(type);
    const auto extent = static_cast<uint64_t>(recorder.extent(number));
    for (int i = 0; i < n; ++i) {
      blocks.push_back({reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(places[i]) * extent,
                        static_cast<int64_t>(counts[i]), number});
    }
  }
  // put_list() for blocks that have types of their own, and places in bytes.
  template <class N, class Place>
  static void put_list(trace::Signature& to, std::vector<trace::Block>& blocks, int n, const void* buffer,
                       const N* counts, const Place* places, const Datatype* types) {
    if (buffer == in_place) {
      to.in_place = true;
      return;
    }
    for (int i = 0; i < n; ++i) {
      // A block without elements may name any type, or none.
      blocks.push_back({reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(places[i]),
                        static_cast<int64_t>(counts[i]), counts[i] == 0 ? trace::none : recorder.type(types[i])});
    }
  }

 private:
  Recorder::CommFacts facts_;
  bool takes_part_ = true;
};

struct Barrier : Collective {
  template <class... More>
  void after(trace::Signature& to, Comm comm, More... more) {
    begin(to, comm);
    made_request(to, false, more...);
  }
};

struct Bcast : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, void* buffer, N count, Datatype type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (is_root) {
      send(to, buffer, count, type);
    } else if (takes_part()) {
      receive(to, buffer, count, type);
    }
    made_request(to, false, more...);
  }
};

struct Gather : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, N in_count,
             Datatype in_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (sends(is_root)) send(to, out, out_count, out_type);
    if (is_root) receive(to, in, in_count, in_type);
    made_request(to, false, more...);
  }

 protected:
  // True if this rank has a block of its own: every rank has, but for those on the root's side of an intercommunicator.
  [[nodiscard]] bool sends(bool is_root) const { return takes_part() && !(is_root && facts().is_inter); }
};
struct Gatherv : Gather {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, const N* counts,
             const Displacement<N>* places, Datatype in_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (sends(is_root)) send(to, out, out_count, out_type);
    if (is_root) put_list(to, to.receives, peers(), in, counts, places, in_type);
    made_request(to, false, more...);
  }
};
struct Scatter : Gather {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, N in_count,
             Datatype in_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (is_root) send(to, out, out_count, out_type);
    if (sends(is_root)) receive(to, in, in_count, in_type);
    made_request(to, false, more...);
  }
};
struct Scatterv : Gather {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, const N* counts, const Displacement<N>* places, Datatype out_type,
             void* in, N in_count, Datatype in_type, int root, Comm comm, More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (is_root) put_list(to, to.sends, peers(), out, counts, places, out_type);
    if (sends(is_root)) receive(to, in, in_count, in_type);
    made_request(to, false, more...);
  }
};

struct Allgather : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, N in_count,
             Datatype in_type, Comm comm, More... more) {
    begin(to, comm);
    send(to, out, out_count, out_type);
    receive(to, in, in_count, in_type);
    made_request(to, false, more...);
  }
};
using Alltoall = Allgather;
struct Allgatherv : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, const N* counts,
             const Displacement<N>* places, Datatype in_type, Comm comm, More... more) {
    begin(to, comm);
    send(to, out, out_count, out_type);
    put_list(to, to.receives, peers(), in, counts, places, in_type);
    made_request(to, false, more...);
  }
};
// Alltoallv has one type for all peers, Alltoallw a list of types.
struct Alltoallv : Collective {
  template <class N, class Place, class Types, class... More>
  void after(trace::Signature& to, const void* out, const N* out_counts, const Place* out_places, Types out_types,
             void* in, const N* in_counts, const Place* in_places, Types in_types, Comm comm, More... more) {
    begin(to, comm);
    put_list(to, to.sends, peers(), out, out_counts, out_places, out_types);
    put_list(to, to.receives, peers(), in, in_counts, in_places, in_types);
    made_request(to, false, more...);
  }
};
using Alltoallw = Alltoallv;

struct Neighbor_allgather : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, N in_count,
             Datatype in_type, Comm comm, More... more) {
    begin(to, comm);
    to.sends.assign(static_cast<size_t>(facts().destinations), block_of(out, out_count, out_type));
    put_each(to.receives, facts().sources, in, in_count, in_type);
    made_request(to, false, more...);
  }
};
struct Neighbor_allgatherv : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, const N* counts,
             const Displacement<N>* places, Datatype in_type, Comm comm, More... more) {
    begin(to, comm);
    to.sends.assign(static_cast<size_t>(facts().destinations), block_of(out, out_count, out_type));
    put_list(to, to.receives, facts().sources, in, counts, places, in_type);
    made_request(to, false, more...);
  }
};
struct Neighbor_alltoall : Collective {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, N out_count, Datatype out_type, void* in, N in_count,
             Datatype in_type, Comm comm, More... more) {
    begin(to, comm);
    put_each(to.sends, facts().destinations, out, out_count, out_type);
    put_each(to.receives, facts().sources, in, in_count, in_type);
    made_request(to, false, more...);
  }
};
struct Neighbor_alltoallv : Collective {
  template <class N, class Place, class Types, class... More>
  void after(trace::Signature& to, const void* out, const N* out_counts, const Place* out_places, Types out_types,
             void* in, const N* in_counts, const Place* in_places, Types in_types, Comm comm, More... more) {
    begin(to, comm);
    put_list(to, to.sends, facts().destinations, out, out_counts, out_places, out_types);
    put_list(to, to.receives, facts().sources, in, in_counts, in_places, in_types);
    made_request(to, false, more...);
  }
};
using Neighbor_alltoallw = Neighbor_alltoallv;

// The operand is in `sends`, with its count and type, even in place: then it lies where the result goes. Ranks on the
// root's side of an intercommunicator have none.
class Reduction : public Collective {
 protected:
  static void put_operand(trace::Signature& to, const void* out, const void* in, int64_t count, Datatype type) {
    to.in_place = out == in_place;
    to.sends.push_back(block_of(to.in_place ? in : out, count, type));
  }
};
struct Reduce : Reduction {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, void* in, N count, Datatype type, Op, int root, Comm comm,
             More... more) {
    const bool is_root = begin_rooted(to, root, comm);
    if (takes_part() && !(is_root && facts().is_inter)) put_operand(to, out, in, count, type);
    if (is_root) receive(to, in, count, type);
    made_request(to, false, more...);
  }
};
struct Allreduce : Reduction {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, void* in, N count, Datatype type, Op, Comm comm, More... more) {
    begin(to, comm);
    put_operand(to, out, in, count, type);
    receive(to, in, count, type);
    made_request(to, false, more...);
  }
};
using Scan = Allreduce;
using Exscan = Allreduce;
struct Reduce_scatter_block : Reduction {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, void* in, N count, Datatype type, Op, Comm comm, More... more) {
    begin(to, comm);
    put_operand(to, out, in, static_cast<int64_t>(count) * facts().size, type);
    receive(to, in, count, type);
    made_request(to, false, more...);
  }
};
struct Reduce_scatter : Reduction {
  template <class N, class... More>
  void after(trace::Signature& to, const void* out, void* in, const N* counts, Datatype type, Op, Comm comm,
             More... more) {
    begin(to, comm);
    const auto* at = static_cast<const std::byte*>(out == in_place ? in : out);
    for (int i = 0; i < facts().size; ++i) {
      put_operand(to, at, in, static_cast<int64_t>(counts[i]), type);
      at += static_cast<int64_t>(counts[i]) * recorder.extent(to.sends.back().type);
    }
    to.in_place = out == in_place;
    receive(to, in, static_cast<int64_t>(counts[facts().rank]), type);
    made_request(to, false, more...);
  }
};

// The first argument is the parent, the last one is the new communicator.
struct CommMake : Rule {
  template <class... More>
  void after(trace::Signature& to, Comm parent, More... more) {
    Comm* const made = std::get<sizeof...(more) - 1>(std::make_tuple(more...));
    to.comm = recorder.comm_made(*made, parent).number;
  }
};
// Each side has a parent of its own, so none is recorded.
struct IntercommMake : Rule {
  void after(trace::Signature& to, Comm, int, Comm, int, int, Comm* made) { to.comm = recorder.comm(*made).number; }
};
// The new communicator can be looked at only when the request has ended.
struct CommMakeLater : Rule {
  void after(trace::Signature& to, Comm, Comm*, Request* request) { made_request(to, false, request); }
};
struct CommFree : Rule {
  void before(Comm*& comm) {
    number_ = recorder.number_of(*comm);
    recorder.let_go_comm(*comm);
  }
  void after(trace::Signature& to, Comm*) { to.comm = number_; }

 private:
  uint32_t number_ = trace::none;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
