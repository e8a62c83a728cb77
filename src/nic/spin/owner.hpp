// Owner - the owner of a handler execution or of a DMA.
//
// Contract: parts that serve several kinds of work (executions, DMAs) keep an Owner and give it back; the NIC that is
//   built of these parts defines the kinds.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/spin/slab.hpp"

namespace spinloom::spin {

struct Owner {
  uint8_t kind = 0;
  uint32_t slot = no_slot;
};

}  // namespace spinloom::spin
