// Random programs, compared with a second, plainly written interpreter of the raw bits; and each program run under
// every quantum, where results, cycles and memory must not differ.
#include <gtest/gtest.h>

#include <cstring>

#include "nic/hpu/random_program.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

uint32_t answer_of(const std::array<uint32_t, SPL_CMD_WORDS>& words) {
  uint32_t hash = 1;
  for (const uint32_t word : words) hash = hash * 31 + word;
  return hash;
}

// Interprets the bits one instruction at a time, without caches or timing; knows only what random programs contain.
class PlainMachine {
 public:
  PlainMachine(const TestMachine& machine)
      : code_(machine.image.bytes().begin(), machine.image.bytes().end()),
        stack(machine.stack),
        shared(machine.shared) {
    x[1] = SPL_HPU_RETURN_PC;
    x[2] = machine.begin.stack_pointer;
    for (size_t i = 0; i < 4; ++i) x[10 + i] = machine.begin.arguments[i];
    x[8] = 0;
    begin_ = machine.begin;
  }

  void run() {
    while (pc != SPL_HPU_RETURN_PC) {
      step();
      x[0] = 0;
      ++instructions;
      ASSERT_LT(instructions, 1000000u) << "the program does not end";
    }
  }

  std::array<uint32_t, 32> x{};
  uint32_t pc = SPL_HPU_IMAGE_BASE;
  uint64_t instructions = 0;

 private:
  std::vector<uint8_t> code_;

 public:
  std::vector<uint8_t> stack;
  std::vector<uint8_t> shared;

 private:
  static int32_t sign(uint32_t value, int count) { return static_cast<int32_t>(value << (32 - count)) >> (32 - count); }

  uint32_t fetch16(uint32_t at) const {
    const size_t offset = at - SPL_HPU_IMAGE_BASE;
    return code_.at(offset) | uint32_t{code_.at(offset + 1)} << 8;
  }

  uint8_t& byte(uint32_t address) {
    if (address >= SPL_HPU_STACK_BASE) return stack.at(address - SPL_HPU_STACK_BASE);
    return shared.at(address - SPL_HPU_STATE_BASE);
  }
  uint32_t load(uint32_t address, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint32_t{byte(address + static_cast<uint32_t>(i))} << (8 * i);
    return value;
  }
  void store(uint32_t address, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) byte(address + static_cast<uint32_t>(i)) = static_cast<uint8_t>(value >> (8 * i));
  }

  void step() {
    const uint32_t low = fetch16(pc);
    if ((low & 3) != 3) {
      step_compressed(low);
      pc += 2;
      return;
    }
    const uint32_t raw = low | fetch16(pc + 2) << 16;
    uint32_t next = pc + 4;
    const uint32_t rd = raw >> 7 & 31;
    const uint32_t function = raw >> 12 & 7;
    const uint32_t a = x[raw >> 15 & 31];
    const uint32_t b = x[raw >> 20 & 31];
    const int32_t i = sign(raw >> 20, 12);
    switch (raw & 0x7f) {
      case 0x37: x[rd] = raw & ~0xfffu; break;
      case 0x17: x[rd] = pc + (raw & ~0xfffu); break;
      case 0x13:
        x[rd] = operate(function, function == 5 && (raw >> 30 & 1), a,
                        function % 4 == 1 ? raw >> 20 & 31 : static_cast<uint32_t>(i));
        break;
      case 0x33: x[rd] = raw >> 25 == 1 ? multiply(function, a, b) : operate(function, raw >> 30 & 1, a, b); break;
      case 0x03: step_load(rd, function, a + static_cast<uint32_t>(i)); break;
      case 0x23: step_store(function, a + static_cast<uint32_t>(sign(raw >> 25 << 5 | rd, 12)), b); break;
      case 0x63: {
        const uint32_t offset = (raw >> 31) << 12 | (raw >> 7 & 1) << 11 | (raw >> 25 & 63) << 5 | (raw >> 8 & 15) << 1;
        if (holds(function, a, b)) next = pc + static_cast<uint32_t>(sign(offset, 13));
        break;
      }
      case 0x6f: {
        const uint32_t offset =
            (raw >> 31) << 20 | (raw >> 12 & 255) << 12 | (raw >> 20 & 1) << 11 | (raw >> 21 & 1023) << 1;
        x[rd] = next;
        next = pc + static_cast<uint32_t>(sign(offset, 21));
        break;
      }
      case 0x67: {
        const uint32_t target = (a + static_cast<uint32_t>(i)) & ~1u;
        x[rd] = next;
        next = target;
        break;
      }
      case 0x2f: step_atomic(raw >> 27, rd, a, b); break;
      case 0x73: x[rd] = static_cast<uint32_t>(instructions); break;
      default: FAIL() << "unexpected instruction " << std::hex << raw;
    }
    pc = next;
  }

  static uint32_t operate(uint32_t function, bool alternative, uint32_t a, uint32_t b) {
    switch (function) {
      case 0: return alternative ? a - b : a + b;
      case 1: return a << (b % 32);
      case 2: return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? 1 : 0;
      case 3: return a < b ? 1 : 0;
      case 4: return a ^ b;
      case 5: return alternative ? static_cast<uint32_t>(static_cast<int32_t>(a) >> (b % 32)) : a >> (b % 32);
      case 6: return a | b;
      default: return a & b;
    }
  }
  static uint32_t multiply(uint32_t function, uint32_t a, uint32_t b) {
    const __int128 signed_a = static_cast<int32_t>(a);
    const __int128 signed_b = static_cast<int32_t>(b);
    switch (function) {
      case 0: return a * b;
      case 1: return static_cast<uint32_t>((signed_a * signed_b) >> 32);
      case 2: return static_cast<uint32_t>((signed_a * static_cast<__int128>(b)) >> 32);
      case 3: return static_cast<uint32_t>((static_cast<unsigned __int128>(a) * b) >> 32);
      case 4: return b == 0 ? UINT32_MAX : static_cast<uint32_t>(signed_a / signed_b);
      case 5: return b == 0 ? UINT32_MAX : a / b;
      case 6: return b == 0 ? a : static_cast<uint32_t>(signed_a % signed_b);
      default: return b == 0 ? a : a % b;
    }
  }
  static bool holds(uint32_t function, uint32_t a, uint32_t b) {
    const bool base = function < 2 ? a == b : function < 6 ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
    return base != ((function & 1) != 0);
  }
  void step_load(uint32_t rd, uint32_t function, uint32_t address) {
    if (address >= SPL_HPU_COMMAND_BASE) {
      switch (address - SPL_HPU_COMMAND_BASE) {
        case SPL_CMD_ISSUE: x[rd] = answer_of(words_); break;
        case SPL_CMD_HPU: x[rd] = begin_.hpu; break;
        case SPL_CMD_VHPU: x[rd] = begin_.vhpu; break;
        default: x[rd] = begin_.hpu_count; break;
      }
      return;
    }
    const int bytes = 1 << (function & 3);
    const uint32_t value = load(address, bytes);
    x[rd] = function < 2 ? static_cast<uint32_t>(sign(value, 8 * bytes)) : value;
  }
  void step_store(uint32_t function, uint32_t address, uint32_t value) {
    if (address >= SPL_HPU_COMMAND_BASE) {
      words_.at((address - SPL_HPU_COMMAND_BASE) / 4) = value;
    } else {
      store(address, value, 1 << function);
    }
  }
  void step_atomic(uint32_t operation, uint32_t rd, uint32_t address, uint32_t b) {
    const uint32_t old = load(address, 4);
    const int32_t so = static_cast<int32_t>(old);
    const int32_t sb = static_cast<int32_t>(b);
    uint32_t next = old;
    x[rd] = old;
    switch (operation) {
      case 2:
        reserved_ = true;
        reserved_value_ = old;
        return;
      case 3:
        x[rd] = reserved_ && reserved_value_ == old ? 0 : 1;
        if (x[rd] == 0) store(address, b, 4);
        reserved_ = false;
        return;
      case 0: next = old + b; break;
      case 1: next = b; break;
      case 4: next = old ^ b; break;
      case 8: next = old | b; break;
      case 12: next = old & b; break;
      case 16: next = so < sb ? old : b; break;
      case 20: next = so > sb ? old : b; break;
      case 24: next = old < b ? old : b; break;
      default: next = old > b ? old : b; break;
    }
    store(address, next, 4);
  }
  void step_compressed(uint32_t raw) {
    const uint32_t rd = raw >> 7 & 31;
    const uint32_t rs2 = raw >> 2 & 31;
    const uint32_t six = static_cast<uint32_t>(sign((raw >> 12 & 1) << 5 | rs2, 6));
    const uint32_t small = 8 + (raw >> 7 & 7);
    switch ((raw >> 13) << 2 | (raw & 3)) {
      case 0 << 2 | 1: x[rd] += six; break;
      case 2 << 2 | 1: x[rd] = six; break;
      case 4 << 2 | 1: {
        static constexpr uint32_t functions[] = {0, 4, 6, 7};
        const uint32_t which = raw >> 5 & 3;
        x[small] = operate(functions[which], which == 0, x[small], x[8 + (raw >> 2 & 7)]);
        break;
      }
      case 4 << 2 | 2: x[rd] = (raw >> 12 & 1) ? x[rd] + x[rs2] : x[rs2]; break;
      case 2 << 2 | 2:
        x[rd] = load(x[2] + ((raw >> 4 & 7) << 2 | (raw >> 12 & 1) << 5 | (raw >> 2 & 3) << 6), 4);
        break;
      case 6 << 2 | 2: store(x[2] + ((raw >> 9 & 15) << 2 | (raw >> 7 & 3) << 6), x[rs2], 4); break;
      default: FAIL() << "unexpected compressed instruction " << std::hex << raw;
    }
  }

  Start begin_;
  std::array<uint32_t, SPL_CMD_WORDS> words_{};
  bool reserved_ = false;
  uint32_t reserved_value_ = 0;
};

// Sets s0 and s2 by a prologue, because they are not arguments.
Image build(Random& random, const RandomProgramOptions& options) {
  namespace as = assembler;
  as::Assembler code = RandomProgram(random, options).build();
  as::Assembler whole;
  whole(as::lui(8, SPL_HPU_STATE_BASE))(as::lui(18, SPL_HPU_COMMAND_BASE));
  return take(whole.append(code).image());
}

TestMachine machine_for(Random& random, const RandomProgramOptions& options, const TimingParameters& timing) {
  TestMachine machine(build(random, options), timing);
  machine.begin.arguments = {1, 0x80000000u, 77, 0xffffffffu};
  machine.begin.hpu = 3;
  machine.begin.vhpu = 17;
  machine.begin.hpu_count = 32;
  for (size_t i = 0; i < machine.stack.size(); ++i) machine.stack[i] = static_cast<uint8_t>(i * 37);
  for (size_t i = 0; i < machine.shared.size(); ++i) machine.shared[i] = static_cast<uint8_t>(i * 91);
  machine.answer = [](const auto& words, uint64_t cycle) {
    // Some calls block for a while; most are answered at once.
    const uint32_t value = answer_of(words);
    return std::pair<uint32_t, uint64_t>(value, cycle + (value % 4 == 0 ? value % 700 : 0));
  };
  return machine;
}

TEST(RandomProgram, AgreesWithAPlainInterpreter) {
  const uint64_t first = test_seed(1);
  const uint64_t count = std::getenv("SPINLOOM_TEST_SEED") != nullptr ? 1 : 300;
  uint64_t instructions = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(replay("RandomProgram.AgreesWithAPlainInterpreter", seed));
    for (const TimingParameters& timing : every_model) {
      Random random(seed, "program");
      TestMachine machine = machine_for(random, {}, timing);
      PlainMachine plain(machine);
      ASSERT_NO_FATAL_FAILURE(plain.run());
      const Stop stop = machine.run(100);
      ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
      for (unsigned i = 0; i < 32; ++i) ASSERT_EQ(machine.core.register_value(i), plain.x[i]) << "x" << i;
      ASSERT_EQ(machine.stack, plain.stack);
      ASSERT_EQ(machine.shared, plain.shared);
      ASSERT_EQ(machine.core.counters().instructions, plain.instructions);
      instructions += plain.instructions;
    }
  }
  EXPECT_GT(instructions, 200 * count);  // the programs really ran
}

TEST(RandomProgram, QuantaAreInvisible) {
  const uint64_t first = test_seed(1);
  const uint64_t count = std::getenv("SPINLOOM_TEST_SEED") != nullptr ? 1 : 150;
  uint64_t quanta = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(replay("RandomProgram.QuantaAreInvisible", seed));
    for (const TimingParameters& timing : every_model) {
      RandomProgramOptions options;
      options.reads_cycle = true;
      options.floating = has_float(timing) && seed % 2 == 0;
      Random random(seed, "quanta");
      TestMachine whole = machine_for(random, options, timing);
      ASSERT_EQ(whole.run().kind, StopKind::returned);
      for (const uint64_t quantum : {1, 64, 256, 1024}) {
        Random again(seed, "quanta");
        TestMachine cut = machine_for(again, options, timing);
        ASSERT_EQ(cut.run(quantum).kind, StopKind::returned);
        quanta += cut.quanta;
        ASSERT_EQ(cut.events, whole.events) << "quantum " << quantum;
        ASSERT_EQ(cut.core.counters(), whole.core.counters()) << "quantum " << quantum;
        ASSERT_EQ(cut.stack, whole.stack);
        ASSERT_EQ(cut.shared, whole.shared);
        for (unsigned i = 0; i < 32; ++i)
          ASSERT_EQ(cut.core.register_value(i), whole.core.register_value(i)) << "x" << i;
        for (unsigned i = 0; i < 32; ++i) ASSERT_EQ(cut.core.float_value(i), whole.core.float_value(i)) << "f" << i;
      }
    }
  }
  EXPECT_GT(quanta, count);  // slices were really cut
}

TEST(RandomProgram, StallsAndRetirementsAccountForEveryCycle) {
  const uint64_t seed = test_seed(5);
  SCOPED_TRACE(replay("RandomProgram.StallsAndRetirementsAccountForEveryCycle", seed));
  Random random(seed, "account");
  TestMachine machine = machine_for(random, {.length = 200, .rounds = 50}, A15Parameters{});
  ASSERT_EQ(machine.run().kind, StopKind::returned);
  const Counters c = machine.core.counters();
  const uint64_t stalls =
      c.stall_front_end + c.stall_operand + c.stall_unit + c.stall_window + c.stall_device + c.stall_latency;
  // cycles = cycles with a retirement + stalls, and 1 to 8 instructions retire in one of the former.
  ASSERT_LT(stalls, c.cycles);
  EXPECT_LE(c.cycles - stalls, c.instructions);
  EXPECT_GE((c.cycles - stalls) * A15Parameters{}.retire_width, c.instructions);
  EXPECT_GT(c.stall_front_end, 0u);
  EXPECT_GT(c.stall_operand, 0u);
  EXPECT_GT(c.stall_device, 0u);
}

}  // namespace
}  // namespace spinloom::hpu
