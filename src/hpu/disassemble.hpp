// disassemble - one decoded instruction as a line of assembly.
//
// Contract: what the processor executes, not what the compiler wrote: compressed instructions show as the ones that
//   they stand for, a loaded constant as `li`. Register names are those of the calling convention.
// Threads: pure. Time: none.
#pragma once

#include <string>

#include "hpu/decode.hpp"

namespace spinloom::hpu {

// "lw a5, 16(a0)", "bne a5, a4, 0x10000010". `pc` is the instruction's own address.
[[nodiscard]] std::string disassemble(const Op& op, uint32_t pc);

}  // namespace spinloom::hpu
