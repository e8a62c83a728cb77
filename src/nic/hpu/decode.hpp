// Op - one decoded RV32IMAFDC instruction; decode and expand_compressed make it from the raw bits.
//
// Contract: decode() is total: bits that are no instruction of RV32IMAFDC, no counter read of Zicsr and no access to
//   fcsr or its parts become OpCode::illegal. Operands are ready to use: immediates are sign-extended, auipc is already
//   added to pc, a destination x0 is register_discard, unused sources are x0 (always zero, always ready), a compressed
//   instruction is its expansion.
// Invariants: 1. a destination is 1..32 or a floating-point register, a source 0..31 or one; 2. slots is 1 or 2
//   (halfwords); 3. an Op is 16 bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "nic/hpu/soft_float.hpp"

namespace spinloom::hpu {

// Destination of instructions that write x0, so that execution needs no test.
inline constexpr uint8_t register_discard = 32;
// The register number of f0; f1..f31 follow.
inline constexpr uint8_t register_float = 33;
inline constexpr unsigned register_slots = 65;

// F marks operations that need floating point; the format, S or D, is not part of the code. Order matters: branches,
// loads, stores, atomics and floating-point operations are ranges (static_assert in decode.cpp).
// clang-format off
#define SPL_HPU_OPS(X, F)                                                           \
  X(constant) X(jal) X(jalr)                                                        \
  X(beq) X(bne) X(blt) X(bge) X(bltu) X(bgeu)                                       \
  X(lb) X(lh) X(lw) X(lbu) X(lhu) F(flw) F(fld) X(sb) X(sh) X(sw) F(fsw) F(fsd)     \
  X(addi) X(slti) X(sltiu) X(xori) X(ori) X(andi) X(slli) X(srli) X(srai)           \
  X(add) X(sub) X(sll) X(slt) X(sltu) X(xor_) X(srl) X(sra) X(or_) X(and_)          \
  X(mul) X(mulh) X(mulhsu) X(mulhu) X(div) X(divu) X(rem) X(remu)                   \
  X(lr) X(sc) X(amoswap) X(amoadd) X(amoxor) X(amoand) X(amoor)                     \
  X(amomin) X(amomax) X(amominu) X(amomaxu)                                         \
  F(fmadd) F(fmsub) F(fnmsub) F(fnmadd) F(fadd) F(fsub) F(fmul) F(fdiv) F(fsqrt)    \
  F(fsgnj) F(fsgnjn) F(fsgnjx) F(fmin) F(fmax) F(feq) F(flt) F(fle) F(fclass)       \
  F(fcvt_w) F(fcvt_wu) F(fcvt_from_w) F(fcvt_from_wu) F(fcvt_float)                 \
  F(fmv_x_w) F(fmv_w_x) F(fcsr)                                                     \
  X(fence) X(counter) X(ecall) X(ebreak) X(illegal) X(no_execute)
// clang-format on

enum class OpCode : uint8_t {
#define SPL_HPU_OP_NAME(name) name,
  SPL_HPU_OPS(SPL_HPU_OP_NAME, SPL_HPU_OP_NAME)
#undef SPL_HPU_OP_NAME
};

struct Op {
  OpCode code = OpCode::no_execute;
  uint8_t rd = register_discard;
  uint8_t rs1 = 0;
  uint8_t rs2 = 0;
  int32_t immediate = 0;  // constant: the value; jal and branches: byte offset; counter and fcsr: the register
  uint32_t raw = 0;  // the bits as fetched
  uint8_t slots = 1;  // halfwords to the next instruction
  uint8_t rs3 = 0;  // third source of fmadd and similar operations
  Rounding rounding = Rounding::nearest_even;  // the rounding of floating-point operations that round
  bool is_double = false;  // the format of floating-point operations
};
static_assert(sizeof(Op) == 16, "four decoded instructions share a cache line");

// The counter that a Zicsr read gives; counter_high asks for its upper half.
enum Counter : int32_t { counter_cycle = 0, counter_time = 1, counter_instret = 2, counter_high = 0x80 };

// The parts of fcsr that an instruction may access.
inline constexpr uint32_t csr_fflags = 1;
inline constexpr uint32_t csr_frm = 2;
inline constexpr uint32_t csr_fcsr = 3;
enum class StatusAction : uint8_t { write = 1, set = 2, clear = 3 };
struct StatusAccess {
  uint32_t csr = 0;
  StatusAction action = StatusAction::set;
  bool has_immediate = false;
  uint32_t immediate = 0;
};
[[nodiscard]] StatusAccess status_access(const Op& op);

// `raw` holds the instruction in its low bits. If the lowest two bits are not 11, the low halfword is a compressed
// instruction.
[[nodiscard]] Op decode(uint32_t raw, uint32_t pc);

// The 32-bit instruction that a compressed instruction stands for; 0 (illegal) if RV32IMAFDC has none.
[[nodiscard]] uint32_t expand_compressed(uint16_t raw);

[[nodiscard]] const char* name_of(OpCode code);

[[nodiscard]] constexpr bool is_compressed(uint32_t raw) { return (raw & 3) != 3; }
[[nodiscard]] constexpr bool is_load(OpCode code) { return code >= OpCode::lb && code <= OpCode::fld; }
[[nodiscard]] constexpr bool is_store(OpCode code) { return code >= OpCode::sb && code <= OpCode::fsd; }
[[nodiscard]] constexpr bool is_atomic(OpCode code) { return code >= OpCode::lr && code <= OpCode::amomaxu; }
// True for floating-point operations other than loads and stores.
[[nodiscard]] constexpr bool is_float_operation(OpCode code) { return code >= OpCode::fmadd && code <= OpCode::fcsr; }
[[nodiscard]] constexpr bool is_float(OpCode code) {
  return is_float_operation(code) || code == OpCode::flw || code == OpCode::fld || code == OpCode::fsw ||
         code == OpCode::fsd;
}

}  // namespace spinloom::hpu
