#include "nic/hpu/disassemble.hpp"

#include <array>
#include <ios>

#include "base/result.hpp"

namespace spinloom::hpu {
namespace {

// The decoder sends writes to x0 to a register behind the integer registers.
// clang-format off
constexpr std::array register_names = {
    "zero", "ra",   "sp",  "gp",  "tp",  "t0",  "t1",   "t2",   "s0", "s1", "a0", "a1", "a2",  "a3",  "a4",  "a5",
    "a6",   "a7",   "s2",  "s3",  "s4",  "s5",  "s6",   "s7",   "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
    "zero",
    "ft0",  "ft1",  "ft2", "ft3", "ft4", "ft5", "ft6",  "ft7",  "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
    "fa6",  "fa7",  "fs2", "fs3", "fs4", "fs5", "fs6",  "fs7",  "fs8", "fs9", "fs10", "fs11",
    "ft8",  "ft9",  "ft10", "ft11"};
// clang-format on
static_assert(register_names.size() == register_slots);

const char* name_of_register(uint8_t index) { return register_names[index]; }

std::string name_of_counter(int32_t counter) {
  constexpr std::array names = {"cycle", "time", "instret"};
  const auto index = static_cast<size_t>(counter & ~counter_high);
  std::string name = index < names.size() ? names[index] : "?";
  return (counter & counter_high) != 0 ? name + "h" : name;
}

// The mnemonic with its format: "fadd.d", "fcvt.w.s", "fcvt.s.d".
std::string float_mnemonic(const Op& op) {
  const char* const format = op.is_double ? ".d" : ".s";
  switch (op.code) {
    case OpCode::fcvt_w: return text("fcvt.w", format);
    case OpCode::fcvt_wu: return text("fcvt.wu", format);
    case OpCode::fcvt_from_w: return text("fcvt", format, ".w");
    case OpCode::fcvt_from_wu: return text("fcvt", format, ".wu");
    case OpCode::fcvt_float: return text("fcvt", format, op.is_double ? ".s" : ".d");
    case OpCode::fmv_x_w: return "fmv.x.w";
    case OpCode::fmv_w_x: return "fmv.w.x";
    default: return text(name_of(op.code), format);
  }
}

// For example "csrrs a0, fflags, zero".
std::string status_access_text(const Op& op) {
  static constexpr std::array actions = {"", "csrrw", "csrrs", "csrrc"};
  static constexpr std::array names = {"", "fflags", "frm", "fcsr"};
  const StatusAccess access = status_access(op);
  const std::string start = text(actions[static_cast<size_t>(access.action)], access.has_immediate ? "i " : " ",
                                 name_of_register(op.rd), ", ", names[access.csr], ", ");
  return access.has_immediate ? text(start, access.immediate) : start + name_of_register(op.rs1);
}

std::string float_operation_text(const Op& op) {
  // Rounding by frm and to the nearest even are not shown.
  static constexpr std::array roundings = {"", ", rtz", ", rdn", ", rup", ", rmm", "", "", ""};
  std::string out = text(float_mnemonic(op), " ", name_of_register(op.rd), ", ", name_of_register(op.rs1));
  if (op.rs2 != 0) out += text(", ", name_of_register(op.rs2));
  if (op.rs3 != 0) out += text(", ", name_of_register(op.rs3));
  return out + roundings[static_cast<size_t>(op.rounding)];
}

// The mnemonic without the trailing underscore, which keeps names such as `xor_` from being keywords.
std::string mnemonic(const Op& op) {
  std::string name = name_of(op.code);
  if (name.ends_with('_')) name.pop_back();
  return is_atomic(op.code) ? name + ".w" : name;
}

}  // namespace

std::string disassemble(const Op& op, uint32_t pc) {
  if (op.code == OpCode::fcsr) return status_access_text(op);
  if (is_float_operation(op.code)) return float_operation_text(op);
  std::string name = mnemonic(op);
  const char* const rd = name_of_register(op.rd);
  const char* const rs1 = name_of_register(op.rs1);
  const char* const rs2 = name_of_register(op.rs2);
  const uint32_t target = pc + static_cast<uint32_t>(op.immediate);
  if (is_load(op.code)) return text(name, " ", rd, ", ", op.immediate, "(", rs1, ")");
  if (is_store(op.code)) return text(name, " ", rs2, ", ", op.immediate, "(", rs1, ")");
  if (op.code == OpCode::lr) return text(name, " ", rd, ", (", rs1, ")");
  if (is_atomic(op.code)) return text(name, " ", rd, ", ", rs2, ", (", rs1, ")");
  if (op.code >= OpCode::beq && op.code <= OpCode::bgeu) {
    return text(name, " ", rs1, ", ", rs2, ", 0x", std::hex, target);
  }
  if (op.code >= OpCode::addi && op.code <= OpCode::srai) {
    return text(name, " ", rd, ", ", rs1, ", ", op.immediate);
  }
  if (op.code >= OpCode::add && op.code <= OpCode::remu) return text(name, " ", rd, ", ", rs1, ", ", rs2);
  switch (op.code) {
    case OpCode::constant: return text("li ", rd, ", 0x", std::hex, static_cast<uint32_t>(op.immediate));
    case OpCode::jal: return text(name, " ", rd, ", 0x", std::hex, target);
    case OpCode::jalr: return text(name, " ", rd, ", ", op.immediate, "(", rs1, ")");
    case OpCode::counter: return text("rd", name_of_counter(op.immediate), " ", rd);
    case OpCode::illegal: return text(name, " 0x", std::hex, op.raw);
    default: return name;
  }
}

}  // namespace spinloom::hpu
