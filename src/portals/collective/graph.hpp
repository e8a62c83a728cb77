// Graph - the operations of one rank in a schedule, and the others for which each of them waits.
//
// Contract: operations are numbered in the order in which they were added. graph_of() makes the Graph of Rounds: an
//   operation waits for those before it that write what it reads or writes, or read what it writes, and receives wait
//   for nothing. A barrier's messages carry nothing: there each round waits for the one before it. with_rendezvous()
//   replaces long messages by messages that leave when both ends are ready (Di Girolamo et al., "Exploiting Offload
//   Enabled Network Interfaces", section III.A.2).
// Invariants: (1) edges lead from operations to others with larger numbers; (2) no edge of an operation follows from
//   its other edges; (3) both ends of a message give it the same name: its tag and its number among the messages with
//   that tag from one rank to the other.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "nic/portals/ids.hpp"
#include "nic/spin/atomic.hpp"
#include "nic/spin/iovec.hpp"
#include "portals/collective/rounds.hpp"

namespace spinloom::collective {

enum class VertexKind : uint8_t {
  send,
  receive,
  combine,  // `to` = `to` op `from`
  copy,
  put,      // put, get and atomic go to an entry of the target's own
  get,
  atomic,
  expose,   // lets the peer get its memory, once
  fetch,    // gets what the peer has exposed
};

// Host memory in pieces, none of them empty.
using Pieces = std::vector<nic::IovecElement>;
[[nodiscard]] uint64_t bytes_of(const Pieces& pieces);

// A message's name between two ranks. `is_signal`: the message only says that one end is ready. `is_exposed`: a get of
// memory that the other end has exposed.
struct MessageName {
  static constexpr uint32_t number_count = 1 << 12;  // the messages with one tag, in Graphs with tags
  static constexpr uint32_t tag_count = 1 << 16;
  bool is_signal = false;
  bool is_exposed = false;
  uint32_t message = 0;  // the number, or tag * number_count + number; less than 2^28
  bool operator==(const MessageName&) const = default;
};

struct Target {
  nic::PortalIndex portal;
  uint64_t match_bits = 0;
  uint64_t offset = 0;
};

struct Vertex {
  VertexKind kind = VertexKind::send;
  uint32_t peer = 0;  // its rank in the team
  MessageName name = {};
  Pieces from = {};
  Pieces to = {};
  nic::AtomicOperation op = nic::AtomicOperation::sum;
  nic::Datatype type = nic::Datatype::int8;
  Target target = {};
  bool cpu_dependent = false;
  bool optional = false;  // the Graph is over without it, and it may fail: its peer may be gone
  bool early = false;  // set by with_rendezvous() for messages that may come before their receiver has begun
  std::vector<uint32_t> all = {};  // it waits for all of these operations
  std::vector<uint32_t> any = {};  // it waits for one of these operations
};

[[nodiscard]] inline bool has_message(VertexKind kind) {
  return kind == VertexKind::send || kind == VertexKind::receive || kind == VertexKind::expose ||
         kind == VertexKind::fetch;
}
// True for operations that the NIC does within its own memory, without a message.
[[nodiscard]] inline bool is_local(VertexKind kind) { return kind == VertexKind::combine || kind == VertexKind::copy; }

struct Graph {
  std::vector<Vertex> operations;
  uint64_t memory_bytes = 0;  // the size of its own memory (Area::work)
  // After with_rendezvous(), by an operation's old number: the number of the operation that ends when that one would.
  std::vector<uint32_t> number_of = {};
};

// The addresses of the areas of Rounds, and the operator and type with which a reduction combines.
struct CallArguments {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
  uint8_t* work = nullptr;
  nic::AtomicOperation op = nic::AtomicOperation::sum;
  nic::Datatype type = nic::Datatype::int8;
};
// The size of an area up to the last byte that Rounds read or write.
[[nodiscard]] uint64_t area_bytes_of(std::span<const Round> rounds, Area area);
[[nodiscard]] inline uint64_t work_bytes_of(std::span<const Round> rounds) { return area_bytes_of(rounds, Area::work); }
[[nodiscard]] Graph graph_of(std::span<const Round> rounds, const CallArguments& arguments);

// Drops edges that follow from other edges.
void reduce_edges(Graph& graph);

enum class Initiator : uint8_t { receiver, sender };
// Replaces each long send and receive by operations that first say that an end is ready. Both ends know a message's
// length and its name, so they agree about which messages are long: those of more than `eager_bytes` bytes and, of the
// others to or from one peer, all but the `early_messages` with the lowest names. Optional messages count as long,
// because a message to a rank that is gone cannot wait there.
void with_rendezvous(Graph& graph, uint64_t eager_bytes, uint32_t early_messages, Initiator initiator);

}  // namespace spinloom::collective
