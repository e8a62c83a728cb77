#include "hpu/disassemble.hpp"

#include <array>
#include <ios>

#include "base/result.hpp"

namespace spinloom::hpu {
namespace {

constexpr std::array register_names = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                       "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                       "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};

// The decoder sends what is written to x0 elsewhere.
const char* name_of_register(uint8_t index) { return index < register_names.size() ? register_names[index] : "zero"; }

std::string name_of_counter(int32_t which) {
  constexpr std::array names = {"cycle", "time", "instret"};
  const auto index = static_cast<size_t>(which & ~counter_high);
  std::string name = index < names.size() ? names[index] : "?";
  return (which & counter_high) != 0 ? name + "h" : name;
}

// Without the trailing underscore that keeps `xor_` from being a keyword.
std::string mnemonic(const Op& op) {
  std::string name = name_of(op.code);
  if (name.ends_with('_')) name.pop_back();
  return is_atomic(op.code) ? name + ".w" : name;
}

}  // namespace

std::string disassemble(const Op& op, uint32_t pc) {
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
