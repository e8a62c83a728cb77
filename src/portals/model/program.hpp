// Program - what each rank of a small Portals 4 program calls, as data.
//
// Contract: plain values. A rank has one portal table entry, its own memory, counters, and two queues: `arrivals` for
//   the portal table entry, `departures` for its own operations. Everything is named by its place: an operation by its
//   place in its rank's list, an entry by the operation that appends it, memory by an offset.
// Threads: plain values. Time: none.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace spinloom::model {

enum class OperationKind : uint8_t {
  append,
  unlink,
  search,
  put,
  get,
  atomic,
  fetch_atomic,  // the swap family, too
  ct_inc,
  ct_set,
  ct_get,
  ct_wait,
  ct_cancel,
  pt_disable,
  pt_enable,
  eq_get,
  eq_wait,
  bundle_begin,
  bundle_end,
  settle,  // returns when all ranks have come to theirs and nothing is under way
};
enum class List : uint8_t { priority, overflow };
enum class Ack : uint8_t { none, full, counted, operation_completed };
// Numbers of Portals 4. Elements are of 8 bytes.
enum class AtomicKind : uint8_t {
  min,
  max,
  sum,
  product,
  logical_or,
  logical_and,
  bit_or,
  bit_and,
  logical_xor,
  bit_xor,
  swap,
  compare_swap,
  compare_swap_not_equal,
  compare_swap_less_equal,
  compare_swap_less,
  compare_swap_greater_equal,
  compare_swap_greater,
  masked_swap,
};
inline constexpr bool is_swap(AtomicKind kind) { return kind >= AtomicKind::swap; }
inline constexpr bool is_one_element(AtomicKind kind) { return kind > AtomicKind::swap; }

inline constexpr uint16_t any = UINT16_MAX;   // any rank, any user
inline constexpr uint8_t none = UINT8_MAX;    // no counter

struct Region {
  uint16_t offset = 0;
  uint16_t length = 0;
  auto operator<=>(const Region&) const = default;
};
[[nodiscard]] inline bool overlap(Region a, Region b) {
  return a.length > 0 && b.length > 0 && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

// A list entry, or what a search looks for.
struct Entry {
  Region memory;
  std::vector<Region> pieces;  // a scatter list of memory.length bytes, counted from memory.offset; none: one piece
  uint16_t match_rank = any;
  uint16_t match_bits = 0;
  uint16_t ignore_bits = 0;
  uint16_t min_free = 0;
  uint16_t user = any;
  uint8_t counter = none;
  bool op_put = true;
  bool op_get = false;
  bool use_once = false;
  bool manage_local = false;
  bool no_truncate = false;
  bool count_unexpected = false;  // manage_local: headers that the append finds have taken room
  bool unexpected_hdr_disable = false;
  bool link_disable = false;
  bool comm_disable = false;
  bool flowctrl_disable = false;
  bool success_disable = false;
  bool over_disable = false;
  bool unlink_disable = false;
  bool ct_comm = false;
  bool ct_overflow = false;
  bool ct_bytes = false;
  auto operator<=>(const Entry&) const = default;
};

// The options of a memory descriptor.
struct Descriptor {
  bool has_queue = true;
  uint8_t counter = none;
  bool ct_send = false;
  bool ct_ack = false;
  bool ct_reply = false;
  bool ct_bytes = false;
  bool send_disable = false;
  bool success_disable = false;
  auto operator<=>(const Descriptor&) const = default;
};

// Put, get, atomic, fetching atomic.
struct Movement {
  uint16_t target = 0;
  Region local;   // the source; of a get the destination
  std::vector<Region> pieces;  // a scatter list, counted from local.offset; none: one piece
  uint16_t skip = 0;           // bytes of the list before those that move
  uint16_t fetch_offset = 0;  // the place of the values before a fetching atomic
  uint16_t match_bits = 0;
  uint16_t remote_offset = 0;
  Ack ack = Ack::none;
  Descriptor descriptor;
  AtomicKind atomic = AtomicKind::sum;
  bool is_signed = true;
  int64_t operand = 0;
  auto operator<=>(const Movement&) const = default;
};

struct Trigger {
  uint8_t counter = 0;
  uint16_t threshold = 0;
  auto operator<=>(const Trigger&) const = default;
};

struct Operation {
  OperationKind kind = OperationKind::put;
  std::optional<Trigger> trigger;
  // append, search
  List list = List::priority;
  Entry entry;
  bool removes = false;  // search
  // unlink: the operation that appended. ct_wait: the test
  uint16_t number = 0;
  Movement movement;
  // counters
  uint8_t counter = 0;
  uint16_t success = 0;
  uint16_t failure = 0;
  // eq_get, eq_wait
  bool departures = false;
  auto operator<=>(const Operation&) const = default;
};

[[nodiscard]] inline bool moves_data(OperationKind kind) {
  return kind == OperationKind::put || kind == OperationKind::get || kind == OperationKind::atomic ||
         kind == OperationKind::fetch_atomic;
}

// The state of a rank before its first call.
struct Setup {
  bool matching = true;  // false: list entries, which take every message
  bool flow_control = false;
  bool has_queue = true;  // the portal table entry posts to `arrivals`
  uint16_t arrivals_max = any;  // slots of `arrivals`, if there is flow control
  uint16_t user = 0;
  uint16_t counters = 0;
  uint16_t entries_max = any;
  uint16_t list_max = any;
  uint16_t headers_max = any;
  uint16_t triggered_max = any;  // the most operations that wait for one counter
  uint16_t memory_bytes = 64;
  auto operator<=>(const Setup&) const = default;
};

struct RankProgram {
  Setup setup;
  std::vector<Operation> operations;
  auto operator<=>(const RankProgram&) const = default;
};
// True if an entry of the rank has a scatter list. An event's start is undefined then where no byte has landed.
[[nodiscard]] inline bool has_lists(const RankProgram& rank) {
  return std::any_of(rank.operations.begin(), rank.operations.end(),
                     [](const Operation& operation) { return !operation.entry.pieces.empty(); });
}

struct Program {
  std::vector<RankProgram> ranks;
  uint16_t killed = any;  // a rank that dies at some moment; nobody knows what it has seen
  auto operator<=>(const Program&) const = default;
};

// The byte that a rank's memory holds at first.
[[nodiscard]] inline uint8_t first_byte(uint16_t rank, uint16_t offset) {
  return static_cast<uint8_t>(offset % 8 == 0 ? 1 + rank * 64 + offset / 8 : 0);
}
// The user pointer and the header data of an operation: both tell whose it is.
[[nodiscard]] inline uint16_t name_of(uint16_t rank, uint16_t operation) {
  return static_cast<uint16_t>((rank + 1) * 256 + operation);
}

}  // namespace spinloom::model
