// HandlerCall - a call that a running handler makes to its NIC, decoded from the command window.
//
// Contract: plain data; the words are those of spinloom/hpu_map.h. `local` has been resolved by the
//   driver to the bytes it names and the kind of memory they lie in.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::nic {

enum class LocalMemory : uint8_t { none, packet, constants, state, stack, outside };

struct HandlerCall {
  uint32_t call = 0;     // SPL_CALL_...
  uint32_t options = 0;  // the bits above the call in WORD0 (SPL_DMA_... of spinloom/handler.h)
  LocalMemory local_memory = LocalMemory::none;
  uint8_t* local = nullptr;  // resolved bytes, null when outside
  uint64_t offset = 0;       // in the entry's (or the handler's) host memory
  uint64_t length = 0;
  uint32_t handle = 0;       // test, wait
  uint64_t success = 0;      // counter increments
  uint64_t failure = 0;
};

}  // namespace spinloom::nic
