// Kernel test - the parts that tests of kernels share: memory full of noise, and block sizes with their own kernels.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "memory/layout/kernel.hpp"

namespace spinloom::layout {

inline std::vector<std::byte> noise(Random& random, int64_t bytes) {
  std::vector<std::byte> made(static_cast<size_t>(bytes));
  for (size_t at = 0; at < made.size(); at += sizeof(uint32_t)) {
    const auto word = static_cast<uint32_t>(random.below(uint64_t{1} << 32));
    std::memcpy(made.data() + at, &word, std::min(sizeof word, made.size() - at));
  }
  return made;
}

// Each exact size, and the last of each range of sizes.
inline std::vector<int64_t> blocks() {
  std::vector<int64_t> found(exact_blocks.begin(), exact_blocks.end());
  for (const int64_t end : range_ends) found.push_back(std::min<int64_t>(end, 1300));
  return found;
}

}  // namespace spinloom::layout
