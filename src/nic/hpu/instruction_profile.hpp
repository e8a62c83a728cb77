// InstructionProfile - cycles and executions of handlers by instruction, and their memory accesses by region.
//
// Contract: a profile is made for one image. A core that was started with it reports every instruction through
//   Profiled, which stands between the interpreter and a timing model. An instruction is charged the cycles by which
//   it moved the handler's end. In an out-of-order core, that charges the instruction that waits, not the one that it
//   waits for.
// Invariants: 1. the sum of all cycles is that of all handlers that returned with this profile;
//   2. profiling changes neither results nor time.
// Threads: one owner; cores of one simulation share it. Time: HPU cycles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "nic/hpu/decode.hpp"
#include "nic/hpu/elf.hpp"
#include "nic/hpu/memory.hpp"

namespace spinloom::hpu {

class InstructionProfile {
 public:
  struct Cost {
    uint64_t executed = 0;
    uint64_t cycles = 0;
  };
  // Accesses by window of 256 MiB, in which spinloom/hpu_map.h has one region. Atomics are not counted here.
  struct Traffic {
    uint64_t loads = 0;
    uint64_t stores = 0;
    uint64_t load_bytes = 0;
    uint64_t store_bytes = 0;
  };
  static constexpr unsigned window_count = 16;

  explicit InstructionProfile(const Image& image)
      : base_(image.base()), ops_(image.ops()), costs_(image.slot_count()) {}

  void count_execution(const Op& op) {
    if (const size_t slot = slot_of(op); slot < costs_.size()) ++costs_[slot].executed;
  }
  void charge_cycles(const Op& op, uint64_t cycles) {
    if (const size_t slot = slot_of(op); slot < costs_.size()) costs_[slot].cycles += cycles;
  }
  void count_load(uint32_t address, uint32_t bytes) {
    Traffic& traffic = traffic_[address >> 28];
    ++traffic.loads;
    traffic.load_bytes += bytes;
  }
  void count_store(uint32_t address, uint32_t bytes) {
    Traffic& traffic = traffic_[address >> 28];
    ++traffic.stores;
    traffic.store_bytes += bytes;
  }

  // Slot i is the instruction at base() + 2 i.
  [[nodiscard]] uint32_t base() const { return base_; }
  [[nodiscard]] const std::vector<Cost>& costs() const { return costs_; }
  [[nodiscard]] const std::array<Traffic, window_count>& traffic() const { return traffic_; }

 private:
  [[nodiscard]] size_t slot_of(const Op& op) const { return static_cast<size_t>(&op - ops_); }

  uint32_t base_;
  const Op* ops_;
  std::vector<Cost> costs_;
  std::array<Traffic, window_count> traffic_{};
};

// A timing model that also reports the cost of each instruction to a profile.
template <class Timing>
class Profiled {
 public:
  static constexpr bool has_float = Timing::has_float;

  Profiled(Timing& timing, InstructionProfile& profile) : timing_(timing), profile_(profile) {}

  [[nodiscard]] uint64_t now() const { return timing_.now(); }
  [[nodiscard]] uint64_t fetch_cycle() const { return timing_.fetch_cycle(); }
  [[nodiscard]] uint64_t end() const { return timing_.end(); }
  [[nodiscard]] uint64_t shared_at(const Op& op) const { return timing_.shared_at(op); }
  [[nodiscard]] uint64_t device_load_at(const Op& op) const { return timing_.device_load_at(op); }

  void alu(const Op& op) {
    charge(op, [&] { timing_.alu(op); });
  }
  void multiply(const Op& op) {
    charge(op, [&] { timing_.multiply(op); });
  }
  void divide(const Op& op, uint32_t divisor) {
    charge(op, [&] { timing_.divide(op, divisor); });
  }
  void floating(const Op& op) {
    charge(op, [&] { timing_.floating(op); });
  }
  void branch(const Op& op, uint32_t pc, bool taken) {
    charge(op, [&] { timing_.branch(op, pc, taken); });
  }
  void jump(const Op& op, uint32_t pc) {
    charge(op, [&] { timing_.jump(op, pc); });
  }
  void jump_indirect(const Op& op, uint32_t pc, uint32_t target) {
    charge(op, [&] { timing_.jump_indirect(op, pc, target); });
  }
  void arrive(const Op& target, uint32_t slot) {
    const uint64_t before = timing_.end();
    timing_.arrive(target, slot);
    profile_.charge_cycles(target, timing_.end() - before);
  }
  void load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass memory, bool writable) {
    profile_.count_load(address, bytes);
    charge(op, [&] { timing_.load(op, address, bytes, memory, writable); });
  }
  void store(const Op& op, uint32_t address, uint32_t bytes) {
    profile_.count_store(address, bytes);
    charge(op, [&] { timing_.store(op, address, bytes); });
  }
  void shared_load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass memory) {
    profile_.count_load(address, bytes);
    charge(op, [&] { timing_.shared_load(op, address, bytes, memory); });
  }
  void shared_store(const Op& op, uint32_t address, uint32_t bytes, LatencyClass memory) {
    profile_.count_store(address, bytes);
    charge(op, [&] { timing_.shared_store(op, address, bytes, memory); });
  }
  void atomic(const Op& op, LatencyClass memory) {
    charge(op, [&] { timing_.atomic(op, memory); });
  }
  void delay_shared(const Op& op, uint64_t at_cycle) {
    const uint64_t before = timing_.end();
    timing_.delay_shared(op, at_cycle);
    profile_.charge_cycles(op, timing_.end() - before);
  }
  void device_store(const Op& op) {
    profile_.count_store(SPL_HPU_COMMAND_BASE, sizeof(uint32_t));
    charge(op, [&] { timing_.device_store(op); });
  }
  void device_load(const Op& op, uint64_t available_at, bool call) {
    profile_.count_load(SPL_HPU_COMMAND_BASE, sizeof(uint32_t));
    charge(op, [&] { timing_.device_load(op, available_at, call); });
  }
  uint64_t read_counter(const Op& op) {
    uint64_t value = 0;
    charge(op, [&] { value = timing_.read_counter(op); });
    return value;
  }

 private:
  template <class Step>
  void charge(const Op& op, const Step& step) {
    const uint64_t before = timing_.end();
    step();
    profile_.count_execution(op);
    profile_.charge_cycles(op, timing_.end() - before);
  }

  Timing& timing_;
  InstructionProfile& profile_;
};

}  // namespace spinloom::hpu
