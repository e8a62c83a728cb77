// execute - the interpreter: threaded code over decoded instructions, a template on the timing model.
// Private to the hpu floor; execute_*.cpp each instantiate it for one model, with and without a profile.
//
// Contract: runs from state.index until something stops it; state and timing describe exactly the instructions that
//   were executed. A stop before an instruction (shared, call, fault) leaves no trace of it.
// Threads: one owner. Time: the model's.
#pragma once

#include <cstring>
#include <limits>

#include "nic/hpu/core_state.hpp"

namespace spinloom::hpu {

namespace detail {

template <class T>
T load_as(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T, class Value>
void store_as(uint8_t* to, Value value) {
  const T narrow = static_cast<T>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}

// Division as the ISA defines it: no traps, -1 or the dividend for a zero divisor, wrap on overflow.
inline uint32_t divide(uint32_t a, uint32_t b) {
  if (b == 0) return UINT32_MAX;
  if (a == 0x80000000u && b == UINT32_MAX) return a;
  return static_cast<uint32_t>(static_cast<int32_t>(a) / static_cast<int32_t>(b));
}
inline uint32_t remainder(uint32_t a, uint32_t b) {
  if (b == 0) return a;
  if (a == 0x80000000u && b == UINT32_MAX) return 0;
  return static_cast<uint32_t>(static_cast<int32_t>(a) % static_cast<int32_t>(b));
}

}  // namespace detail

template <class Timing>
class Execution {
 public:
  Execution(CoreState& state, Timing& timing) : state_(state), timing_(timing), memory_(*state.memory) {}

  Stop run(uint64_t until_cycle);

 private:
  Stop stop_at(StopKind kind, const Op* op, uint64_t cycle);
  Stop fault(FaultKind kind, const Op* op, uint32_t address);
  Stop load_fault(const Op* op, uint32_t address);
  Stop store_fault(const Op* op, uint32_t address);
  // Loads from the command window. False: the slice ends, and `stop` says why.
  bool device_load(const Op* op, uint32_t address, Stop& stop);
  bool device_store(const Op* op, uint32_t address, Stop& stop);
  // Executes an atomic. False: it faulted, and `stop` says why.
  bool atomic(const Op* op, Stop& stop);
  // Executes a floating-point operation. False: it faulted, and `stop` says why.
  bool floating(const Op* op, Stop& stop);

  [[nodiscard]] uint32_t pc_of(const Op* op) const {
    return state_.image->base() + 2 * static_cast<uint32_t>(op - state_.image->ops());
  }

  CoreState& state_;
  Timing& timing_;
  const AddressSpace& memory_;
};

template <class Timing>
Stop Execution<Timing>::stop_at(StopKind kind, const Op* op, uint64_t cycle) {
  state_.index = static_cast<uint32_t>(op - state_.image->ops());
  Stop stop;
  stop.kind = kind;
  stop.cycle = cycle;
  state_.phase = kind == StopKind::shared    ? Phase::shared
                 : kind == StopKind::call    ? Phase::call
                 : kind == StopKind::quantum ? Phase::ready
                                             : Phase::idle;
  if (state_.phase == Phase::idle) state_.end_cycle = cycle;
  return stop;
}

template <class Timing>
Stop Execution<Timing>::fault(FaultKind kind, const Op* op, uint32_t address) {
  Stop stop = stop_at(StopKind::fault, op, std::max(timing_.now(), timing_.end()));
  stop.fault = {kind, pc_of(op), address};
  return stop;
}

template <class Timing>
Stop Execution<Timing>::load_fault(const Op* op, uint32_t address) {
  const bool device = memory_.access_of(address).kind == RegionKind::device;
  return fault(device ? FaultKind::device_violation : FaultKind::load_violation, op, address);
}

template <class Timing>
Stop Execution<Timing>::store_fault(const Op* op, uint32_t address) {
  const bool device = memory_.access_of(address).kind == RegionKind::device;
  return fault(device ? FaultKind::device_violation : FaultKind::store_violation, op, address);
}

template <class Timing>
bool Execution<Timing>::device_load(const Op* op, uint32_t address, Stop& stop) {
  const uint32_t offset = address - memory_.access_of(address).base;
  const bool is_word = op->code == OpCode::lw && offset % 4 == 0;
  if (is_word && offset == SPL_CMD_ISSUE) {
    stop = stop_at(StopKind::call, op, timing_.device_load_at(*op));
    return false;
  }
  uint32_t value = 0;
  if (!is_word || !read_device(state_, offset, value)) {
    stop = load_fault(op, address);
    return false;
  }
  timing_.device_load(*op, 0, false);
  state_.x[op->rd] = value;
  return true;
}

template <class Timing>
bool Execution<Timing>::device_store(const Op* op, uint32_t address, Stop& stop) {
  const uint32_t offset = address - memory_.access_of(address).base - SPL_CMD_WORD0;
  if (op->code != OpCode::sw || offset % 4 != 0 || offset / 4 >= SPL_CMD_WORDS) {
    stop = store_fault(op, address);
    return false;
  }
  timing_.device_store(*op);
  state_.command[offset / 4] = state_.x[op->rs2];
  return true;
}

template <class Timing>
bool Execution<Timing>::atomic(const Op* op, Stop& stop) {
  const uint32_t address = state_.x[op->rs1];
  const AddressSpace::Access& access = memory_.access_of(address);
  if (address % 4 != 0) {
    stop = fault(FaultKind::misaligned_atomic, op, address);
    return false;
  }
  const bool allowed = op->code == OpCode::lr ? access.may_read(address, 4)
                                              : access.may_read(address, 4) && access.may_write(address, 4);
  if (!allowed) {
    stop = store_fault(op, address);
    return false;
  }
  if (state_.phase != Phase::shared) {
    stop = stop_at(StopKind::shared, op, timing_.shared_at(*op));
    stop.address = address;
    stop.atomic = true;
    return false;
  }
  state_.phase = Phase::ready;
  timing_.atomic(*op, access.latency_class);
  ++state_.counters.atomics;
  const uint32_t loaded = detail::load_as<uint32_t>(access.at(address));
  const uint32_t operand = state_.x[op->rs2];
  if (op->code == OpCode::lr) {
    state_.reserved = true;
    state_.reserved_address = address;
    state_.reserved_value = loaded;
    state_.x[op->rd] = loaded;
  } else if (op->code == OpCode::sc) {
    const bool reservation_holds =
        state_.reserved && state_.reserved_address == address && state_.reserved_value == loaded;
    if (reservation_holds) detail::store_as<uint32_t>(access.at(address), operand);
    state_.reserved = false;
    state_.x[op->rd] = reservation_holds ? 0 : 1;
  } else {
    detail::store_as<uint32_t>(access.at(address), atomic_result(op->code, loaded, operand));
    state_.x[op->rd] = loaded;
  }
  return true;
}

template <class Timing>
bool Execution<Timing>::floating(const Op* op, Stop& stop) {
  if constexpr (Timing::has_float) {
    if (!state_.floats.execute(*op, state_.x)) {
      stop = fault(FaultKind::illegal_instruction, op, op->raw);
      return false;
    }
    if (op->code == OpCode::fcsr) {
      timing_.read_counter(*op);
    } else {
      timing_.floating(*op);
    }
  }
  return true;
}

// The instruction bodies are macros because each must end in its own indirect jump. That makes threaded code fast:
// the host's processor predicts each jump by itself.
template <class Timing>
Stop Execution<Timing>::run(uint64_t until_cycle) {
  static const void* const labels[] = {
#define SPL_HPU_LABEL(name) &&do_##name,
#define SPL_HPU_FLOAT_LABEL(name) Timing::has_float ? &&do_##name : &&do_illegal,
      SPL_HPU_OPS(SPL_HPU_LABEL, SPL_HPU_FLOAT_LABEL)
#undef SPL_HPU_LABEL
#undef SPL_HPU_FLOAT_LABEL
  };
  CoreState& state = state_;
  Timing& timing = timing_;
  const AddressSpace& memory = memory_;
  uint32_t* const x = state.x.data();
  const Op* const ops = state.image->ops();
  const uint32_t slot_count = state.image->slot_count();
  const Op* op = ops + state.index;
  uint64_t instructions = state.counters.instructions;
  uint64_t loads = state.counters.loads;
  uint64_t stores = state.counters.stores;
  uint64_t branches = state.counters.branches;
  Stop stop;

#define RS1 x[op->rs1]
#define RS2 x[op->rs2]
#define RD x[op->rd]
#define TO_INTEGER(value) RD = static_cast<uint32_t>(value)
#define TO_SINGLE(value) state.floats.at(op->rd) = (value) | single_box
#define TO_DOUBLE(value) state.floats.at(op->rd) = (value)
#define IMMEDIATE static_cast<uint32_t>(op->immediate)
#define SIGNED(value) static_cast<int32_t>(value)
#define DISPATCH() goto* labels[static_cast<unsigned>(op->code)]
#define NEXT()       \
  do {               \
    ++instructions;  \
    op += op->slots; \
    DISPATCH();      \
  } while (false)
#define ALU(name, expression) \
  do_##name : {               \
    timing.alu(*op);          \
    RD = (expression);        \
  }                           \
  NEXT();
#define MULTIPLY(name, expression) \
  do_##name : {                    \
    timing.multiply(*op);          \
    RD = (expression);             \
  }                                \
  NEXT();
#define DIVIDE(name, expression) \
  do_##name : {                  \
    timing.divide(*op, RS2);     \
    RD = (expression);           \
  }                              \
  NEXT();
#define ARRIVE(slot)                                                                         \
  do {                                                                                       \
    timing.arrive(*op, static_cast<uint32_t>(slot));                                         \
    if (state.profile != nullptr) [[unlikely]]                                               \
      state.profile->enter(state.profile_cursor, static_cast<uint32_t>(slot), timing.end()); \
  } while (false)
// An offset that leaves the image takes the slow path, which faults at the target.
#define TRANSFER(byte_offset)                                                 \
  do {                                                                        \
    const int64_t target_slot = (op - ops) + (byte_offset) / 2;               \
    if (target_slot < 0 || target_slot >= int64_t{slot_count}) [[unlikely]] { \
      jump_target = pc_of(op) + static_cast<uint32_t>(byte_offset);           \
      goto transfer_outside;                                                  \
    }                                                                         \
    op = ops + target_slot;                                                   \
    ARRIVE(target_slot);                                                      \
    if (timing.fetch_cycle() >= until_cycle) [[unlikely]]                     \
      goto quantum;                                                           \
    DISPATCH();                                                               \
  } while (false)
#define BRANCH(name, condition)           \
  do_##name : {                           \
    const bool taken = (condition);       \
    timing.branch(*op, pc_of(op), taken); \
    ++branches;                           \
    if (taken) {                          \
      ++instructions;                     \
      TRANSFER(op->immediate);            \
    }                                     \
  }                                       \
  NEXT();
#define LOAD(name, type, keep)                                                                            \
  do_##name : {                                                                                           \
    const uint32_t address = RS1 + IMMEDIATE;                                                             \
    const AddressSpace::Access& access = memory.access_of(address);                                       \
    if (!access.may_read(address, sizeof(type))) [[unlikely]]                                             \
      goto load_elsewhere;                                                                                \
    if (access.ordered) [[unlikely]] {                                                                    \
      if (state.phase != Phase::shared) goto stop_shared;                                                 \
      state.phase = Phase::ready;                                                                         \
      timing.shared_load(*op, address, sizeof(type), access.latency_class);                               \
    } else {                                                                                              \
      timing.load(*op, address, sizeof(type), access.latency_class, access.kind == RegionKind::private_); \
    }                                                                                                     \
    keep(detail::load_as<type>(access.at(address)));                                                      \
    ++loads;                                                                                              \
  }                                                                                                       \
  NEXT();
#define STORE(name, type, source)                                            \
  do_##name : {                                                              \
    const uint32_t address = RS1 + IMMEDIATE;                                \
    const AddressSpace::Access& access = memory.access_of(address);          \
    if (!access.may_write(address, sizeof(type))) [[unlikely]]               \
      goto store_elsewhere;                                                  \
    if (access.ordered) [[unlikely]] {                                       \
      if (state.phase != Phase::shared) goto stop_shared;                    \
      state.phase = Phase::ready;                                            \
      timing.shared_store(*op, address, sizeof(type), access.latency_class); \
    } else {                                                                 \
      timing.store(*op, address, sizeof(type));                              \
    }                                                                        \
    detail::store_as<type>(access.at(address), source);                      \
    ++stores;                                                                \
  }                                                                          \
  NEXT();

  uint32_t jump_target = 0;
  DISPATCH();

  ALU(constant, IMMEDIATE)
  ALU(addi, RS1 + IMMEDIATE)
  ALU(slti, SIGNED(RS1) < op->immediate)
  ALU(sltiu, RS1 < IMMEDIATE)
  ALU(xori, RS1 ^ IMMEDIATE)
  ALU(ori, RS1 | IMMEDIATE)
  ALU(andi, RS1 & IMMEDIATE)
  ALU(slli, RS1 << op->immediate)
  ALU(srli, RS1 >> op->immediate)
  ALU(srai, static_cast<uint32_t>(SIGNED(RS1) >> op->immediate))
  ALU(add, RS1 + RS2)
  ALU(sub, RS1 - RS2)
  ALU(sll, RS1 << (RS2 & 31))
  ALU(slt, SIGNED(RS1) < SIGNED(RS2))
  ALU(sltu, RS1 < RS2)
  ALU(xor_, RS1 ^ RS2)
  ALU(srl, RS1 >> (RS2 & 31))
  ALU(sra, static_cast<uint32_t>(SIGNED(RS1) >> (RS2 & 31)))
  ALU(or_, RS1 | RS2)
  ALU(and_, RS1 & RS2)
  MULTIPLY(mul, RS1 * RS2)
  MULTIPLY(mulh, static_cast<uint32_t>(static_cast<uint64_t>(int64_t{SIGNED(RS1)} * SIGNED(RS2)) >> 32))
  MULTIPLY(mulhsu, static_cast<uint32_t>((static_cast<uint64_t>(int64_t{SIGNED(RS1)}) * RS2) >> 32))
  MULTIPLY(mulhu, static_cast<uint32_t>((uint64_t{RS1} * RS2) >> 32))
  DIVIDE(div, detail::divide(RS1, RS2))
  DIVIDE(divu, RS2 == 0 ? UINT32_MAX : RS1 / RS2)
  DIVIDE(rem, detail::remainder(RS1, RS2))
  DIVIDE(remu, RS2 == 0 ? RS1 : RS1 % RS2)
  BRANCH(beq, RS1 == RS2)
  BRANCH(bne, RS1 != RS2)
  BRANCH(blt, SIGNED(RS1) < SIGNED(RS2))
  BRANCH(bge, SIGNED(RS1) >= SIGNED(RS2))
  BRANCH(bltu, RS1 < RS2)
  BRANCH(bgeu, RS1 >= RS2)
  LOAD(lb, int8_t, TO_INTEGER)
  LOAD(lh, int16_t, TO_INTEGER)
  LOAD(lw, uint32_t, TO_INTEGER)
  LOAD(lbu, uint8_t, TO_INTEGER)
  LOAD(lhu, uint16_t, TO_INTEGER)
  LOAD(flw, uint32_t, TO_SINGLE)
  LOAD(fld, uint64_t, TO_DOUBLE)
  STORE(sb, uint8_t, RS2)
  STORE(sh, uint16_t, RS2)
  STORE(sw, uint32_t, RS2)
  STORE(fsw, uint32_t, state.floats.at(op->rs2))
  STORE(fsd, uint64_t, state.floats.at(op->rs2))

do_jal:
  {
    const uint32_t pc = pc_of(op);
    timing.jump(*op, pc);
    ++instructions;
    RD = pc + 2u * op->slots;
    TRANSFER(op->immediate);
  }
do_jalr:
  {
    const uint32_t pc = pc_of(op);
    jump_target = (RS1 + IMMEDIATE) & ~1u;
    timing.jump_indirect(*op, pc, jump_target);
    ++instructions;
    RD = pc + 2u * op->slots;
    const uint32_t target_slot = (jump_target - state.image->base()) / 2;
    if (target_slot >= slot_count) [[unlikely]]
      goto transfer_outside;
    op = ops + target_slot;
    ARRIVE(target_slot);
    if (timing.fetch_cycle() >= until_cycle) [[unlikely]]
      goto quantum;
    DISPATCH();
  }
do_fence:
  timing.alu(*op);
  NEXT();
do_counter:
  {
    const bool counts_instructions = (op->immediate & ~counter_high) == counter_instret;
    const uint64_t cycle = timing.read_counter(*op);
    const uint64_t value = counts_instructions ? instructions : cycle;
    RD = static_cast<uint32_t>((op->immediate & counter_high) != 0 ? value >> 32 : value);
  }
  NEXT();
do_lr:
do_sc:
do_amoswap:
do_amoadd:
do_amoxor:
do_amoand:
do_amoor:
do_amomin:
do_amomax:
do_amominu:
do_amomaxu:
  if (!atomic(op, stop)) goto leave;
  loads += op->code == OpCode::lr ? 1 : 0;
  stores += op->code == OpCode::sc ? 1 : 0;
  NEXT();
do_fmadd:
do_fmsub:
do_fnmsub:
do_fnmadd:
do_fadd:
do_fsub:
do_fmul:
do_fdiv:
do_fsqrt:
do_fsgnj:
do_fsgnjn:
do_fsgnjx:
do_fmin:
do_fmax:
do_feq:
do_flt:
do_fle:
do_fclass:
do_fcvt_w:
do_fcvt_wu:
do_fcvt_from_w:
do_fcvt_from_wu:
do_fcvt_float:
do_fmv_x_w:
do_fmv_w_x:
do_fcsr:
  if (!floating(op, stop)) goto leave;
  NEXT();
do_ecall:
do_ebreak:
  stop = fault(FaultKind::environment_call, op, pc_of(op));
  goto leave;
do_illegal:
  stop = fault(FaultKind::illegal_instruction, op, op->raw);
  goto leave;
do_no_execute:
  stop = fault(FaultKind::fetch_violation, op, pc_of(op));
  goto leave;

load_elsewhere:
  {
    const uint32_t address = RS1 + IMMEDIATE;
    const AddressSpace::Access& access = memory.access_of(address);
    if (access.kind != RegionKind::device || address - access.base >= SPL_CMD_WINDOW_BYTES) {
      stop = load_fault(op, address);
      goto leave;
    }
    if (!device_load(op, address, stop)) goto leave;
    ++loads;
  }
  NEXT();
store_elsewhere:
  {
    const uint32_t address = RS1 + IMMEDIATE;
    const AddressSpace::Access& access = memory.access_of(address);
    if (access.kind != RegionKind::device || address - access.base >= SPL_CMD_WINDOW_BYTES) {
      stop = store_fault(op, address);
      goto leave;
    }
    if (!device_store(op, address, stop)) goto leave;
    ++stores;
  }
  NEXT();
stop_shared:
  stop = stop_at(StopKind::shared, op, timing.shared_at(*op));
  stop.address = RS1 + IMMEDIATE;
  goto leave;
quantum:
  stop = stop_at(StopKind::quantum, op, timing.now());
  goto leave;
transfer_outside:
  if (jump_target == SPL_HPU_RETURN_PC) {
    stop = stop_at(StopKind::returned, op, timing.end());
    stop.value = x[10];
  } else {
    stop = stop_at(StopKind::fault, op, std::max(timing.now(), timing.end()));
    stop.fault = {FaultKind::fetch_violation, jump_target, jump_target};
  }
leave:
  state.counters.instructions = instructions;
  state.counters.loads = loads;
  state.counters.stores = stores;
  state.counters.branches = branches;
  return stop;

#undef RS1
#undef RS2
#undef RD
#undef TO_INTEGER
#undef TO_SINGLE
#undef TO_DOUBLE
#undef IMMEDIATE
#undef SIGNED
#undef DISPATCH
#undef NEXT
#undef ALU
#undef MULTIPLY
#undef DIVIDE
#undef ARRIVE
#undef TRANSFER
#undef BRANCH
#undef LOAD
#undef STORE
}

}  // namespace spinloom::hpu
