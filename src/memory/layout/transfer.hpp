// Transfer - copies from one layout to another without a packed buffer in between.
//
// Contract: copy() moves the bytes of `from` (count elements at base) to those of `to`, in packed order: the n-th
//   packed byte of the one becomes the n-th packed byte of the other. Both messages hold the same number of bytes. With
//   `first` and `last`, only the packed bytes [first, last) are moved. The memory of the two sides does not overlap.
//   If `to` overlaps itself, the result is not defined, as in MPI.
// Threads: pure over disjoint memory. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::layout {

// One side: `count` elements of a blob at the buffer address given to MPI.
struct Source {
  const Blob& blob;
  int64_t count = 1;
  const std::byte* base = nullptr;
};
struct Target {
  const Blob& blob;
  int64_t count = 1;
  std::byte* base = nullptr;
};

Status copy(const Source& from, const Target& to);
Status copy(const Source& from, const Target& to, int64_t first, int64_t last);

}  // namespace spinloom::layout
