// Handler ABI - turns a HER into registers and stack of an RV32 handler, and a command window into a call.
//
// Contract: shared by every driver that executes handler images. arguments_of() writes the structs that the
//   handler interface passes (spinloom/handler.h; RV32 passes structs of more than two words by reference)
//   to the top of the HPU's stack and says what goes into a0..a3 and sp. decode_call() turns the words of
//   the command window into a HandlerCall whose local address is resolved against the handler's memory: an
//   address space of RV32, or whatever a native handler's pointers mean.
// Invariants: (1) the stack pointer is 16-byte aligned and below everything written; (2) a local range that
//   is not wholly in one region resolves to `outside`.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "nic/hpu/memory.hpp"
#include "nic/spin/handler_call.hpp"
#include "nic/spin/her.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::spin {

struct HandlerArguments {
  std::array<uint32_t, 4> registers{};  // a0..a3
  uint32_t stack_pointer = 0;
};

// `stack` is the HPU's scratchpad, mapped at SPL_HPU_STACK_BASE.
[[nodiscard]] HandlerArguments arguments_of(const Her& her, std::span<uint8_t> stack);
// The frame's registers in the command window: SPL_CMD_FRAME_BYTES and the next three.
[[nodiscard]] inline std::array<uint32_t, 4> frame_registers_of(const Her& her) {
  return {static_cast<uint32_t>(her.payload.length), her.message, her.rule_set, her.flags};
}

// The argument of a mail handler: spl_mail_t of spinloom/frame.h.
struct Mail {
  uint64_t argument = 0;
  uint32_t value = 0;
  uint32_t context = 0;
};
[[nodiscard]] inline Mail mail_of(const Her& her) { return {her.hdr_data, her.message, her.rule_set}; }

using CallWords = std::array<uint32_t, SPL_CMD_WORDS>;

// Resolves the words of a call that are addresses.
class CallMemory {
 public:
  struct Range {
    uint8_t* bytes = nullptr;
    LocalMemory memory = LocalMemory::outside;
  };
  virtual ~CallMemory() = default;
  // True if the word is not the null address.
  [[nodiscard]] virtual bool is_nonnull(unsigned word) const = 0;
  // Returns the `length` bytes at that address, and the kind of memory in which they lie.
  [[nodiscard]] virtual Range range(unsigned word, uint64_t length) const = 0;
  // Returns the byte at that address plus `index`; null if it cannot be read.
  [[nodiscard]] virtual const uint8_t* byte(unsigned word, uint64_t index) const = 0;
};

[[nodiscard]] HandlerCall decode_call(const CallWords& words, const CallMemory& memory);
[[nodiscard]] HandlerCall decode_call(const CallWords& words, const hpu::AddressSpace& memory);

}  // namespace spinloom::spin
