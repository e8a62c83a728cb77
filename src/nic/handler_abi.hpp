// Handler ABI - how a HER becomes registers and stack of an RV32 handler, and a command window a call.
//
// Contract: shared by every driver that executes handler images. arguments_of() writes the structs that the
//   handler interface passes (spinloom/handler.h; RV32 passes structs of more than two words by reference)
//   to the top of the HPU's stack and says what goes into a0..a2 and sp. decode_call() turns the words of
//   the command window into a HandlerCall whose local address is resolved against the handler's memory.
// Invariants: (1) the stack pointer is 16-byte aligned and below everything written; (2) a local range that
//   is not wholly in one region resolves to `outside`.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hpu/memory.hpp"
#include "nic/action.hpp"
#include "nic/handler_call.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::nic {

struct HandlerArguments {
  std::array<uint32_t, 4> registers{};  // a0..a3
  uint32_t stack_pointer = 0;
};

// `stack` is the HPU's scratchpad, mapped at SPL_HPU_STACK_BASE.
[[nodiscard]] HandlerArguments arguments_of(const Her& her, std::span<uint8_t> stack);

[[nodiscard]] HandlerCall decode_call(const std::array<uint32_t, SPL_CMD_WORDS>& words,
                                      const hpu::AddressSpace& memory);

}  // namespace spinloom::nic
