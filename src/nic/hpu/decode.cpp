#include "nic/hpu/decode_fields.hpp"

namespace spinloom::hpu {
namespace {

static_assert(static_cast<int>(OpCode::fld) - static_cast<int>(OpCode::lb) == 6, "loads are one range");
static_assert(static_cast<int>(OpCode::fsd) - static_cast<int>(OpCode::sb) == 4, "stores are one range");
static_assert(static_cast<int>(OpCode::amomaxu) - static_cast<int>(OpCode::lr) == 10, "atomics are one range");
static_assert(static_cast<int>(OpCode::fcsr) - static_cast<int>(OpCode::fmadd) == 25,
              "floating-point operations are one range");

constexpr int32_t immediate_b(uint32_t raw) {
  return signed_bits(bits(raw, 31, 1) << 12 | bits(raw, 7, 1) << 11 | bits(raw, 25, 6) << 5 | bits(raw, 8, 4) << 1, 13);
}
constexpr int32_t immediate_j(uint32_t raw) {
  return signed_bits(bits(raw, 31, 1) << 20 | bits(raw, 12, 8) << 12 | bits(raw, 20, 1) << 11 | bits(raw, 21, 10) << 1,
                     21);
}

Op constant_form(Op op, uint32_t value) {
  op = register_form(op, OpCode::constant);
  op.rs1 = 0;
  op.rs2 = 0;
  op.immediate = static_cast<int32_t>(value);
  return op;
}
Op jump_form(Op op) {
  const int32_t offset = immediate_j(op.raw);
  op = constant_form(op, 0);
  op.code = OpCode::jal;
  op.immediate = offset;
  return op;
}

Op decode_branch(Op op) {
  switch (bits(op.raw, 12, 3)) {
    case 0: return store_form(op, OpCode::beq, immediate_b(op.raw));
    case 1: return store_form(op, OpCode::bne, immediate_b(op.raw));
    case 4: return store_form(op, OpCode::blt, immediate_b(op.raw));
    case 5: return store_form(op, OpCode::bge, immediate_b(op.raw));
    case 6: return store_form(op, OpCode::bltu, immediate_b(op.raw));
    case 7: return store_form(op, OpCode::bgeu, immediate_b(op.raw));
    default: return op;
  }
}

Op decode_load(Op op) {
  const int32_t offset = immediate_i(op.raw);
  switch (bits(op.raw, 12, 3)) {
    case 0: return immediate_form(op, OpCode::lb, offset);
    case 1: return immediate_form(op, OpCode::lh, offset);
    case 2: return immediate_form(op, OpCode::lw, offset);
    case 4: return immediate_form(op, OpCode::lbu, offset);
    case 5: return immediate_form(op, OpCode::lhu, offset);
    default: return op;
  }
}

Op decode_store(Op op) {
  switch (bits(op.raw, 12, 3)) {
    case 0: return store_form(op, OpCode::sb, immediate_s(op.raw));
    case 1: return store_form(op, OpCode::sh, immediate_s(op.raw));
    case 2: return store_form(op, OpCode::sw, immediate_s(op.raw));
    default: return op;
  }
}

Op decode_immediate(Op op) {
  const int32_t value = immediate_i(op.raw);
  const int32_t shift = static_cast<int32_t>(bits(op.raw, 20, 5));
  const uint32_t upper = bits(op.raw, 25, 7);
  switch (bits(op.raw, 12, 3)) {
    case 0: return immediate_form(op, OpCode::addi, value);
    case 1: return upper == 0 ? immediate_form(op, OpCode::slli, shift) : op;
    case 2: return immediate_form(op, OpCode::slti, value);
    case 3: return immediate_form(op, OpCode::sltiu, value);
    case 4: return immediate_form(op, OpCode::xori, value);
    case 5:
      if (upper == 0) return immediate_form(op, OpCode::srli, shift);
      return upper == 0x20 ? immediate_form(op, OpCode::srai, shift) : op;
    case 6: return immediate_form(op, OpCode::ori, value);
    default: return immediate_form(op, OpCode::andi, value);
  }
}

Op decode_register(Op op) {
  static constexpr OpCode base[8] = {OpCode::add,  OpCode::sll, OpCode::slt, OpCode::sltu,
                                     OpCode::xor_, OpCode::srl, OpCode::or_, OpCode::and_};
  static constexpr OpCode multiply[8] = {OpCode::mul, OpCode::mulh, OpCode::mulhsu, OpCode::mulhu,
                                         OpCode::div, OpCode::divu, OpCode::rem,    OpCode::remu};
  const uint32_t function = bits(op.raw, 12, 3);
  switch (bits(op.raw, 25, 7)) {
    case 0x00: return register_form(op, base[function]);
    case 0x01: return register_form(op, multiply[function]);
    case 0x20:
      if (function == 0) return register_form(op, OpCode::sub);
      return function == 5 ? register_form(op, OpCode::sra) : op;
    default: return op;
  }
}

Op decode_atomic(Op op) {
  if (bits(op.raw, 12, 3) != 2) return op;
  switch (bits(op.raw, 27, 5)) {
    case 0x00: return register_form(op, OpCode::amoadd);
    case 0x01: return register_form(op, OpCode::amoswap);
    case 0x02: return bits(op.raw, 20, 5) == 0 ? register_form(op, OpCode::lr) : op;
    case 0x03: return register_form(op, OpCode::sc);
    case 0x04: return register_form(op, OpCode::amoxor);
    case 0x08: return register_form(op, OpCode::amoor);
    case 0x0c: return register_form(op, OpCode::amoand);
    case 0x10: return register_form(op, OpCode::amomin);
    case 0x14: return register_form(op, OpCode::amomax);
    case 0x18: return register_form(op, OpCode::amominu);
    case 0x1c: return register_form(op, OpCode::amomaxu);
    default: return op;
  }
}

Op decode_system(Op op) {
  if (op.raw == 0x00000073u) {
    op.code = OpCode::ecall;
    return op;
  }
  if (op.raw == 0x00100073u) {
    op.code = OpCode::ebreak;
    return op;
  }
  // csrrs, csrrc, csrrsi and csrrci with a zero operand only read; the counters cannot be written.
  const uint32_t function = bits(op.raw, 12, 3);
  const bool only_reads = (function & 3) >= 2 && bits(op.raw, 15, 5) == 0;
  const uint32_t csr = bits(op.raw, 20, 12);
  const uint32_t counter = (csr & ~0x80u) - 0xc00;
  const bool exists = counter <= 2;
  if (!only_reads || !exists) return decode_float_status(op);
  const int32_t high = (csr & 0x80) != 0 ? counter_high : 0;
  return immediate_form(op, OpCode::counter, static_cast<int32_t>(counter) | high);
}

}  // namespace

Op decode(uint32_t raw, uint32_t pc) {
  Op op;
  op.code = OpCode::illegal;
  op.slots = 2;
  if (is_compressed(raw)) {
    const uint32_t expanded = expand_compressed(static_cast<uint16_t>(raw));
    if (expanded != 0) op = decode(expanded, pc);
    op.raw = raw & 0xffff;
    op.slots = 1;
    return op;
  }
  op.raw = raw;
  switch (bits(raw, 2, 5)) {
    case 0x00: return decode_load(op);
    case 0x01: return decode_float_load(op);
    case 0x03:
      if (bits(raw, 12, 3) <= 1) op.code = OpCode::fence;
      return op;
    case 0x04: return decode_immediate(op);
    case 0x05: return constant_form(op, pc + (raw & 0xfffff000u));
    case 0x08: return decode_store(op);
    case 0x09: return decode_float_store(op);
    case 0x0b: return decode_atomic(op);
    case 0x0c: return decode_register(op);
    case 0x0d: return constant_form(op, raw & 0xfffff000u);
    case 0x10:
    case 0x11:
    case 0x12:
    case 0x13: return decode_float_multiply_add(op);
    case 0x14: return decode_float_operation(op);
    case 0x18: return decode_branch(op);
    case 0x19: return bits(raw, 12, 3) == 0 ? immediate_form(op, OpCode::jalr, immediate_i(raw)) : op;
    case 0x1b: return jump_form(op);
    case 0x1c: return decode_system(op);
    default: return op;
  }
}

const char* name_of(OpCode code) {
  static constexpr const char* names[] = {
#define SPL_HPU_OP_NAME(name) #name,
      SPL_HPU_OPS(SPL_HPU_OP_NAME, SPL_HPU_OP_NAME)
#undef SPL_HPU_OP_NAME
  };
  return names[static_cast<unsigned>(code)];
}

}  // namespace spinloom::hpu
