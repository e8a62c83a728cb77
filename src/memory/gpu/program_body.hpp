// Program body - the arena that kernels read, and what a launch must know. For the floor only.
//
// Contract: the arena holds parts, the part of each tile, blobs and tables at places that the parts name. It is
//   uploaded as it is.
// Threads: immutable. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/gpu/kernel_parts.h"
#include "memory/gpu/program.hpp"

namespace spinloom::gpu {

struct Program::Body {
  std::vector<uint64_t> arena;
  std::vector<kernel::Part> parts;
  uint64_t tile_parts = 0;
  uint32_t tiles = 0;
  uint32_t kind = kernel::kind_word;  // kernel::kinds: parts differ
  uint32_t ends_count = 1;
  std::optional<kernel::Brief> brief;  // a short message has this beside its part
  int64_t bytes = 0;
  int64_t bytes_touched = 0;

  // entry() and brief_entry are places in the list of kernels.cu.
  [[nodiscard]] size_t entry() const {
    if (ends_count > 1) return kernel::kinds + 1;
    if (parts.size() == 1) return kind;
    return kind == kernel::kind_word ? kernel::kinds + 2 : kernel::kinds;
  }
  static constexpr size_t brief_entry = kernel::kinds + 3;

  [[nodiscard]] uint32_t brief_blocks() const {
    const uint32_t block_bytes = kernel::threads * brief->width;
    return (brief->bytes + block_bytes - 1) / block_bytes;
  }

  [[nodiscard]] kernel::Arguments arguments(const void* arena_data) const {
    return {static_cast<const kernel::u8*>(arena_data), tile_parts};
  }
};

}  // namespace spinloom::gpu
