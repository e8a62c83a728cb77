// A15Timing - computes when each instruction enters, issues, completes and retires in an A15-class pipeline.
//
// Contract: a dataflow model. Instructions are presented once, in program order, and each gets four cycles. For
//   instruction i with sources s, unit group u and latency L:
//
//   rename_i   = max(rename_{i-1}, restart, retire_{i-window}),   at most rename_width a cycle;
//   ready_i    = max(rename_i, complete of the writers of s, what memory and device order ask for);
//   issue_i    = first cycle >= ready_i in which u has a free unit (older instructions choose first);
//   complete_i = issue_i + L        an operation with L = 1 feeds one that issues in the next cycle;
//   retire_i   = max(complete_i, retire_{i-1}),                   at most retire_width a cycle;
//   restart    = complete_b + front_end_cycles after a mispredicted branch b.
//
// Latencies L: alu_cycles; multiply_cycles; divide_cycles (its unit stays taken); float_*_cycles in units of their
// own, which stay taken for a division or a root; load_cycles + memory_cycles of the class (+ misaligned_cycles);
// store_cycles, after which the data can be forwarded to a younger load of the same word (+ misaligned_cycles) and
// the store may retire. Branches and jumps are integer operations.
//
// Order at the edges:
//   - device stores retire in order, one each device_store_cycles, and are answered device_answer_cycles later;
//   - a device load or an atomic may not be speculative: it issues oldest_cycles after everything older has retired and
//     all device stores are answered. A device load completes after device_load_cycles or when the driver answers;
//   - the answer of a call holds back younger loads from private and shared memory (the call may have written there),
//     and younger atomics;
//   - accesses to shared memory happen in program order (order_): a load when it issues, a store when it
//     retires, an atomic when everything older has retired; shared accesses, atomics and device loads behind an atomic
//     wait for its result;
//   - counter reads and accesses to fcsr wait until everything older has retired.
//
// Not modelled, on purpose: instruction cache misses (handlers are small and warm); the 32-entry issue queue and the
// 8-wide issue (the default's seven units cannot ask for more); taken-branch fetch bubbles; memory aliasing other than
// through 64 stored words, one for each address of a word modulo 64.
//
// Invariants: 1. every call depends on earlier calls only, never on where slices were cut; 2. now() <= the
//   cycle of every later stop; 3. cycles of a handler = cycles with a retirement + all stalls.
// Threads: one owner. Time: HPU cycles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "nic/hpu/calendar.hpp"
#include "nic/hpu/decode.hpp"
#include "nic/hpu/predictor.hpp"
#include "nic/hpu/timing.hpp"
#include "nic/hpu/timing_stalls.hpp"

namespace spinloom::hpu {

class A15Timing {
 public:
  static constexpr bool has_float = true;

  explicit A15Timing(const A15Parameters& parameters)
      : parameters_(parameters),
        alus_(parameters.alus),
        multipliers_(parameters.multipliers),
        floats_(parameters.float_units),
        load_units_(parameters.load_units),
        store_units_(parameters.store_units),
        predictor_(parameters.predictor_entries, parameters.indirect_entries, parameters.return_stack) {}

  // Starts a handler with an empty pipeline; `at_cycle` is not before end().
  void begin(uint64_t at_cycle) {
    rename_slot_ = at_cycle << slot_bits;
    retire_slot_ = at_cycle << slot_bits;
    last_retire_ = at_cycle;
    order_ = at_cycle;
    restart_ = 0;
    predictor_.push_return(SPL_HPU_RETURN_PC);
  }

  [[nodiscard]] uint64_t fetch_cycle() const { return rename_slot_ >> slot_bits; }
  [[nodiscard]] uint64_t now() const { return std::max(fetch_cycle(), order_); }
  // The cycle in which the last instruction retires.
  [[nodiscard]] uint64_t end() const { return last_retire_; }
  [[nodiscard]] const Stalls& stalls() const { return stalls_; }
  [[nodiscard]] uint64_t mispredicts() const { return mispredicts_; }

  void alu(const Op& op) { finish(op, execute_alu(op)); }

  void multiply(const Op& op) {
    Path path = rename();
    path.ready = operands(op, path.rename);
    path.issue = multipliers_.reserve(path.ready);
    path.complete = path.issue + parameters_.multiply_cycles;
    finish(op, path);
  }

  void divide(const Op& op, uint32_t) {
    Path path = rename();
    path.ready = operands(op, path.rename);
    path.issue = multipliers_.reserve_run(path.ready, parameters_.divide_cycles);
    path.complete = path.issue + parameters_.divide_cycles;
    finish(op, path);
  }

  void floating(const Op& op) {
    const uint32_t cycles = float_cycles(op.code);
    const bool pipelined = op.code != OpCode::fdiv && op.code != OpCode::fsqrt;
    Path path = rename();
    path.ready = std::max(operands(op, path.rename), ready_[op.rs3]);
    path.issue = pipelined ? floats_.reserve(path.ready) : floats_.reserve_run(path.ready, cycles);
    path.complete = path.issue + cycles;
    finish(op, path);
  }

  void branch(const Op& op, uint32_t pc, bool taken) {
    const Path path = execute_alu(op);
    if (!predictor_.predict_branch(pc, taken)) [[unlikely]]
      mispredicted(path);
    finish(op, path);
  }

  void jump(const Op& op, uint32_t pc) {
    if (is_link(op.rd)) predictor_.push_return(pc + 2u * op.slots);
    alu(op);
  }

  // Follows the hints of the ISA manual (return-address stack table): a link register as source pops, as destination
  // pushes; if both are the same, the jump only pushes.
  void jump_indirect(const Op& op, uint32_t pc, uint32_t target) {
    const Path path = execute_alu(op);
    const bool pops = is_link(op.rs1) && op.rs1 != op.rd;
    const bool is_correct = pops ? predictor_.pop_return(target) : predictor_.predict_indirect(pc, target);
    if (is_link(op.rd)) predictor_.push_return(pc + 2u * op.slots);
    if (!is_correct) mispredicted(path);
    finish(op, path);
  }

  void arrive(const Op&, uint32_t) {}  // targets are always fetched in time

  // `writable`: the memory is private memory, which a call may have written.
  void load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class, bool writable) {
    Path path = rename();
    path.ready = std::max(operands(op, path.rename), writable ? answer_ : 0);
    if (writable) path.ready = std::max(path.ready, forwarded(address, bytes));
    path.issue = load_units_.reserve(path.ready);
    path.complete = path.issue + load_latency(address, bytes, latency_class);
    finish(op, path);
  }

  void store(const Op& op, uint32_t address, uint32_t bytes) { finish(op, execute_store(op, address, bytes)); }

  // The cycle at which the shared access or atomic would happen if it were executed now.
  [[nodiscard]] uint64_t shared_at(const Op& op) const {
    const uint64_t renamed = next_rename();
    const uint64_t ready = operands(op, renamed);
    if (is_atomic(op.code)) return std::max({ready, order_, answer_, oldest_at()});
    if (is_load(op.code)) return load_units_.first_free(std::max({ready, order_, answer_}));
    const uint64_t complete = store_units_.first_free(ready) + parameters_.store_cycles;
    return next_retire(std::max(complete, order_));
  }

  void shared_load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class) {
    Path path = rename();
    path.ready = std::max({operands(op, path.rename), order_, answer_});
    path.issue = load_units_.reserve(path.ready);
    path.complete = path.issue + load_latency(address, bytes, latency_class);
    order_ = path.issue;
    finish(op, path);
  }

  void shared_store(const Op& op, uint32_t address, uint32_t bytes, LatencyClass) {
    Path path = execute_store(op, address, bytes);
    path.complete = std::max(path.complete, order_);
    finish(op, path);
    order_ = last_retire_;
  }

  void atomic(const Op& op, LatencyClass latency_class) {
    Path path = rename();
    path.is_device = true;
    path.ready = std::max({operands(op, path.rename), order_, answer_, oldest_at()});
    path.issue = path.ready;
    load_units_.reserve(path.issue);
    path.complete =
        path.issue + parameters_.load_cycles + parameters_.memory_cycles[static_cast<size_t>(latency_class)];
    order_ = path.complete;
    finish(op, path);
  }

  void delay_shared(const Op&, uint64_t at_cycle) { order_ = std::max(order_, at_cycle); }

  void device_store(const Op& op) {
    Path path = rename();
    path.is_device = true;
    path.ready = operands(op, path.rename);
    path.issue = store_units_.reserve(path.ready);
    path.complete = std::max(path.issue + parameters_.store_cycles, device_free_);
    finish(op, path);
    device_free_ = last_retire_ + parameters_.device_store_cycles;
    device_answered_ = last_retire_ + std::max(parameters_.device_store_cycles, parameters_.device_answer_cycles);
  }

  [[nodiscard]] uint64_t device_load_at(const Op& op) const {
    return std::max({operands(op, next_rename()), oldest_at(), order_});
  }

  // `call`: the load is that of ISSUE, and later accesses are ordered after its answer.
  void device_load(const Op& op, uint64_t available_at, bool call) {
    Path path = rename();
    path.is_device = true;
    path.ready = std::max({operands(op, path.rename), oldest_at(), order_});
    path.issue = path.ready;
    load_units_.reserve(path.issue);
    path.complete = std::max(path.issue + parameters_.device_load_cycles, available_at);
    order_ = std::max(order_, path.issue);
    if (call) answer_ = path.complete;
    finish(op, path);
  }

  // Returns the cycle that the instruction reads.
  uint64_t read_counter(const Op& op) {
    Path path = rename();
    path.ready = std::max(path.rename, last_retire_);
    path.issue = alus_.reserve(path.ready);
    path.complete = path.issue + parameters_.alu_cycles;
    finish(op, path);
    return path.issue;
  }

 private:
  // Rename and retire count in slots: cycle * 8 + position in the cycle.
  static constexpr unsigned slot_bits = 3;
  static constexpr uint64_t slot_mask = (1u << slot_bits) - 1;
  static constexpr size_t forward_entries = 64;

  struct Path {
    uint64_t rename = 0;
    uint64_t ready = 0;
    uint64_t issue = 0;
    uint64_t complete = 0;
    bool by_window = false;
    bool is_device = false;
  };
  struct Forward {
    uint32_t word = UINT32_MAX;  // address / 4; never that large
    uint64_t ready = 0;
  };

  // The first cycle in which an instruction that must not be speculative can issue.
  [[nodiscard]] uint64_t oldest_at() const {
    return std::max(last_retire_, device_answered_) + parameters_.oldest_cycles;
  }

  static bool is_link(uint8_t index) { return index == 1 || index == 5; }

  // The slot after this one, `width` slots to a cycle.
  static uint64_t advance(uint64_t slot, uint32_t width) {
    const uint64_t next = slot + 1;
    return (next & slot_mask) == width ? (next | slot_mask) + 1 : next;
  }

  [[nodiscard]] uint64_t window_bound() const {
    return retired_[static_cast<uint8_t>(position_ - parameters_.window)] << slot_bits;
  }
  [[nodiscard]] uint64_t next_rename() const { return std::max(rename_slot_, window_bound()) >> slot_bits; }
  [[nodiscard]] uint64_t next_retire(uint64_t complete) const {
    return std::max(retire_slot_, complete << slot_bits) >> slot_bits;
  }

  Path rename() {
    const uint64_t bound = window_bound();
    const uint64_t slot = std::max(rename_slot_, bound);
    Path path;
    path.rename = slot >> slot_bits;
    path.by_window = bound > rename_slot_;
    rename_slot_ = advance(slot, parameters_.rename_width);
    return path;
  }

  [[nodiscard]] uint64_t operands(const Op& op, uint64_t renamed) const {
    return std::max(std::max(ready_[op.rs1], ready_[op.rs2]), renamed);
  }

  [[nodiscard]] uint32_t float_cycles(OpCode code) const {
    switch (code) {
      case OpCode::fadd:
      case OpCode::fsub: return parameters_.float_add_cycles;
      case OpCode::fmul: return parameters_.float_multiply_cycles;
      case OpCode::fmadd:
      case OpCode::fmsub:
      case OpCode::fnmsub:
      case OpCode::fnmadd: return parameters_.float_multiply_add_cycles;
      case OpCode::fdiv: return parameters_.float_divide_cycles;
      case OpCode::fsqrt: return parameters_.float_root_cycles;
      case OpCode::fmin:
      case OpCode::fmax:
      case OpCode::feq:
      case OpCode::flt:
      case OpCode::fle: return parameters_.float_compare_cycles;
      case OpCode::fcvt_w:
      case OpCode::fcvt_wu:
      case OpCode::fcvt_from_w:
      case OpCode::fcvt_from_wu:
      case OpCode::fcvt_float: return parameters_.float_convert_cycles;
      default: return parameters_.float_move_cycles;
    }
  }

  Path execute_alu(const Op& op) {
    Path path = rename();
    path.ready = operands(op, path.rename);
    path.issue = alus_.reserve(path.ready);
    path.complete = path.issue + parameters_.alu_cycles;
    return path;
  }

  Path execute_store(const Op& op, uint32_t address, uint32_t bytes) {
    Path path = rename();
    path.ready = operands(op, path.rename);
    path.issue = store_units_.reserve(path.ready);
    path.complete = path.issue + parameters_.store_cycles + misaligned(address, bytes);
    const uint32_t first = address / 4;
    const uint32_t last = (address + bytes - 1) / 4;
    forward_[first % forward_entries] = {first, path.complete};
    for (uint32_t word = first + 1; word <= last; ++word) [[unlikely]]
      forward_[word % forward_entries] = {word, path.complete};
    return path;
  }

  [[nodiscard]] uint64_t forwarded(uint32_t address, uint32_t bytes) const {
    const uint32_t first = address / 4;
    const uint32_t last = (address + bytes - 1) / 4;
    const Forward& entry = forward_[first % forward_entries];
    uint64_t ready = entry.word == first ? entry.ready : 0;
    for (uint32_t word = first + 1; word <= last; ++word) [[unlikely]] {
      const Forward& next = forward_[word % forward_entries];
      if (next.word == word) ready = std::max(ready, next.ready);
    }
    return ready;
  }

  [[nodiscard]] uint64_t misaligned(uint32_t address, uint32_t bytes) const {
    return (address & (bytes - 1)) != 0 ? parameters_.misaligned_cycles : 0;
  }
  [[nodiscard]] uint64_t load_latency(uint32_t address, uint32_t bytes, LatencyClass latency_class) const {
    return parameters_.load_cycles + parameters_.memory_cycles[static_cast<size_t>(latency_class)] +
           misaligned(address, bytes);
  }

  void mispredicted(const Path& path) {
    ++mispredicts_;
    restart_ = path.complete + parameters_.front_end_cycles;
    rename_slot_ = std::max(rename_slot_, restart_ << slot_bits);
  }

  // Records destination and retirement, and accounts for the cycles without a retirement.
  void finish(const Op& op, const Path& path) {
    ready_[op.rd] = path.complete;
    const uint64_t slot = std::max(retire_slot_, path.complete << slot_bits);
    const uint64_t retire = slot >> slot_bits;
    retire_slot_ = advance(slot, parameters_.retire_width);
    if (retire > last_retire_ + 1) [[unlikely]] {
      stalls_.*cause_of(path) += retire - last_retire_ - 1;
    }
    last_retire_ = retire;
    retired_[position_] = retire;
    ++position_;
  }

  // The most visible reason for the instruction's delay; the first that applies.
  [[nodiscard]] uint64_t Stalls::* cause_of(const Path& path) const {
    if (path.is_device) return &Stalls::device;
    if (path.issue > path.ready) return &Stalls::unit;
    if (path.ready > path.rename) return &Stalls::operand;
    if (path.rename == restart_) return &Stalls::front_end;
    return path.by_window ? &Stalls::window : &Stalls::latency;
  }

  A15Parameters parameters_;
  uint64_t rename_slot_ = 0;
  uint64_t retire_slot_ = 0;
  uint64_t last_retire_ = 0;
  uint64_t restart_ = 0;  // the rename cycle after the last misprediction
  uint64_t order_ = 0;  // shared accesses and calls happen no earlier
  uint64_t answer_ = 0;  // loads of memory that a call may have written issue no earlier
  uint64_t device_free_ = 0;  // the next device store leaves no earlier
  uint64_t device_answered_ = 0;  // the cycle in which the last device store is answered
  uint64_t mispredicts_ = 0;
  uint8_t position_ = 0;  // position of the next instruction in retired_
  std::array<uint64_t, 256> retired_{};  // retire cycles of the last 256 instructions
  std::array<uint64_t, register_slots> ready_{};
  std::array<Forward, forward_entries> forward_{};
  Calendar alus_;
  Calendar multipliers_;
  Calendar floats_;
  Calendar load_units_;
  Calendar store_units_;
  Predictor predictor_;
  Stalls stalls_;
};

}  // namespace spinloom::hpu
