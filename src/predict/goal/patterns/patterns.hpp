// Patterns - schedules of collective operations, by name.
//
// Contract: make_pattern() gives the schedule of a pattern for a number of ranks; rank 0 is the root where there is
//   one. `bytes`: of a message; where messages carry several blocks or a share, of a block or of all shares, as the
//   pattern's `about` says. A rank sends on what it has received: the operations of a round wait for the receives of
//   the rounds before, those of `pairwise_exchange` for its sends, too. Nothing is computed; where many operations wait
//   for many, a computation of 0 is in between. An unknown name, a number of ranks that the pattern does not have, and
//   an option that it does not take are errors.
// Invariants: (1) ranks with the same graph share a Program.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

struct PatternOptions {
  // The factor by which a round of a dissemination multiplies the ranks of which a rank has heard; without it 2.
  std::optional<uint32_t> radix = {};
  // The length of segments, for messages that travel in such; without it 8 KiB.
  std::optional<uint64_t> segment_bytes = {};
  // Ranks along each dimension of a halo, the last one fastest; without it about as many along each.
  std::vector<uint32_t> grid = {};
};

struct PatternName {
  std::string_view name;
  std::string_view about;
};

[[nodiscard]] Result<schedule::Schedule> make_pattern(std::string_view name, uint32_t ranks, uint64_t bytes,
                                                      const PatternOptions& options = {});
[[nodiscard]] std::vector<PatternName> pattern_names();

}  // namespace spinloom::goal
