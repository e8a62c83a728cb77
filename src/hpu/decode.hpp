// Op - one decoded RV32IMAC instruction; decode and expand_compressed make it from the raw bits.
//
// Contract: decode() is total: what is not RV32IMAC (or a counter read of Zicsr) becomes Code::illegal. Operands
//   are ready to use: immediates are sign-extended, auipc is already added to pc, a destination x0 is
//   register_discard, unused sources are x0 (always zero, always ready), a compressed instruction is its expansion.
// Invariants: 1. rd is 1..32, rs1 and rs2 are 0..31; 2. slots is 1 or 2 (halfwords); 3. an Op is 16 bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::hpu {

// Writes to x0 go here, so that execution needs no test.
inline constexpr uint8_t register_discard = 32;
inline constexpr unsigned register_slots = 33;

// Order matters: branches, loads, stores and atomics are ranges (static_assert in decode.cpp).
// clang-format off
#define SPL_HPU_OPS(X)                                                              \
  X(constant) X(jal) X(jalr)                                                        \
  X(beq) X(bne) X(blt) X(bge) X(bltu) X(bgeu)                                       \
  X(lb) X(lh) X(lw) X(lbu) X(lhu) X(sb) X(sh) X(sw)                                 \
  X(addi) X(slti) X(sltiu) X(xori) X(ori) X(andi) X(slli) X(srli) X(srai)           \
  X(add) X(sub) X(sll) X(slt) X(sltu) X(xor_) X(srl) X(sra) X(or_) X(and_)          \
  X(mul) X(mulh) X(mulhsu) X(mulhu) X(div) X(divu) X(rem) X(remu)                   \
  X(lr) X(sc) X(amoswap) X(amoadd) X(amoxor) X(amoand) X(amoor)                     \
  X(amomin) X(amomax) X(amominu) X(amomaxu)                                         \
  X(fence) X(counter) X(ecall) X(ebreak) X(illegal) X(no_execute)
// clang-format on

enum class OpCode : uint8_t {
#define SPL_HPU_OP_NAME(name) name,
  SPL_HPU_OPS(SPL_HPU_OP_NAME)
#undef SPL_HPU_OP_NAME
};

struct Op {
  OpCode code = OpCode::no_execute;
  uint8_t rd = register_discard;
  uint8_t rs1 = 0;
  uint8_t rs2 = 0;
  int32_t immediate = 0;  // constant: the value; jal and branches: byte offset; counter: which (Counter)
  uint32_t raw = 0;       // the bits as fetched
  uint8_t slots = 1;      // halfwords to the next instruction
};
static_assert(sizeof(Op) == 16, "four decoded instructions share a cache line");

// Which counter a Zicsr read gives; the flag asks for the upper half.
enum Counter : int32_t { counter_cycle = 0, counter_time = 1, counter_instret = 2, counter_high = 0x80 };

// raw holds the instruction in its low bits; a compressed one (low two bits not 11) uses the low halfword.
[[nodiscard]] Op decode(uint32_t raw, uint32_t pc);

// The 32-bit instruction that a compressed one stands for, 0 (illegal) where there is none on RV32IMAC.
[[nodiscard]] uint32_t expand_compressed(uint16_t raw);

[[nodiscard]] const char* name_of(OpCode code);

[[nodiscard]] constexpr bool is_compressed(uint32_t raw) { return (raw & 3) != 3; }
[[nodiscard]] constexpr bool is_load(OpCode code) { return code >= OpCode::lb && code <= OpCode::lhu; }
[[nodiscard]] constexpr bool is_store(OpCode code) { return code >= OpCode::sb && code <= OpCode::sw; }
[[nodiscard]] constexpr bool is_atomic(OpCode code) { return code >= OpCode::lr && code <= OpCode::amomaxu; }

}  // namespace spinloom::hpu
