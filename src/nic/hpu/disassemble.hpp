// disassemble - one decoded instruction as a line of assembly.
//
// Contract: shows what the processor executes, not what the compiler wrote: compressed instructions appear in their
//   32-bit form, a loaded constant as `li`. Register names are those of the calling convention.
// Threads: pure. Time: none.
#pragma once

#include <string>

#include "nic/hpu/decode.hpp"

namespace spinloom::hpu {

// For example "lw a5, 16(a0)" or "bne a5, a4, 0x10000010". `pc` is the address of the instruction.
[[nodiscard]] std::string disassemble(const Op& op, uint32_t pc);

}  // namespace spinloom::hpu
