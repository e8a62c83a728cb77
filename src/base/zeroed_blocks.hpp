// ZeroedBlocks - a call of libspinloom-heap.so: blocks that certain code asks malloc for shall begin as zeros.
//
// Contract: a library of the process finds the call by the name SPINLOOM_ZEROED_BLOCKS, where libspinloom-heap.so is
//   loaded. `code` and `bytes` are the memory of the code. Its blocks are zeroed if their length is that of a list of
//   iovecs: a multiple of sizeof(iovec). A later call replaces an earlier one.
// Threads: any. Time: none.
#pragma once

#include <cstddef>

#define SPINLOOM_ZEROED_BLOCKS spinloom_zeroed_blocks_1

namespace spinloom {

using ZeroedBlocks = void(const void* code, size_t bytes);

}  // namespace spinloom
