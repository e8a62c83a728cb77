// TestMachine - one core with every kind of region, for the tests of this floor.
//
// Contract: run() drives a handler to its end, answers its calls through `answer`, and records every stop except
//   quanta. Tests then look at registers, memory, stops and counters.
// Threads: one owner. Time: HPU cycles.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nic/hpu/assembler.hpp"
#include "nic/hpu/core.hpp"

namespace spinloom::hpu {

// Unwraps a Result: an error here is a bug of the test, and throws.
template <class T>
T take(Result<T> result) {
  return std::move(result.value());
}

// The seed of a randomised test; a failure prints how to replay it.
inline uint64_t test_seed(uint64_t fallback) {
  const char* text = std::getenv("SPINLOOM_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}
inline std::string replay(const char* test, uint64_t seed) {
  return "replay: SPINLOOM_TEST_SEED=" + std::to_string(seed) + " spinloom_hpu_test --gtest_filter=" + test;
}

struct Event {
  StopKind kind;
  uint64_t cycle;
  uint32_t value;  // returned: a0; call: WORD0
  bool operator==(const Event&) const = default;
};

class TestMachine {
 public:
  static constexpr uint32_t stack_bytes = 4096;
  static constexpr uint32_t shared_bytes = 4096;
  static constexpr uint64_t no_quantum = uint64_t{1} << 60;

  explicit TestMachine(Image program, const TimingParameters& timing = FunctionalParameters{})
      : image(std::move(program)),
        core(take(Core::create(timing))),
        stack(stack_bytes),
        shared(shared_bytes),
        packet(2048),
        constants(1024) {
    for (const Region& region :
         {Region::image(image.base(), image.bytes()), Region::private_memory(SPL_HPU_STACK_BASE, stack),
          Region::shared(SPL_HPU_STATE_BASE, shared),
          Region::read_only(SPL_HPU_PACKET_BASE, packet, LatencyClass::packet_buffer),
          Region::read_only(SPL_HPU_CONST_BASE, constants, LatencyClass::nic_memory), Region::command_window()}) {
      const Status mapped = memory.map(region);
      SPL_ASSERT(mapped.ok(), mapped.error().message);
    }
    begin.pc = image.base();
    begin.stack_pointer = SPL_HPU_STACK_BASE + stack_bytes;
  }

  Stop run(uint64_t quantum = no_quantum) {
    begin.image = &image;
    begin.memory = &memory;
    begin.at_cycle = core.cycle();
    core.start(begin);
    for (;;) {
      const uint64_t before = core.cycle();
      const Stop stop = core.run(before + quantum);
      SPL_ASSERT(stop.cycle >= before, "a stop at ", stop.cycle, " after cycle ", before);
      SPL_ASSERT(stop.cycle == core.cycle(), "stop at ", stop.cycle, " but the core is at ", core.cycle());
      if (stop.kind == StopKind::quantum) {
        ++quanta;
        if (stop.cycle - begin.at_cycle > budget) return stop;
        continue;
      }
      events.push_back({stop.kind, stop.cycle, stop.kind == StopKind::call ? core.command()[0] : stop.value});
      if (stop.kind == StopKind::call) {
        const auto [value, at_cycle] = answer(core.command(), stop.cycle);
        core.resume_call(value, at_cycle);
      }
      if (stop.kind == StopKind::returned || stop.kind == StopKind::fault) return stop;
    }
  }

  Image image;
  Core core;
  AddressSpace memory;
  std::vector<uint8_t> stack;
  std::vector<uint8_t> shared;
  std::vector<uint8_t> packet;
  std::vector<uint8_t> constants;
  Start begin;
  std::vector<Event> events;
  uint64_t quanta = 0;
  uint64_t budget = 10'000'000;
  std::function<std::pair<uint32_t, uint64_t>(const std::array<uint32_t, SPL_CMD_WORDS>&, uint64_t)> answer =
      [](const auto&, uint64_t cycle) { return std::pair<uint32_t, uint64_t>(0, cycle); };
};

inline const TimingParameters every_model[] = {FunctionalParameters{}, A15Parameters{}, PulpParameters{}};

}  // namespace spinloom::hpu
