#include "nic/hpu/float_unit.hpp"

#include "base/result.hpp"

namespace spinloom::hpu {

bool FloatUnit::execute(const Op& op, IntegerRegisters& x) {
  const Rounding rounding = op.rounding == Rounding::dynamic ? static_cast<Rounding>(rounding_) : op.rounding;
  if (rounding > Rounding::nearest_away) return false;
  FloatContext context{rounding, 0};
  const FloatFormat& format = op.is_double ? double_format : single_format;
  const FloatFormat& other_format = op.is_double ? single_format : double_format;
  const auto read = [&](uint8_t index, bool is_double) {
    const uint64_t bits = at(index);
    if (is_double) return bits;
    return bits >= single_box ? bits & UINT32_MAX : single_format.canonical_nan();
  };
  const auto first = [&] { return read(op.rs1, op.is_double); };
  const auto second = [&] { return read(op.rs2, op.is_double); };
  const auto third = [&] { return read(op.rs3, op.is_double); };
  const uint64_t sign = format.sign_bit();
  const auto write = [&](uint64_t bits) { at(op.rd) = op.is_double ? bits : bits | single_box; };
  const auto multiply_add = [&](uint64_t a, uint64_t c) { write(float_multiply_add(format, a, second(), c, context)); };
  const auto inject = [&](uint64_t new_sign) { write((first() & ~sign) | (new_sign & sign)); };

  switch (op.code) {
    case OpCode::fmadd: multiply_add(first(), third()); break;
    case OpCode::fmsub: multiply_add(first(), third() ^ sign); break;
    case OpCode::fnmsub: multiply_add(first() ^ sign, third()); break;
    case OpCode::fnmadd: multiply_add(first() ^ sign, third() ^ sign); break;
    case OpCode::fadd: write(float_add(format, first(), second(), context)); break;
    case OpCode::fsub: write(float_add(format, first(), second() ^ sign, context)); break;
    case OpCode::fmul: write(float_multiply(format, first(), second(), context)); break;
    case OpCode::fdiv: write(float_divide(format, first(), second(), context)); break;
    case OpCode::fsqrt: write(float_square_root(format, first(), context)); break;
    case OpCode::fsgnj: inject(second()); break;
    case OpCode::fsgnjn: inject(~second()); break;
    case OpCode::fsgnjx: inject(first() ^ second()); break;
    case OpCode::fmin: write(float_minimum(format, first(), second(), context)); break;
    case OpCode::fmax: write(float_maximum(format, first(), second(), context)); break;
    case OpCode::feq: x[op.rd] = float_equal(format, first(), second(), context) ? 1 : 0; break;
    case OpCode::flt: x[op.rd] = float_less(format, first(), second(), context) ? 1 : 0; break;
    case OpCode::fle: x[op.rd] = float_less_equal(format, first(), second(), context) ? 1 : 0; break;
    case OpCode::fclass: x[op.rd] = float_classify(format, first()); break;
    case OpCode::fcvt_w: x[op.rd] = float_to_signed(format, first(), context); break;
    case OpCode::fcvt_wu: x[op.rd] = float_to_unsigned(format, first(), context); break;
    case OpCode::fcvt_from_w: write(float_from_signed(format, static_cast<int32_t>(x[op.rs1]), context)); break;
    case OpCode::fcvt_from_wu: write(float_from_unsigned(format, x[op.rs1], context)); break;
    case OpCode::fcvt_float: write(float_convert(other_format, format, read(op.rs1, !op.is_double), context)); break;
    case OpCode::fmv_x_w: x[op.rd] = static_cast<uint32_t>(at(op.rs1)); break;
    case OpCode::fmv_w_x: write(x[op.rs1]); break;
    case OpCode::fcsr: access_status(op, x); break;
    default: SPL_ASSERT(false, "no floating-point operation: ", name_of(op.code));
  }
  flags_ = static_cast<uint8_t>(flags_ | context.flags);
  return true;
}

void FloatUnit::access_status(const Op& op, IntegerRegisters& x) {
  const StatusAccess access = status_access(op);
  const uint32_t shift = access.csr == csr_frm ? 5 : 0;
  const uint32_t mask = access.csr == csr_fflags ? 0x1f : access.csr == csr_frm ? 0x7 : 0xff;
  const uint32_t operand = access.has_immediate ? access.immediate : x[op.rs1];
  const uint32_t old = status() >> shift & mask;
  uint32_t next = operand;
  if (access.action == StatusAction::set) next = old | operand;
  if (access.action == StatusAction::clear) next = old & ~operand;
  const uint32_t status_next = (status() & ~(mask << shift)) | (next & mask) << shift;
  rounding_ = static_cast<uint8_t>(status_next >> 5);
  flags_ = static_cast<uint8_t>(status_next & 0x1f);
  x[op.rd] = old;
}

}  // namespace spinloom::hpu
