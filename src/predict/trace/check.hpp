// Check - what is wrong with the messages of a recorded program, or wasted.
//
// Contract: check() says, of the point-to-point messages of all ranks:
//   - truncated: a message has more bytes than its receive has room for;
//   - types_differ: both ends have as many bytes, of other basic types;
//   - not_received, not_sent: sends and receives that met nobody until the end of the traces;
//   - sent_twice: bytes of memory that a rank sends to one peer more than once within one exchange. An exchange is a
//     set of sends that are under way at the same time; the blocks of one call of Neighbor_alltoall, its v and w forms,
//     Alltoallv or Alltoallw belong to it, too. Nothing is said of blocks whose place in memory is in no trace;
//   - room_left: receives with more room than the message has bytes, which is legal.
//   Findings that differ only in time and doubt are one, with their number.
// Invariants: (1) types that are not known, and MPI_PACKED and MPI_BYTE, are never said to differ; (2) a send or a
//   receive whose peer has no trace is not said to be missing; (3) what the traces leave open is said with its doubt.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/trace/match.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::trace {

enum class Trouble : uint8_t { truncated, types_differ, not_received, not_sent, sent_twice, room_left };
[[nodiscard]] std::string_view name_of(Trouble trouble);

// Reasons for which a finding may be wrong.
enum class Doubt : uint8_t {
  no,
  short_trace,  // a trace is shorter than its rank's life
  untold,  // the outcome of a receive or a cancel that may be involved is in no trace
};
[[nodiscard]] std::string_view name_of(Doubt doubt);

struct Finding {
  Trouble trouble = Trouble::truncated;
  uint32_t from = none;  // ranks of MPI_COMM_WORLD; none: any
  uint32_t to = none;
  int32_t tag = 0;
  uint64_t times = 0;
  int64_t sent_bytes = 0;  // the bytes of one message
  int64_t room_bytes = 0;  // the bytes of one receive
  int64_t bytes = 0;  // each time: bytes too many, left, sent twice, of other types, or of the missing message
  // The time when the first of them began, on the clock of the sender (of the receiver, if there is none).
  uint64_t first_ns = 0;
  Doubt doubt = Doubt::no;
};

[[nodiscard]] std::vector<Finding> check(std::span<const RankTrace* const> traces, const Matching& matching);

}  // namespace spinloom::trace
