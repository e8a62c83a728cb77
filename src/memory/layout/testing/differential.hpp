// Test differential - moves the bytes of one datatype in every way that we have, and compares with the type map.
//
// Contract: check_dense() lays a message in memory with guards; each cut of its packed bytes goes through the walker,
//   the cursor, the segment, pack() and unpack(), narrow and wide; the whole memory is compared after each.
//   check_sparse() takes messages of any length and reach: it compares where the pieces of a cut lie, and moves bytes
//   where the system gives address space without memory. Both return nothing, or a sentence that says what differs.
//   `built` is the type whose blob is tried, `reference` the type that it is compared with: the same, except where the
//   harness itself is tested.
// Invariants: the same arguments and seed give the same cuts.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout::test {

struct Trial {
  int64_t count = 1;
  uint64_t seed = 1;  // the seed of the contents of memory and of the cuts
  int cuts = 0;  // cuts for each width
};

std::string check_dense(const Type& built, const Type& reference, const Trial& trial);
std::string check_sparse(const Type& built, const Type& reference, const Trial& trial);

// A random type of few nodes whose packed bytes or addresses go beyond 2^31 or 2^32.
Type random_sparse_type(Random& random);

}  // namespace spinloom::layout::test
