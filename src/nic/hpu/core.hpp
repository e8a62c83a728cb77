// Core - one handler processing unit: executes RV32IMAFDC (+ Zicsr counters and fcsr) with cycle accounting, in slices.
//
// Contract. A driver owns a Core for each HPU and an AddressSpace for what the handler may touch:
//
//   core.start({...});                            // registers, image, memory, first cycle
//   for (;;) {
//     Stop stop = core.run(core.cycle() + Q);
//     returned: stop.value is a0, stop.cycle the handler's end.
//     call:     core.command() are WORD0..15; carry the call out as of stop.cycle, then
//               core.resume_call(value, at_cycle) and run on (now or much later: the pipeline keeps its state).
//     shared:   an atomic or an access to `shared` or contended memory would issue at stop.cycle; call run() again
//               when every other core's cycle() has passed that point: the next run() executes it first.
//     quantum:  cycle() reached until_cycle; the driver checks budgets here.
//     fault:    the handler has ended; stop.fault says why.
//   }
//
//   Cores whose stops the driver serves in order of stop.cycle (ties by its own stated rule) see one memory order.
//
// Invariants:
//   1. cycle() never goes back while a handler runs, and no later stop has a cycle before it;
//   2. quanta are invisible: registers, memory, counters and the cycles of all other stops do not depend on
//      where the slices were cut;
//   3. a shared stop happens before the access, a call before its load; neither changes any state;
//   4. a handler cannot touch memory outside its regions, and cannot run after it returned or faulted.
// The quantum is looked at when control transfers, so a slice may run past until_cycle by a straight line of code.
//
// Rules of the processor. Misaligned plain accesses are legal and priced; misaligned atomics fault. The command
//   window takes aligned words only: stores of WORD0..15, loads of ISSUE, HPU, VHPU, HPU_COUNT, FRAME_BYTES, MESSAGE,
//   RULE_SET and FLAGS; all else faults. ecall and ebreak fault; fence and fence.i do nothing. Zicsr: cycle, time (=
//   cycle) and instret can be read, and fflags, frm and fcsr accessed; everything else is illegal. A reservation (lr)
//   is kept by value: sc succeeds when the word is still the one that lr saw. Registers other than a0..a3, sp and ra
//   start as zero; so do f0..f31 and fcsr (nearest, ties to even) if the image has floating-point code. ra is
//   SPL_HPU_RETURN_PC. pulp cores have no floating point: its instructions, and accesses to fcsr, are illegal there, as
//   is a reserved rounding mode everywhere.
//
// Threads: one owner. Time: HPU cycles as 64-bit counts; the driver knows how long a cycle is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "nic/hpu/elf.hpp"
#include "nic/hpu/memory.hpp"
#include "nic/hpu/timing.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::hpu {

class FunctionProfile;  // function_profile.hpp
class InstructionProfile;  // instruction_profile.hpp

enum class FaultKind : uint8_t {
  none,
  illegal_instruction,
  environment_call,  // ecall, ebreak
  misaligned_atomic,
  misaligned_fetch,  // an odd start address (a jump cannot make one)
  fetch_violation,  // pc outside the executable parts of the image
  load_violation,  // no region, out of bounds, or not readable
  store_violation,  // ... or not writable; atomics count as stores
  device_violation,  // a register of the command window that does not exist, or not an aligned word
};
[[nodiscard]] const char* name_of(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::none;
  uint32_t pc = 0;  // address of the instruction (for a fetch: the address fetched from)
  uint32_t address = 0;  // address of the access; for an illegal instruction the raw instruction
  // One sentence with the values, for events and errors.
  [[nodiscard]] std::string describe() const;
};

enum class StopKind : uint8_t { returned, call, shared, quantum, fault };
[[nodiscard]] const char* name_of(StopKind kind);

struct Stop {
  StopKind kind = StopKind::quantum;
  uint64_t cycle = 0;  // the cycle in which it happens; equals Core::cycle()
  uint32_t value = 0;  // returned: the handler's return code
  uint32_t address = 0;  // shared: address of the access, for the driver's model of contention
  bool atomic = false;  // shared: it is an atomic
  Fault fault;  // fault only
};

struct Start {
  const Image* image = nullptr;  // outlives the run
  const AddressSpace* memory = nullptr;  // outlives the run
  uint32_t pc = 0;
  std::array<uint32_t, 4> arguments{};  // a0..a3
  uint32_t stack_pointer = 0;
  uint64_t at_cycle = 0;  // the beginning, no earlier than cycle() of what ran here last
  // Answers of the command window.
  uint32_t hpu = 0;
  uint32_t vhpu = 0;
  uint32_t hpu_count = 1;
  std::array<uint32_t, 4> frame{};  // SPL_CMD_FRAME_BYTES and the next three
  FunctionProfile* profile = nullptr;  // made for this image: takes the run's cycles by function; outlives the run
  InstructionProfile* instructions = nullptr;  // likewise, by instruction; costs the host time
};

// Totals since the Core was made; a driver takes differences. `stall_*` are cycles in which nothing retired
// (pulp: in which nothing issued), by what held the next instruction: the front end after a mispredicted (pulp: a
// taken) branch, the wait for an operand, a busy unit, a full window, the command window or an atomic's turn, its own
// latency.
struct Counters {
  uint64_t cycles = 0;  // the cycles from start to end (or to now) of every handler
  uint64_t instructions = 0;
  uint64_t loads = 0;  // device loads and lr included
  uint64_t stores = 0;  // device stores and sc included
  uint64_t atomics = 0;
  uint64_t branches = 0;  // conditional
  uint64_t mispredicts = 0;  // conditional and indirect
  uint64_t calls = 0;
  uint64_t stall_front_end = 0;
  uint64_t stall_operand = 0;
  uint64_t stall_unit = 0;
  uint64_t stall_window = 0;
  uint64_t stall_device = 0;
  uint64_t stall_latency = 0;

  bool operator==(const Counters&) const = default;
};

class Core {
 public:
  // The timing model is chosen here; it costs no indirection per instruction.
  static Result<Core> create(const TimingParameters& parameters);

  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  // Begins a handler. The branch predictor stays warm; registers, pipeline and command words start empty.
  // A bad pc shows as a fault of the first run().
  void start(const Start& start);

  // Executes until something stops it; see the contract. Must not be called while a call waits for its answer,
  // nor after returned or fault without a new start.
  Stop run(uint64_t until_cycle);

  // Answers the call: the load of ISSUE gives value, available at at_cycle (or device_load_cycles after its
  // issue, if that is later). Later loads from private and shared memory wait for it, because a call may have
  // written there.
  void resume_call(uint32_t value, uint64_t at_cycle);

  // The driver ends the handler here (budget, a call that does not exist): the core is free for the next start().
  void abandon();

  // A pending shared access (and later ones) issues no earlier than this: contention that the driver models.
  void delay_shared(uint64_t at_cycle);

  // Lower bound of the cycle of every later stop.
  [[nodiscard]] uint64_t cycle() const;
  [[nodiscard]] const std::array<uint32_t, SPL_CMD_WORDS>& command() const;
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] uint32_t register_value(unsigned index) const;  // x0..x31
  [[nodiscard]] uint64_t float_value(unsigned index) const;  // f0..f31
  [[nodiscard]] uint32_t float_status() const;  // fcsr
  [[nodiscard]] uint32_t pc() const;
  // True if a handler has been started and has neither returned nor faulted nor been abandoned.
  [[nodiscard]] bool busy() const;

 private:
  struct State;
  explicit Core(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace spinloom::hpu
