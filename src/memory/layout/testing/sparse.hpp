// Test sparse - messages of any length and reach: where the pieces of a cut lie, by every way to walk a blob.
//
// Contract: check_sparse() compares with place_of() (place.hpp), and moves bytes where the system gives address space
//   without memory. It returns nothing, or a sentence that says what differs. `built` is the type whose blob is tried,
//   `reference` the type that it is compared with.
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
  int cuts = 0;
};

std::string check_sparse(const Type& built, const Type& reference, const Trial& trial);

// A random type of few nodes whose packed bytes or addresses go beyond 2^31 or 2^32.
Type random_sparse_type(Random& random);

}  // namespace spinloom::layout::test
