// FloatUnit - the floating-point registers and fcsr of a Core, and what each F and D instruction does to them. Private
// to the hpu floor.
//
// Contract: execute() carries out one instruction of is_float_operation(). It returns false, and changes nothing, if
//   the instruction uses the rounding mode in frm and that mode is reserved. The interpreter executes loads and
//   stores.
// Invariants: 1. a single-precision result has ones in its upper half; a single-precision operand that does not is read
//   as the canonical NaN (moves and stores take its lower half as it is); 2. fcsr has eight bits.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <cstdint>

#include "nic/hpu/decode.hpp"
#include "nic/hpu/soft_float.hpp"

namespace spinloom::hpu {

// x0..x31, and the slot for writes to x0.
using IntegerRegisters = std::array<uint32_t, register_discard + 1>;

inline constexpr uint64_t single_box = 0xffffffff00000000u;

class FloatUnit {
 public:
  // The register that an Op names.
  [[nodiscard]] uint64_t& at(uint8_t index) { return registers_[index - register_float]; }
  [[nodiscard]] uint64_t value(unsigned index) const { return registers_[index]; }
  [[nodiscard]] uint32_t status() const { return static_cast<uint32_t>(rounding_ << 5 | flags_); }

  bool execute(const Op& op, IntegerRegisters& x);

 private:
  void access_status(const Op& op, IntegerRegisters& x);

  std::array<uint64_t, 32> registers_{};
  uint8_t rounding_ = 0;  // frm
  uint8_t flags_ = 0;  // fflags
};

}  // namespace spinloom::hpu
