// Random layouts - families of random messages for the suite over all ways (layout_ways.hpp).
//
// Contract: make(random, index) gives a message; `index` counts the messages of a family, so that what must all come
//   (block sizes with kernels of their own) comes in turn. partner() gives a side of as many bytes as `count` elements
//   of a type, which writes no byte twice: the same type, blocks of another length, or the same blocks at other places.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "memory/layout/testing/layout_ways.hpp"

namespace spinloom::layout::test {

struct Family {
  const char* name;
  Row (*make)(Random& random, uint64_t index);
};

[[nodiscard]] std::span<const Family> families();
[[nodiscard]] Side partner(Random& random, const Type& type, int64_t count);

}  // namespace spinloom::layout::test
