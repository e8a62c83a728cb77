// CoreState - the architectural state of a Core, apart from its timing model. Private to the hpu floor.
//
// Invariants: 1. x[0] is zero, x[register_discard] is never read; 2. index is the slot of the next instruction and
//   may be one of the two slots past the end (they fault); 3. phase is `shared` if the next run() executes the
//   instruction at index although it is a shared access.
// Threads: one owner. Time: cycles are in the timing model; here are only the start and the end of the last handler.
#pragma once

#include <array>
#include <cstdint>

#include "nic/hpu/core.hpp"
#include "nic/hpu/decode.hpp"
#include "nic/hpu/float_unit.hpp"
#include "nic/hpu/function_profile.hpp"

namespace spinloom::hpu {

enum class Phase : uint8_t { idle, ready, shared, call };

struct CoreState {
  IntegerRegisters x{};
  FloatUnit floats;
  uint32_t index = 0;
  Phase phase = Phase::idle;
  const Image* image = nullptr;
  const AddressSpace* memory = nullptr;
  std::array<uint32_t, SPL_CMD_WORDS> command{};
  uint32_t hpu = 0;
  uint32_t vhpu = 0;
  uint32_t hpu_count = 1;
  std::array<uint32_t, 4> frame{};
  bool reserved = false;
  uint32_t reserved_address = 0;
  uint32_t reserved_value = 0;
  Fault start_fault;  // a bad start address, reported by the first run()
  FunctionProfile* profile = nullptr;  // none: cycles are not attributed
  FunctionProfile::Cursor profile_cursor;
  InstructionProfile* instructions = nullptr;  // none: cycles are not attributed to instructions
  uint64_t start_cycle = 0;
  uint64_t end_cycle = 0;
  Counters counters;  // Core::counters() adds mispredicts, stalls and the cycles of a handler that still runs
};

// The value that an atomic stores if it loaded `loaded`.
[[nodiscard]] uint32_t atomic_result(OpCode code, uint32_t loaded, uint32_t operand);

// Loads from the command window, except from ISSUE; false if there is no such register.
[[nodiscard]] bool read_device(const CoreState& state, uint32_t offset, uint32_t& value);

}  // namespace spinloom::hpu
