// LongCopy - copies a long message between mappings.
//
// Contract: as memcpy. What would push itself out of the caches is written past them: the destination's lines are not
//   fetched first, and the source's next lines are there in time.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::peer {

void copy_long(uint8_t* to, const uint8_t* from, uint64_t length);

}  // namespace spinloom::peer
