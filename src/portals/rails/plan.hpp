// Plan - which rail carries which bytes of a long message.
//
// Contract: fragment_bytes_for() chooses the length of fragments, plan() gives each fragment a rail. A rail that is
//   busy until `free_after` ends a fragment of n bytes at free_after + n * byte_time; every fragment goes to the rail
//   that ends it first, the lowest number among equals. So rails of unequal speed end together, up to one fragment.
// Invariants: (1) fragments cover the message once, in order; (2) a rail that is not usable gets none; without a usable
//   rail the plan is empty.
// Source: MPC's data striping over several NICs (deliverable D4.7, sections 2.2.1.2 and 2.5: fragments of 512 KiB).
// Threads: pure functions. Time: differences only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace spinloom::rails {

struct Fragment {
  uint32_t rail = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const Fragment&) const = default;
};

struct RailLoad {
  Rate byte_time{1, 1};  // the measured time for a byte
  Time free_after{};  // the time from now until the rail has carried what it has been given
  bool is_usable = true;
};

inline constexpr uint64_t fragment_bytes_usual = 512 << 10;
inline constexpr uint64_t fragment_bytes_min = 64 << 10;

// Returns a length with which each usable rail has two fragments of the message: whole pages, from fragment_bytes_min
// to `fragment_bytes_max`. If `fragment_bytes_max` is below fragment_bytes_min, the length is `fragment_bytes_max`.
[[nodiscard]] uint64_t fragment_bytes_for(uint64_t bytes, uint64_t usable_rails, uint64_t fragment_bytes_max);

// Speeds are measured, so rails that are slower than the fastest of a group by less than a quarter count as equally
// fast: each gets the mean time of its group.
void level_speeds(std::span<RailLoad> rails);

[[nodiscard]] std::vector<Fragment> plan(uint64_t bytes, uint64_t fragment_bytes, std::span<const RailLoad> rails);

}  // namespace spinloom::rails
