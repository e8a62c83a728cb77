// HandlerCall - a call that a running handler makes to its NIC, decoded from the command window.
//
// Contract: plain data; the words are those of spinloom/hpu_map.h. `local` and `before` have been resolved by the
//   driver to the bytes they name and the kind of memory these lie in.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/spin/atomic.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::spin {

// The way in which a handler ended.
enum class HandlerEnd : uint8_t { returned, fault, segv, budget };

enum class LocalMemory : uint8_t { none, packet, constants, state, stack, outside };

// True for memory that every handler may write to. (Some handlers may write to their packet, too.)
[[nodiscard]] constexpr bool is_hpu_memory(LocalMemory memory) {
  return memory == LocalMemory::state || memory == LocalMemory::stack;
}
[[nodiscard]] constexpr bool is_readable(LocalMemory memory) {
  return is_hpu_memory(memory) || memory == LocalMemory::packet || memory == LocalMemory::constants;
}

// True for a put, get or atomic on host memory instead of the handler's memory, and for a process-put.
[[nodiscard]] constexpr bool is_from_host(uint32_t call) {
  return call == SPL_CALL_PUT_FROM_HOST || call == SPL_CALL_GET_FROM_HOST || call == SPL_CALL_ATOMIC_FROM_HOST ||
         call == SPL_CALL_PROCESS_PUT;
}

struct HandlerCall {
  uint32_t call = 0;     // SPL_CALL_...
  uint32_t options = 0;  // the bits above the call in WORD0 (PTL_HANDLER_HOST_MEM and others of spinloom/handler.h)
  LocalMemory local_memory = LocalMemory::none;
  uint8_t* local = nullptr;  // resolved bytes, null when outside
  uint64_t offset = 0;       // offset in the host memory of the entry or of the handler
  uint64_t length = 0;
  uint32_t handle = 0;       // the handle of a test or a wait; the value of mail
  uint64_t success = 0;      // the successes of a counter's call
  uint64_t failure = 0;
  // For atomics. `local` gets the value before, or is the HPU memory operated on.
  uint64_t compare = 0;
  uint64_t operand = 0;  // an atomic's operand, mail's argument, a telemetry count's number, or a debug line's value
  uint32_t width = 8;
  LocalMemory before_memory = LocalMemory::none;
  uint8_t* before = nullptr;  // the place that gets the value before, for atomics on HPU memory
  // For puts, gets and atomics.
  uint32_t target = 0;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t hdr_data = 0;
  uint64_t user_ptr = 0;
  uint32_t context = 0;  // the context of a process-put, or the one that mail goes to
  AtomicOperation atomic = AtomicOperation::min;
  Datatype datatype = Datatype::int8;
};

}  // namespace spinloom::spin
