// Copy - the copy between a message's packed bytes and memory.
//
// Contract: pack() and unpack() move the packed bytes [first, last) of `count` elements of a blob. They hand whole
//   shapes to the kernel set of this processor (kernel.hpp); where SPINLOOM_KERNEL names the walker, they use that of
//   include/spinloom/layout_walk.h, the same file that a handler runs. base is the buffer address given to MPI;
//   `packed` holds last - first bytes. It is an Error if the range or a size is wrong, or if SPINLOOM_KERNEL names no
//   kernel set that runs here. pack_at_once() and unpack_at_once() move whole messages for callers that have room for
//   them. False means that nothing has been done, and that pack() or unpack() must be called: they say why, or take the
//   longer way.
// Threads: pure over disjoint ranges. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::layout {

Status pack(const Blob& blob, int64_t count, const std::byte* base, int64_t first, int64_t last,
            std::span<std::byte> packed);
Status unpack(const Blob& blob, int64_t count, std::byte* base, int64_t first, int64_t last,
              std::span<const std::byte> packed);

[[nodiscard]] bool pack_at_once(const Blob& blob, int64_t count, const std::byte* base, std::byte* packed);
[[nodiscard]] bool unpack_at_once(const Blob& blob, int64_t count, std::byte* base, const std::byte* packed);

}  // namespace spinloom::layout
