// Iovec - a message as a list of (offset, bytes): what scatter-gather interfaces take.
//
// Contract: export_iovec() lists the contiguous pieces of `count` elements of a blob in packed order; a piece that
//   begins where the one before it ends is merged with it. Offsets count from the buffer address given to MPI. It fails
//   with Code::exhausted when the list would be longer than limits.entries_max.
// Invariants: (1) no piece is empty; (2) the pieces' bytes add up to count * size.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/cursor.hpp"

namespace spinloom::layout {

struct IovecLimits {
  int64_t entries_max = int64_t{1} << 24;
};

[[nodiscard]] Result<std::vector<Piece>> export_iovec(const Blob& blob, int64_t count, const IovecLimits& limits = {});

}  // namespace spinloom::layout
