// Draft shapes - a blob taken apart into nests without branches: levels around blocks of one length, or around runs.
//
// Contract: shapes_of() gives the shapes of `count` elements, or none if the message is empty or there would be more
//   than shapes_max. Offsets count from the buffer address given to MPI; the tables are those of the blob.
// Invariants: (1) the shapes hold each packed byte once; (2) level 0 turns fastest.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/layout/blob.hpp"

namespace spinloom::gpu {

inline constexpr size_t shapes_max = 64;

struct ShapeLevel {
  int64_t count = 0;
  int64_t stride = 0;
  const std::byte* table = nullptr;  // offsets, in place of the stride
  bool is_wide = false;  // the table holds offsets of 64 bits
  int64_t packed_stride = 0;  // stride in the packed bytes
};

struct ShapeRun {
  int64_t offset = 0;
  int64_t start = 0;
};

struct Shape {
  std::vector<ShapeLevel> levels;
  int64_t block = 0;  // runs: packed bytes of all of them
  int64_t offset = 0;
  int64_t packed_offset = 0;
  int64_t run_count = 0;  // 0: the block is contiguous
  const std::byte* run_table = nullptr;
  bool is_wide = false;  // the table holds offsets of 64 bits

  [[nodiscard]] ShapeRun run(int64_t index) const;
};

std::vector<Shape> shapes_of(const layout::Blob& blob, int64_t count);

}  // namespace spinloom::gpu
