// The F and D extensions.
#include <cstddef>

#include "nic/hpu/decode_fields.hpp"

namespace spinloom::hpu {
namespace {

constexpr uint8_t float_register(uint32_t index) { return static_cast<uint8_t>(register_float + index); }

// Takes format and operands of an operation on floating-point registers; false if the format is neither S nor D.
bool take_operands(Op& op) {
  const uint32_t format = bits(op.raw, 25, 2);
  op.is_double = format == 1;
  op.rd = float_register(bits(op.raw, 7, 5));
  op.rs1 = float_register(bits(op.raw, 15, 5));
  op.rs2 = float_register(bits(op.raw, 20, 5));
  return format <= 1;
}

// Takes the instruction's rounding mode; a reserved mode makes the instruction illegal.
Op rounded_form(Op op, OpCode code) {
  const uint32_t rounding = bits(op.raw, 12, 3);
  if (rounding == 5 || rounding == 6) return op;
  op.rounding = static_cast<Rounding>(rounding);
  op.code = code;
  return op;
}

// Does what rounded_form() does, for operations with one source.
Op rounded_unary(Op op, OpCode code) {
  op.rs2 = 0;
  return rounded_form(op, code);
}

// Operations from floating-point registers to integer registers, and back.
Op to_integer(Op op) {
  op.rd = register_form(op, op.code).rd;
  return op;
}
Op from_integer(Op op) {
  op.rs1 = static_cast<uint8_t>(bits(op.raw, 15, 5));
  return op;
}

// Picks a code by the function field, which holds the rounding mode in other instructions.
template <size_t count>
Op select_by_funct3(Op op, const OpCode (&codes)[count]) {
  const uint32_t function = bits(op.raw, 12, 3);
  if (function < count) op.code = codes[function];
  return op;
}

Op decode_move(Op op) {
  op.rs2 = 0;
  const OpCode move = op.is_double ? OpCode::illegal : OpCode::fmv_x_w;
  return to_integer(select_by_funct3(op, {move, OpCode::fclass}));
}

Op decode_unary(Op op, uint32_t operation, uint32_t selector) {
  switch (operation) {
    case 0x08: return selector == (op.is_double ? 0u : 1u) ? rounded_unary(op, OpCode::fcvt_float) : op;
    case 0x0b: return selector == 0 ? rounded_unary(op, OpCode::fsqrt) : op;
    case 0x18:
      return selector <= 1 ? rounded_unary(to_integer(op), selector == 0 ? OpCode::fcvt_w : OpCode::fcvt_wu) : op;
    case 0x1a:
      return selector <= 1 ? rounded_unary(from_integer(op), selector == 0 ? OpCode::fcvt_from_w : OpCode::fcvt_from_wu)
                           : op;
    case 0x1c: return selector == 0 ? decode_move(op) : op;
    case 0x1e:
      if (selector != 0 || op.is_double) return op;
      op.rs2 = 0;
      return from_integer(select_by_funct3(op, {OpCode::fmv_w_x}));
    default: return op;
  }
}

}  // namespace

Op decode_float_load(Op op) {
  const uint32_t width = bits(op.raw, 12, 3);
  if (width != 2 && width != 3) return op;
  op = immediate_form(op, width == 3 ? OpCode::fld : OpCode::flw, immediate_i(op.raw));
  op.rd = float_register(bits(op.raw, 7, 5));
  op.is_double = width == 3;
  return op;
}

Op decode_float_store(Op op) {
  const uint32_t width = bits(op.raw, 12, 3);
  if (width != 2 && width != 3) return op;
  op = store_form(op, width == 3 ? OpCode::fsd : OpCode::fsw, immediate_s(op.raw));
  op.rs2 = float_register(bits(op.raw, 20, 5));
  op.is_double = width == 3;
  return op;
}

Op decode_float_multiply_add(Op op) {
  static constexpr OpCode codes[4] = {OpCode::fmadd, OpCode::fmsub, OpCode::fnmsub, OpCode::fnmadd};
  Op decoded = op;
  if (!take_operands(decoded)) return op;
  decoded.rs3 = float_register(bits(op.raw, 27, 5));
  return rounded_form(decoded, codes[bits(op.raw, 2, 2)]);
}

Op decode_float_operation(Op op) {
  Op decoded = op;
  if (!take_operands(decoded)) return op;
  const uint32_t operation = bits(op.raw, 27, 5);
  switch (operation) {
    case 0x00: return rounded_form(decoded, OpCode::fadd);
    case 0x01: return rounded_form(decoded, OpCode::fsub);
    case 0x02: return rounded_form(decoded, OpCode::fmul);
    case 0x03: return rounded_form(decoded, OpCode::fdiv);
    case 0x04: return select_by_funct3(decoded, {OpCode::fsgnj, OpCode::fsgnjn, OpCode::fsgnjx});
    case 0x05: return select_by_funct3(decoded, {OpCode::fmin, OpCode::fmax});
    case 0x14: return to_integer(select_by_funct3(decoded, {OpCode::fle, OpCode::flt, OpCode::feq}));
    default: return decode_unary(decoded, operation, bits(op.raw, 20, 5));
  }
}

// csrrw, csrrs, csrrc and their forms with an immediate, on fflags, frm or fcsr.
Op decode_float_status(Op op) {
  const uint32_t csr = bits(op.raw, 20, 12);
  const bool is_access = bits(op.raw, 12, 2) != 0;
  if (!is_access || csr < csr_fflags || csr > csr_fcsr) return op;
  op = immediate_form(op, OpCode::fcsr, static_cast<int32_t>(csr));
  if (status_access(op).has_immediate) op.rs1 = 0;
  return op;
}

StatusAccess status_access(const Op& op) {
  const uint32_t function = bits(op.raw, 12, 3);
  StatusAccess access;
  access.csr = static_cast<uint32_t>(op.immediate);
  access.action = static_cast<StatusAction>(function & 3);
  access.has_immediate = function >= 4;
  access.immediate = bits(op.raw, 15, 5);
  return access;
}

}  // namespace spinloom::hpu
