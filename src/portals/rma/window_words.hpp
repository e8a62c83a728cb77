// Words - the places of a rank's control words of a window, in words of 64 bits.
//
// Contract: first the tickets of locks (next ticket, ticket served for shared and for exclusive locks). Then, from
//   first_place on, a word for each place of the window that says how often it has posted, and as many that say how
//   often it has completed; then one for each round of fences.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rma::words {

inline constexpr uint64_t ticket = 0;
inline constexpr uint64_t serves_shared = 1;
inline constexpr uint64_t serves_exclusive = 2;
inline constexpr uint64_t first_place = 3;

}  // namespace spinloom::rma::words
