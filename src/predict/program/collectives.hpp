// Collectives - one rank's part of a collective operation under a named algorithm.
//
// Contract: rounds_of() gives what a rank does for a call of a communicator without a remote group. Sizes are the
//   call's own: in v and w forms each peer has a size of its own. algorithm_of() returns the name of the algorithm of a
//   call under the choices, by the bytes and the number of ranks that all members know. parse_choices() takes
//   'allreduce=ring'; an operation or an algorithm that is not in portals/collective/catalogue.hpp is an error that
//   names those that are.
// Invariants: (1) over all ranks of a communicator each leg has one partner of the same bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "portals/collective/algorithms.hpp"
#include "predict/program/rounds.hpp"

namespace spinloom::predict {

// Blocks to send: reductions have one, Reduce_scatter one for each rank.
struct CollectiveCall : collective::Collective {
  trace::Call call = trace::Call::Barrier;
};

struct Algorithms {
  std::map<std::string, std::string, std::less<>> by_operation;  // the chosen ones; all others go by size
};

[[nodiscard]] Result<Algorithms> parse_choices(const std::vector<std::string>& choices);
[[nodiscard]] std::string_view algorithm_of(const CollectiveCall& call, const Algorithms& algorithms);
[[nodiscard]] bool is_collective(trace::Call call);  // Comm_make goes as a barrier of its members
[[nodiscard]] Result<std::vector<Round>> rounds_of(const CollectiveCall& call, const Algorithms& algorithms);

}  // namespace spinloom::predict
