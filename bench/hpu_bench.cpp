// hpu_bench - host speed of the handler processor: instructions a second with each timing model, and what a
// start, a call and a stop at shared memory cost. Best of several rounds, because the machine is shared.
// All times printed are host time; the modelled cycles an instruction stand beside them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "nic/hpu/assembler.hpp"
#include "nic/hpu/core.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::hpu;
namespace as = spinloom::hpu::assembler;

constexpr uint32_t array_bytes = 4096;
constexpr int rounds = 60;  // short ones: the best falls between two preemptions

// The benchmark's own programs are right; an error is a bug and throws.
template <class T>
T value_of(Result<T> result) {
  return std::move(result.value());
}

struct Bench {
  explicit Bench(const as::Assembler& code, const TimingParameters& timing)
      : image(value_of(code.image())), core(value_of(Core::create(timing))), scratch(array_bytes), state(64) {
    for (const Region& region :
         {Region::image(image.base(), image.bytes()), Region::private_memory(SPL_HPU_STACK_BASE, scratch),
          Region::shared(SPL_HPU_STATE_BASE, state), Region::command_window()}) {
      if (!memory.map(region)) std::abort();
    }
    for (size_t at = 0; at < array_bytes; at += 2 * sizeof(double)) {
      const double number[2] = {0.6, 0.8};  // a number of magnitude 1: products have it, too
      std::memcpy(scratch.data() + at, number, sizeof number);
    }
  }

  void start(uint32_t count) {
    Start start;
    start.image = &image;
    start.memory = &memory;
    start.pc = image.base();
    start.arguments = {count, SPL_HPU_STACK_BASE, SPL_HPU_COMMAND_BASE, SPL_HPU_STATE_BASE};
    start.stack_pointer = SPL_HPU_STACK_BASE + array_bytes;
    start.at_cycle = core.cycle();
    core.start(start);
  }

  // Runs to the end, answering calls at once; returns the number of stops.
  uint64_t finish(uint64_t quantum) {
    for (uint64_t stops = 1;; ++stops) {
      const Stop stop = core.run(core.cycle() + quantum);
      if (stop.kind == StopKind::returned) return stops;
      if (stop.kind == StopKind::call) core.resume_call(0, stop.cycle);
      if (stop.kind == StopKind::fault) {
        std::fprintf(stderr, "%s\n", stop.fault.describe().c_str());
        std::exit(1);
      }
    }
  }

  Image image;
  AddressSpace memory;
  Core core;
  std::vector<uint8_t> scratch;
  std::vector<uint8_t> state;
};

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// a0 rounds over the scratchpad array: load, integer operations, store, loop.
as::Assembler mix() {
  as::Assembler code;
  const int32_t outer = code.here();
  code(as::addi(as::t0, as::a1, 0))(as::lui(as::t1, array_bytes))(as::add(as::t1, as::t0, as::t1));
  const int32_t inner = code.here();
  code(as::lw(as::t2, as::t0, 0))(as::add(as::t3, as::t3, as::t2))(as::xor_(as::t4, as::t4, as::t3));
  code(as::slli(as::t5, as::t3, 3))(as::addi(as::t6, as::t5, 1))(as::sw(as::t6, as::t0, 0))(
      as::addi(as::t0, as::t0, 4));
  code(as::bne(as::t0, as::t1, inner - code.here()));
  code(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, outer - code.here()));
  return code(as::ret());
}

// Unpredictable branches and multiplications: a linear congruential generator decides.
as::Assembler branchy() {
  as::Assembler code;
  code(as::lui(as::t1, 0x41c65000))(as::addi(as::t1, as::t1, 0x66d))(as::slli(as::a0, as::a0, 10));
  const int32_t loop = code.here();
  code(as::mul(as::t0, as::t0, as::t1))(as::addi(as::t0, as::t0, 1))(as::srli(as::t2, as::t0, 28));
  code(as::andi(as::t2, as::t2, 1))(as::beq(as::t2, as::zero, 8))(as::xor_(as::t3, as::t3, as::t0));
  code(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, loop - code.here()));
  return code(as::ret());
}

// a0 rounds over the array of complex numbers in double precision: each is turned by the first one.
as::Assembler complex() {
  constexpr uint32_t add = 0x01;
  constexpr uint32_t subtract = 0x05;
  constexpr uint32_t multiply = 0x09;
  const auto operation = [](uint32_t upper, uint32_t rd, uint32_t rs1, uint32_t rs2) {
    return as::float_operation(upper, 7, rd, rs1, rs2);
  };
  as::Assembler code;
  code(as::fld(8, as::a1, 0))(as::fld(9, as::a1, 8));
  const int32_t outer = code.here();
  code(as::addi(as::t0, as::a1, 16))(as::lui(as::t1, array_bytes))(as::add(as::t1, as::a1, as::t1));
  const int32_t inner = code.here();
  code(as::fld(0, as::t0, 0))(as::fld(1, as::t0, 8));
  code(operation(multiply, 2, 0, 8))(operation(multiply, 3, 1, 9))(operation(subtract, 2, 2, 3));
  code(operation(multiply, 4, 0, 9))(operation(multiply, 5, 1, 8))(operation(add, 4, 4, 5));
  code(as::fsd(2, as::t0, 0))(as::fsd(4, as::t0, 8))(as::addi(as::t0, as::t0, 16));
  code(as::bne(as::t0, as::t1, inner - code.here()));
  code(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, outer - code.here()));
  return code(as::ret());
}

// a0 calls: six stores and the load of ISSUE.
as::Assembler calls() {
  as::Assembler code;
  const int32_t loop = code.here();
  for (int32_t word = 0; word < 6; ++word) code(as::sw(as::a0, as::a2, 4 * word));
  code(as::lw(as::t0, as::a2, SPL_CMD_ISSUE))(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, loop - code.here()));
  return code(as::ret());
}

// a0 atomic increments of shared memory, four private instructions between.
as::Assembler shared() {
  as::Assembler code;
  code(as::addi(as::t1, as::zero, 1));
  const int32_t loop = code.here();
  code(as::amoadd(as::t0, as::a3, as::t1))(as::add(as::t2, as::t2, as::t1))(as::add(as::t3, as::t3, as::t1));
  code(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, loop - code.here()));
  return code(as::ret());
}

void measure_mips(const char* model, const TimingParameters& timing, const char* name, const as::Assembler& code,
                  uint64_t quantum) {
  double best = 0;
  double cycles_per_instruction = 0;
  for (int round = 0; round < rounds; ++round) {
    Bench bench(code, timing);
    bench.start(60);
    const double seconds = seconds_of([&] { bench.finish(quantum); });
    const Counters counters = bench.core.counters();
    best = std::max(best, static_cast<double>(counters.instructions) / seconds * 1e-6);
    cycles_per_instruction = static_cast<double>(counters.cycles) / static_cast<double>(counters.instructions);
  }
  std::printf("%-10s %-8s quantum %-8s %7.1f MIPS (host)   %.2f cycles an instruction (modelled)\n", model, name,
              quantum > 1000000 ? "infinite" : std::to_string(quantum).c_str(), best, cycles_per_instruction);
}

void measure_stops(const char* model, const TimingParameters& timing, const char* name, const as::Assembler& code) {
  constexpr uint32_t count = 10000;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    Bench bench(code, timing);
    bench.start(count);
    best = std::min(best, seconds_of([&] { bench.finish(256); }) / count * 1e9);
  }
  std::printf("%-10s %-28s %7.1f ns each (host), its instructions included\n", model, name, best);
}

void measure_starts(const char* model, const TimingParameters& timing) {
  constexpr uint32_t count = 10000;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    Bench bench(as::Assembler()(as::ret()), timing);
    best = std::min(best, seconds_of([&] {
                            for (uint32_t i = 0; i < count; ++i) {
                              bench.start(0);
                              bench.finish(256);
                            }
                          }) / count *
                              1e9);
  }
  std::printf("%-10s %-28s %7.1f ns each (host)\n", model, "start, ret, end", best);
}

}  // namespace

int main() {
  constexpr uint64_t infinite = uint64_t{1} << 60;
  const std::pair<const char*, TimingParameters> models[] = {{"a15", A15Parameters{}},
                                                             {"functional", FunctionalParameters{}}};
  for (const auto& [name, timing] : models) {
    measure_mips(name, timing, "mix", mix(), infinite);
    measure_mips(name, timing, "mix", mix(), 256);
    measure_mips(name, timing, "branchy", branchy(), infinite);
    measure_mips(name, timing, "complex", complex(), infinite);
    measure_stops(name, timing, "call out and back (7 + 2)", calls());
    measure_stops(name, timing, "stop at an atomic (1 + 4)", shared());
    measure_starts(name, timing);
  }
}
