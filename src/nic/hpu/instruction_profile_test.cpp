// Cycles by instruction, and instructions as text.
#include "nic/hpu/instruction_profile.hpp"

#include <gtest/gtest.h>

#include "nic/hpu/disassemble.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

using assembler::Assembler;
namespace as = assembler;

// Four rounds of a load from the packet, a store to the stack and a branch back.
Image loop() {
  Assembler code;
  code(as::addi(as::t0, as::zero, 4));
  code(as::lui(as::t1, SPL_HPU_PACKET_BASE));
  code(as::lw(as::t2, as::t1, 8));
  code(as::sw(as::t2, as::sp, -16));
  code(as::addi(as::t0, as::t0, -1));
  code(as::bne(as::t0, as::zero, -12));
  code(as::ret());
  return take(code.image());
}

TEST(InstructionProfile, CountsInstructionsAndTheirCyclesAddUp) {
  for (const TimingParameters& timing : every_model) {
    TestMachine machine(loop(), timing);
    InstructionProfile profile(machine.image);
    machine.begin.instructions = &profile;
    const uint64_t cycles = machine.run().cycle;
    uint64_t spent = 0;
    for (const InstructionProfile::Cost& each : profile.costs()) spent += each.cycles;
    EXPECT_EQ(spent, cycles);
    const uint64_t executed[] = {1, 1, 4, 4, 4, 4, 1};
    for (size_t i = 0; i < std::size(executed); ++i) EXPECT_EQ(profile.costs()[2 * i].executed, executed[i]) << i;
    const InstructionProfile::Traffic& packet = profile.traffic()[SPL_HPU_PACKET_BASE >> 28];
    const InstructionProfile::Traffic& stack = profile.traffic()[SPL_HPU_STACK_BASE >> 28];
    EXPECT_EQ(packet.loads, 4u);
    EXPECT_EQ(packet.load_bytes, 16u);
    EXPECT_EQ(packet.stores + stack.loads, 0u);
    EXPECT_EQ(stack.stores, 4u);
    EXPECT_EQ(stack.store_bytes, 16u);
  }
}

TEST(InstructionProfile, LookingChangesNothing) {
  for (const TimingParameters& timing : every_model) {
    TestMachine plain(loop(), timing);
    const uint64_t cycles = plain.run().cycle;
    TestMachine profiled(loop(), timing);
    InstructionProfile profile(profiled.image);
    profiled.begin.instructions = &profile;
    EXPECT_EQ(profiled.run().cycle, cycles);
    EXPECT_EQ(profiled.core.counters(), plain.core.counters());
  }
}

// The words and their text are GNU objdump 2.40's (-M no-aliases), apart from constants, which show their value.
TEST(Disassemble, SaysWhatTheProcessorExecutes) {
  const struct {
    uint32_t raw;
    const char* text;
  } lines[] = {
      {0x00052783, "lw a5, 0(a0)"},        {0xfe812e23, "sw s0, -4(sp)"},
      {0x00b50533, "add a0, a0, a1"},      {0xfff50513, "addi a0, a0, -1"},
      {0x40355513, "srai a0, a0, 3"},      {0x02b50533, "mul a0, a0, a1"},
      {0x00b57463, "bgeu a0, a1, 0x1008"}, {0x008000ef, "jal ra, 0x1008"},
      {0x00008067, "jalr zero, 0(ra)"},    {0x00b6a52f, "amoadd.w a0, a1, (a3)"},
      {0x1005252f, "lr.w a0, (a0)"},       {0x200006b7, "li a3, 0x20000000"},
      {0x00b54533, "xor a0, a0, a1"},      {0xc0002573, "rdcycle a0"},
      {0xc8202573, "rdinstreth a0"},       {0x00000073, "ecall"},
      {0x00000000, "illegal 0x0"},
  };
  for (const auto& line : lines) EXPECT_EQ(disassemble(decode(line.raw, 0x1000), 0x1000), line.text);
  EXPECT_EQ(disassemble(decode(0x4118, 0), 0), "lw a4, 0(a0)") << "c.lw";
}

}  // namespace
}  // namespace spinloom::hpu
