// Words - where a rank's control words of a window lie, in words of 64 bits.
//
// Contract: tickets of locks, then for each place of the window how often it has posted and completed, then rounds of
//   fences.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rma::words {

inline constexpr uint64_t ticket = 0;
inline constexpr uint64_t serves_shared = 1;
inline constexpr uint64_t serves_exclusive = 2;
inline constexpr uint64_t first_place = 3;

}  // namespace spinloom::rma::words
