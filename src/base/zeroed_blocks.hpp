// ZeroedBlocks - the name by which a library of a process tells libspinloom-heap.so, where that is loaded, whose blocks
// of malloc are to begin as zeros: those that the code in these bytes of memory asks for, and whose length is that of a
// list of iovecs. A later call takes the place of an earlier one. Threads: any. Time: none.
#pragma once

#include <cstddef>

#define SPINLOOM_ZEROED_BLOCKS spinloom_zeroed_blocks_1

namespace spinloom {

using ZeroedBlocks = void(const void* code, size_t bytes);

}  // namespace spinloom
