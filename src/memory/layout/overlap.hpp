// Overlap - finds out if a message writes some byte of memory twice: such a receive has no defined result in MPI.
//
// Contract: find_overlap() is exact. Where each stride is at least as long as all that it repeats, and listed parts lie
//   apart as wholes, arithmetic over the nest settles the question, whatever the size. The pieces of all other messages
//   are listed, up to limits::message_blocks_max of them (Code::exhausted beyond).
// Invariants: find_overlap() agrees with oracle::overlaps (checked for random trees).
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "memory/layout/nest.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

// The lowest memory offset that is written twice, and two packed bytes that land there.
struct Overlap {
  int64_t offset = 0;
  int64_t first = 0;
  int64_t second = 0;
};

Result<std::optional<Overlap>> find_overlap(const Type& type, int64_t count);

std::string describe(const Overlap& overlap);

}  // namespace spinloom::layout
