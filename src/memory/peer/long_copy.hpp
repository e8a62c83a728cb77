// LongCopy - copies a long message between mappings.
//
// Contract: copy_long() has the effect of memcpy. On x86-64, a copy that is so long that it would push its own bytes
//   out of the caches is written past the caches: the lines of the destination are not fetched first, and the next
//   lines of the source are fetched ahead.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::peer {

void copy_long(uint8_t* to, const uint8_t* from, uint64_t length);

}  // namespace spinloom::peer
