// Match - which receive of a recorded program got which message.
//
// Contract: match() pairs the point-to-point messages of all ranks as MPI does. The n-th send of a rank to another with
//   one communicator and tag meets the n-th such receive, in the order in which receives were posted. Receives of any
//   source or tag count under the source and tag of the message that they met. The rest is left over. Cancelled sends
//   and receives take no part; where a trace does not give the outcome of a cancel, as many take part as there are
//   messages (cancels.hpp). A receive of any source or tag whose match is in no trace may have got any message that is
//   left over: both are left out then.
// Invariants: (1) communicators are those of Communicators; (2) calls that failed, messages to and from nobody, and
//   ranks of other worlds take no part.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

// One end of a message.
struct Transfer {
  uint32_t trace = 0;  // the index of its rank's trace
  uint32_t event = none;  // the event that began it
  uint32_t done = none;  // the event that ended it; none: the trace has none
  uint32_t signature = none;  // the signature of `event`, or that which made the persistent request
  uint32_t peer = none;  // rank in MPI_COMM_WORLD; none: any source, and no trace has its match
  int32_t tag = 0;
  Block block;
  int64_t bytes = 0;  // the bytes of the message; for a receive, its room
  bool is_doubtful = false;  // the trace does not tell enough to say whom it met
};
struct Pair {
  Transfer send;
  Transfer receive;
};
struct Matching {
  std::vector<Pair> pairs;  // the order is by sender, then that of its sends
  std::vector<Transfer> sends;  // sends that met no receive
  std::vector<Transfer> receives;  // receives that met no send
};

[[nodiscard]] Matching match(std::span<const RankTrace* const> traces);

}  // namespace spinloom::trace
