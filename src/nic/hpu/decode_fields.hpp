// decode_fields - the fields of a 32-bit instruction, and the operand formats that several extensions share. Private to
// the decoder's files.
//
// Threads: pure. Time: none.
#pragma once

#include "nic/hpu/decode.hpp"

namespace spinloom::hpu {

constexpr uint32_t bits(uint32_t raw, unsigned low, unsigned count) { return (raw >> low) & ((1u << count) - 1); }

constexpr int32_t signed_bits(uint32_t value, unsigned count) {
  return static_cast<int32_t>(value << (32 - count)) >> (32 - count);
}

constexpr int32_t immediate_i(uint32_t raw) { return static_cast<int32_t>(raw) >> 20; }
constexpr int32_t immediate_s(uint32_t raw) { return signed_bits(bits(raw, 25, 7) << 5 | bits(raw, 7, 5), 12); }

// Fills in code and registers of an Op that has `raw` and `slots`.
inline Op register_form(Op op, OpCode code) {
  const uint32_t rd = bits(op.raw, 7, 5);
  op.code = code;
  op.rd = rd == 0 ? register_discard : static_cast<uint8_t>(rd);
  op.rs1 = static_cast<uint8_t>(bits(op.raw, 15, 5));
  op.rs2 = static_cast<uint8_t>(bits(op.raw, 20, 5));
  return op;
}
inline Op immediate_form(Op op, OpCode code, int32_t immediate) {
  op = register_form(op, code);
  op.rs2 = 0;
  op.immediate = immediate;
  return op;
}
inline Op store_form(Op op, OpCode code, int32_t immediate) {
  op = register_form(op, code);
  op.rd = register_discard;
  op.immediate = immediate;
  return op;
}

// The F and D extensions by major opcode (decode_float.cpp). Instructions that they lack stay illegal.
Op decode_float_load(Op op);
Op decode_float_store(Op op);
Op decode_float_multiply_add(Op op);
Op decode_float_operation(Op op);
Op decode_float_status(Op op);

}  // namespace spinloom::hpu
