// Program body - the arena that kernels read, and what a launch must know. For the floor only.
//
// Contract: the arena holds parts, the part of each tile, blobs and tables at places that the parts name. It is
//   uploaded as it is.
// Threads: immutable. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/kernel_parts.h"
#include "gpu/program.hpp"

namespace spinloom::gpu {

struct Program::Body {
  std::vector<uint64_t> arena;
  std::vector<kernel::Part> parts;
  uint64_t tile_parts = 0;
  uint32_t tiles = 0;
  uint32_t kind = kernel::kind_word;  // kernel::kinds: parts differ
  uint32_t ends = 1;
  int64_t bytes = 0;
  int64_t touched = 0;

  [[nodiscard]] kernel::Arguments arguments(const void* arena_data) const {
    return {static_cast<const kernel::u8*>(arena_data), tile_parts};
  }
};

}  // namespace spinloom::gpu
