// PackedCall - a collective call that the MPI carries, with the sides that are quicker so as packed bytes, and without
// what a rank sends to itself.
//
// Contract: packed_call() returns null where the call had better go as the program has it. begin() of its Packing
//   precedes call(), copy_own() follows it, and end() follows the call's end.
// Threads: packed_call() needs the caller's lock. Time: none.
#pragma once

#include <limits>
#include <numeric>
#include <tuple>

#include "mpi/abi/packing.hpp"
#include "mpi/abi/patterns.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The calls in which no MPI may choose by the types of one rank how all ranks do it: each block has a type of its own,
// or few ranks take part. Libraries for MPI_Alltoallv may refuse what is not contiguous, which they expect of all
// ranks.
template <class Pattern>
inline constexpr bool may_be_packed = false;
template <class N, class Disp>
inline constexpr bool may_be_packed<AllToAll<BlocksW<N, Disp>, BlocksW<N, Disp>>> = true;
template <class N>
inline constexpr bool may_be_packed<AmongNeighbours<BlocksV<N>, BlocksV<N>>> = true;
template <class N, class Disp>
inline constexpr bool may_be_packed<AmongNeighbours<BlocksW<N, Disp>, BlocksW<N, Disp>>> = true;

// Returns the ranks that blocks go to, and those that they come from. `is_known` is false on an intercommunicator.
// The reference holds until the next call.
template <class Out, class In>
Neighbours& peers_of(const AllToAll<Out, In>&, Comm comm) {
  static Neighbours peers;  // keeps its memory
  int is_inter = 0;
  int size = 0;
  peers.is_known =
      real.Comm_test_inter(comm, &is_inter) == success && is_inter == 0 && real.Comm_size(comm, &size) == success;
  peers.to.resize(static_cast<size_t>(size));
  std::iota(peers.to.begin(), peers.to.end(), 0);
  peers.from = peers.to;
  return peers;
}
template <class Out, class In>
Neighbours& peers_of(const AmongNeighbours<Out, In>&, Comm comm) {
  static Neighbours peers;
  return peers = neighbours_of(comm);
}

// Returns the number of the block that a rank sends to itself; below zero: there is none, or there may be several.
template <class Out, class In>
int own_block_of(const AllToAll<Out, In>&, Comm comm) {
  int rank = 0;
  return real.Comm_rank(comm, &rank) == success ? rank : -1;
}
template <class Out, class In>
int own_block_of(const AmongNeighbours<Out, In>&, Comm) {
  return -1;
}

// The arguments of one side of a call, as the MPI gets them: those of the program, or those of the packed bytes, or
// those of the program without the block that is left out.
template <class Blocks>
class CallSide;

template <class N>
class CallSide<BlocksV<N>> {
 public:
  static constexpr int64_t bytes_max = std::numeric_limits<N>::max();
  CallSide(const BlocksV<N>& given, const PackedSide& side, const LeftOut& left_out) : lists_(side), blocks_(given) {
    if (side.is_used()) {
      blocks_ = {side.packed(), lists_.counts.data(), lists_.displs.data(), handles().byte};
    } else if (left_out.block >= 0) {
      blocks_.counts = lists_.without(left_out, given.counts);
    }
  }
  [[nodiscard]] auto arguments() const {
    return std::tuple(const_cast<void*>(blocks_.buffer), blocks_.counts, blocks_.displs, blocks_.type);
  }

 private:
  PackedLists<N, Displacement<N>> lists_;
  BlocksV<N> blocks_;
};

template <class N, class Disp>
class CallSide<BlocksW<N, Disp>> {
 public:
  static constexpr int64_t bytes_max = std::numeric_limits<N>::max();
  CallSide(const BlocksW<N, Disp>& given, const PackedSide& side, const LeftOut& left_out)
      : lists_(side), blocks_(given) {
    if (side.is_used()) {
      blocks_ = {side.packed(), lists_.counts.data(), lists_.displs.data(), lists_.types.data()};
    } else if (left_out.block >= 0) {
      blocks_.counts = lists_.without(left_out, given.counts);
    }
  }
  [[nodiscard]] auto arguments() const {
    return std::tuple(const_cast<void*>(blocks_.buffer), blocks_.counts, blocks_.displs, blocks_.types);
  }

 private:
  PackedLists<N, Disp> lists_;
  BlocksW<N, Disp> blocks_;
};

template <class Out, class In>
class PackedCall {
 public:
  PackedCall(const Out& out, const In& in, std::shared_ptr<const Packing> packing, const LeftOut& left_out)
      : packing_(std::move(packing)), out_(out, packing_->out, left_out), in_(in, packing_->in, left_out) {}
  [[nodiscard]] const std::shared_ptr<const Packing>& packing() const { return packing_; }
  // Calls `mpi_function` with the arguments of both sides.
  template <class Call>
  [[nodiscard]] int call(Call&& mpi_function) const {
    return std::apply(mpi_function, std::tuple_cat(out_.arguments(), in_.arguments()));
  }

 private:
  std::shared_ptr<const Packing> packing_;
  CallSide<Out> out_;
  CallSide<In> in_;
};

// Gives a sink the blocks in their order. In place of a block of a peer that is missing it calls send_nothing(), if the
// sink has that.
template <class Sink, class Blocks>
void name_blocks(Sink& sink, const Blocks& blocks, const std::vector<int>& peers) {
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] >= 0) {
      send(sink, peers[i], blocks, static_cast<int>(i));
    } else if constexpr (requires { sink.send_nothing(); }) {
      sink.send_nothing();
    }
  }
}

template <class Blocks>
[[nodiscard]] Place place_of(const Blocks& blocks, int block, Comm comm) {
  struct Sink {
    Comm comm;
    Place place;
    void send(int, const void* buffer, int64_t count, Datatype type) {
      if (count > 0) place = layer.place_of(buffer, count, type, comm);
    }
  } sink{comm, {}};
  send(sink, block, blocks, block);
  return sink.place;
}

template <class Blocks>
[[nodiscard]] bool is_quicker_packed(const Blocks& blocks, const std::vector<int>& peers) {
  Survey survey;
  name_blocks(survey, blocks, peers);
  return survey.is_quicker_packed(CallSide<Blocks>::bytes_max);
}

template <template <class, class> class Pattern, class Out, class In>
[[nodiscard]] std::shared_ptr<const PackedCall<Out, In>> packed_call(const char* name, Comm comm,
                                                                     const Pattern<Out, In>& pattern) {
  if (pattern.out.buffer == in_place || comm == handles().comm_null) return {};
  if (layer.settings.path == Path::pass || layer.teams.of(comm) != nullptr) return {};
  Neighbours& peers = peers_of(pattern, comm);
  if (!peers.is_known) return {};
  LeftOut left_out{own_block_of(pattern, comm), peers.to.size()};
  std::optional<Packing::Own> own;
  if (left_out.block >= 0) {
    own = Packing::own_of(place_of(pattern.out, left_out.block, comm), place_of(pattern.in, left_out.block, comm));
  }
  if (own) {
    peers.to[left_out.block] = peers.from[left_out.block] = proc_null;
  } else {
    left_out.block = -1;
  }
  const bool packs_out = is_quicker_packed(pattern.out, peers.to);
  const bool packs_in = is_quicker_packed(pattern.in, peers.from);
  if (!packs_out && !packs_in && !own) return {};
  auto packing = std::make_shared<Packing>(std::move(own));
  if (packs_out) {
    name_blocks(packing->out, pattern.out, peers.to);
    packing->out.take_memory();
    packing->out.count(name, comm);
  }
  if (packs_in) {
    name_blocks(packing->in, pattern.in, peers.from);
    packing->in.take_memory();
  }
  return std::make_shared<const PackedCall<Out, In>>(pattern.out, pattern.in, std::move(packing), left_out);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
