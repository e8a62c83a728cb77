#include "nic/hpu/core.hpp"

#include <algorithm>
#include <ios>
#include <variant>

#include "nic/hpu/core_state.hpp"
#include "nic/hpu/execute.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "nic/hpu/timing_a15.hpp"
#include "nic/hpu/timing_functional.hpp"
#include "nic/hpu/timing_pulp.hpp"

namespace spinloom::hpu {

// Compiled in execute_*.cpp.
extern template class Execution<FunctionalTiming>;
extern template class Execution<A15Timing>;
extern template class Execution<PulpTiming>;
extern template class Execution<Profiled<FunctionalTiming>>;
extern template class Execution<Profiled<A15Timing>>;
extern template class Execution<Profiled<PulpTiming>>;

namespace {

using Timing = std::variant<FunctionalTiming, A15Timing, PulpTiming>;

Timing make_timing(const TimingParameters& parameters) {
  if (const auto* a15 = std::get_if<A15Parameters>(&parameters)) return Timing(std::in_place_type<A15Timing>, *a15);
  if (const auto* pulp = std::get_if<PulpParameters>(&parameters)) return Timing(std::in_place_type<PulpTiming>, *pulp);
  return Timing(std::in_place_type<FunctionalTiming>, FunctionalParameters{});
}

// Calls `step` with the timing model, or with the wrapper that reports to a profile.
template <class Step>
auto with_timing(CoreState& core, Timing& timing, const Step& step) {
  return std::visit(
      [&](auto& model) {
        if (core.instructions == nullptr) return step(model);
        Profiled profiled(model, *core.instructions);
        return step(profiled);
      },
      timing);
}

// Accounts for a handler that has ended.
void account(CoreState& core, uint64_t end_cycle) {
  core.counters.cycles += end_cycle - core.start_cycle;
  if (core.profile != nullptr) core.profile->end(core.profile_cursor, end_cycle);
}

}  // namespace

struct Core::State {
  explicit State(const TimingParameters& parameters) : timing(make_timing(parameters)) {}

  CoreState core;
  Timing timing;
};

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::none: return "none";
    case FaultKind::illegal_instruction: return "illegal instruction";
    case FaultKind::environment_call: return "ecall or ebreak";
    case FaultKind::misaligned_atomic: return "misaligned atomic";
    case FaultKind::misaligned_fetch: return "misaligned fetch";
    case FaultKind::fetch_violation: return "fetch outside the image's code";
    case FaultKind::load_violation: return "load from memory that the handler may not read";
    case FaultKind::store_violation: return "store to memory that the handler may not write";
    case FaultKind::device_violation: return "access that the command window does not have";
  }
  return "unknown";
}

const char* name_of(StopKind kind) {
  switch (kind) {
    case StopKind::returned: return "returned";
    case StopKind::call: return "call";
    case StopKind::shared: return "shared";
    case StopKind::quantum: return "quantum";
    case StopKind::fault: return "fault";
  }
  return "unknown";
}

std::string Fault::describe() const {
  const char* subject = kind == FaultKind::illegal_instruction ? ", instruction 0x" : ", address 0x";
  return text(name_of(kind), " at pc 0x", std::hex, pc, subject, address);
}

uint32_t atomic_result(OpCode code, uint32_t loaded, uint32_t operand) {
  const int32_t signed_loaded = static_cast<int32_t>(loaded);
  const int32_t signed_operand = static_cast<int32_t>(operand);
  switch (code) {
    case OpCode::amoswap: return operand;
    case OpCode::amoadd: return loaded + operand;
    case OpCode::amoxor: return loaded ^ operand;
    case OpCode::amoand: return loaded & operand;
    case OpCode::amoor: return loaded | operand;
    case OpCode::amomin: return signed_loaded < signed_operand ? loaded : operand;
    case OpCode::amomax: return signed_loaded > signed_operand ? loaded : operand;
    case OpCode::amominu: return std::min(loaded, operand);
    case OpCode::amomaxu: return std::max(loaded, operand);
    default: break;
  }
  SPL_ASSERT(false, "no atomic: ", name_of(code));
  return 0;
}

bool read_device(const CoreState& state, uint32_t offset, uint32_t& value) {
  switch (offset) {
    case SPL_CMD_HPU: value = state.hpu; return true;
    case SPL_CMD_VHPU: value = state.vhpu; return true;
    case SPL_CMD_HPU_COUNT: value = state.hpu_count; return true;
    case SPL_CMD_FRAME_BYTES:
    case SPL_CMD_MESSAGE:
    case SPL_CMD_RULE_SET:
    case SPL_CMD_FLAGS: value = state.frame[(offset - SPL_CMD_FRAME_BYTES) / 4]; return true;
    default: return false;
  }
}

Result<Core> Core::create(const TimingParameters& parameters) {
  SPL_TRY(check(parameters));
  return Core(std::make_unique<State>(parameters));
}

Core::Core(std::unique_ptr<State> state) : state_(std::move(state)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

void Core::start(const Start& start) {
  CoreState& core = state_->core;
  SPL_ASSERT(!busy(), "start while a handler runs at pc ", pc());
  SPL_ASSERT(start.image != nullptr && start.memory != nullptr, "a handler needs an image and an address space");
  SPL_ASSERT(start.at_cycle >= core.end_cycle, "start at cycle ", start.at_cycle, ", the last handler ended at ",
             core.end_cycle);
  core.x.fill(0);
  if (start.image->has_float_code()) core.floats = {};
  core.x[1] = SPL_HPU_RETURN_PC;
  core.x[2] = start.stack_pointer;
  for (size_t i = 0; i < start.arguments.size(); ++i) core.x[10 + i] = start.arguments[i];
  core.image = start.image;
  core.memory = start.memory;
  core.command.fill(0);
  core.hpu = start.hpu;
  core.vhpu = start.vhpu;
  core.hpu_count = start.hpu_count;
  core.frame = start.frame;
  core.reserved = false;
  core.start_cycle = start.at_cycle;
  core.end_cycle = start.at_cycle;
  core.phase = Phase::ready;
  core.start_fault = {};
  const uint32_t slot = (start.pc - start.image->base()) / 2;
  if (start.pc % 2 != 0) {
    core.start_fault = {FaultKind::misaligned_fetch, start.pc, start.pc};
  } else if (slot >= start.image->slot_count()) {
    core.start_fault = {FaultKind::fetch_violation, start.pc, start.pc};
  } else {
    core.index = slot;
  }
  std::visit([&](auto& timing) { timing.begin(start.at_cycle); }, state_->timing);
  core.instructions = start.instructions;
  core.profile = start.profile;
  if (core.profile != nullptr) core.profile->begin(core.profile_cursor, core.index, start.at_cycle);
}

Stop Core::run(uint64_t until_cycle) {
  CoreState& core = state_->core;
  SPL_ASSERT(core.phase == Phase::ready || core.phase == Phase::shared,
             core.phase == Phase::call ? "run while a call waits for resume_call" : "run without start");
  Stop stop;
  if (core.start_fault.kind != FaultKind::none) {
    stop.kind = StopKind::fault;
    stop.cycle = core.start_cycle;
    stop.fault = core.start_fault;
    core.phase = Phase::idle;
  } else if (core.phase == Phase::ready && cycle() >= until_cycle) {
    stop.cycle = cycle();
  } else {
    stop = with_timing(core, state_->timing, [&](auto& timing) { return Execution(core, timing).run(until_cycle); });
  }
  if (core.phase == Phase::idle) account(core, stop.cycle);
  return stop;
}

void Core::resume_call(uint32_t value, uint64_t at_cycle) {
  CoreState& core = state_->core;
  SPL_ASSERT(core.phase == Phase::call, "resume_call without a call");
  const Op& op = core.image->ops()[core.index];
  with_timing(core, state_->timing, [&](auto& timing) { timing.device_load(op, at_cycle, true); });
  core.x[op.rd] = value;
  core.index += op.slots;
  ++core.counters.instructions;
  ++core.counters.loads;
  ++core.counters.calls;
  core.phase = Phase::ready;
}

void Core::abandon() {
  CoreState& core = state_->core;
  SPL_ASSERT(busy(), "abandon without a handler");
  core.end_cycle = cycle();
  account(core, core.end_cycle);
  core.phase = Phase::idle;
}

void Core::delay_shared(uint64_t at_cycle) {
  SPL_ASSERT(state_->core.phase == Phase::shared, "delay_shared without a pending shared access");
  const Op& op = state_->core.image->ops()[state_->core.index];
  with_timing(state_->core, state_->timing, [&](auto& timing) { timing.delay_shared(op, at_cycle); });
}

uint64_t Core::cycle() const {
  const CoreState& core = state_->core;
  return std::visit(
      [&](const auto& timing) -> uint64_t {
        switch (core.phase) {
          case Phase::idle: return core.end_cycle;
          case Phase::shared: return timing.shared_at(core.image->ops()[core.index]);
          case Phase::call: return timing.device_load_at(core.image->ops()[core.index]);
          case Phase::ready: break;
        }
        return timing.now();
      },
      state_->timing);
}

const std::array<uint32_t, SPL_CMD_WORDS>& Core::command() const { return state_->core.command; }

Counters Core::counters() const {
  Counters counters = state_->core.counters;
  if (busy()) counters.cycles += cycle() - state_->core.start_cycle;
  std::visit(
      [&](const auto& timing) {
        counters.mispredicts = timing.mispredicts();
        counters.stall_front_end = timing.stalls().front_end;
        counters.stall_operand = timing.stalls().operand;
        counters.stall_unit = timing.stalls().unit;
        counters.stall_window = timing.stalls().window;
        counters.stall_device = timing.stalls().device;
        counters.stall_latency = timing.stalls().latency;
      },
      state_->timing);
  return counters;
}

uint32_t Core::register_value(unsigned index) const {
  SPL_ASSERT(index < 32, "register x", index);
  return state_->core.x[index];
}

uint64_t Core::float_value(unsigned index) const {
  SPL_ASSERT(index < 32, "register f", index);
  return state_->core.floats.value(index);
}

uint32_t Core::float_status() const { return state_->core.floats.status(); }

uint32_t Core::pc() const {
  const CoreState& core = state_->core;
  if (core.image == nullptr) return 0;
  return core.image->base() + 2 * core.index;
}

bool Core::busy() const { return state_->core.phase != Phase::idle; }

}  // namespace spinloom::hpu
