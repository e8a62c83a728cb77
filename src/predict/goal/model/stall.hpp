// Stall - why a schedule does not complete, as a sentence.
//
// Contract: an engine fills in what is left when nothing happens any more; stall_error() says which operations wait for
//   which others. Single operations that have begun are known for the ranks in `begun` only, from a second run that
//   records them.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "predict/goal/model/arrivals.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

using Begun = std::unordered_map<uint32_t, std::vector<bool>>;  // the key is a rank, the index an operation

inline constexpr uint32_t stalled_ranks_max = 3;  // the number of ranks that an error names

struct StalledRank {
  uint32_t rank;
  const Matching::Item* receive;  // the first that waits for a message, if one does
  const Matching::Item* message;  // the first that waits for a receive
  std::optional<Arrivals::Waiter> arrival;  // the first that waits for one-sided operations
  bool has_waiting;  // some of its operations have not begun
};

struct Stall {
  std::vector<StalledRank> ranks;
  uint64_t events = 0;
  uint64_t unmatched = 0;
  uint64_t not_begun = 0;  // operations that never begin
  std::string remark;  // a further part of the sentence, before the sums
};

[[nodiscard]] Error stall_error(const schedule::Schedule& schedule, const Begun& begun, const Stall& stall);

}  // namespace spinloom::goal
