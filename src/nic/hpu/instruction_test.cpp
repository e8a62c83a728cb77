// Every instruction alone: hand-encoded words, operands, and the result that the ISA manual gives.
#include <gtest/gtest.h>

#include <cstring>

#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;
using as::Assembler;

struct OneResult {
  const char* name;
  uint32_t word;  // rd = a0 (x10), rs1 = a1 (x11), rs2 = a2 (x12)
  uint32_t a;
  uint32_t b;
  uint32_t expected;
};

constexpr uint32_t minimum = 0x80000000u;
constexpr uint32_t minus_one = 0xffffffffu;

// The words are written in hex, so that the test does not rely on the encoders of assembler.hpp.
const OneResult one_result[] = {
    {"lui a0,0x12345", 0x12345537, 0, 0, 0x12345000},
    {"auipc a0,0x1", 0x00001517, 0, 0, SPL_HPU_IMAGE_BASE + 0x1000},
    {"addi a0,a1,-1", 0xfff58513, 0, 0, minus_one},
    {"addi a0,a1,2047", 0x7ff58513, 1, 0, 2048},
    {"slti a0,a1,0", 0x0005a513, minus_one, 0, 1},
    {"slti a0,a1,-5", 0xffb5a513, 0, 0, 0},
    {"sltiu a0,a1,-1", 0xfff5b513, 5, 0, 1},
    {"sltiu a0,a1,1", 0x0015b513, 1, 0, 0},
    {"xori a0,a1,-1", 0xfff5c513, 0x0f0f0f0f, 0, 0xf0f0f0f0},
    {"ori a0,a1,0x0f", 0x00f5e513, 0xf0, 0, 0xff},
    {"andi a0,a1,0x0f", 0x00f5f513, 0x1234, 0, 4},
    {"slli a0,a1,31", 0x01f59513, 3, 0, minimum},
    {"srli a0,a1,4", 0x0045d513, minimum, 0, 0x08000000},
    {"srai a0,a1,4", 0x4045d513, minimum, 0, 0xf8000000},
    {"add a0,a1,a2", 0x00c58533, minus_one, 2, 1},
    {"sub a0,a1,a2", 0x40c58533, 1, 2, minus_one},
    {"sll a0,a1,a2", 0x00c59533, 1, 33, 2},
    {"slt a0,a1,a2", 0x00c5a533, minimum, 0, 1},
    {"sltu a0,a1,a2", 0x00c5b533, minimum, 0, 0},
    {"xor a0,a1,a2", 0x00c5c533, 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0},
    {"srl a0,a1,a2", 0x00c5d533, minimum, 63, 1},
    {"sra a0,a1,a2", 0x40c5d533, minimum, 31, minus_one},
    {"or a0,a1,a2", 0x00c5e533, 0xf0, 0x0f, 0xff},
    {"and a0,a1,a2", 0x00c5f533, 0xf3, 0x3f, 0x33},
    {"mul a0,a1,a2", 0x02c58533, 0x10001, 0x10001, 0x00020001},
    {"mulh a0,a1,a2", 0x02c59533, minus_one, minus_one, 0},
    {"mulh a0,a1,a2 (min*min)", 0x02c59533, minimum, minimum, 0x40000000},
    {"mulhsu a0,a1,a2", 0x02c5a533, minus_one, minus_one, minus_one},
    {"mulhsu a0,a1,a2 (min*max)", 0x02c5a533, minimum, minus_one, minimum},
    {"mulhu a0,a1,a2", 0x02c5b533, minus_one, minus_one, 0xfffffffe},
    {"div a0,a1,a2", 0x02c5c533, static_cast<uint32_t>(-7), 2, static_cast<uint32_t>(-3)},
    {"div by zero", 0x02c5c533, 7, 0, minus_one},
    {"div overflow", 0x02c5c533, minimum, minus_one, minimum},
    {"divu a0,a1,a2", 0x02c5d533, minimum, 3, 0x2aaaaaaa},
    {"divu by zero", 0x02c5d533, 7, 0, minus_one},
    {"rem a0,a1,a2", 0x02c5e533, static_cast<uint32_t>(-7), 2, minus_one},
    {"rem by zero", 0x02c5e533, static_cast<uint32_t>(-7), 0, static_cast<uint32_t>(-7)},
    {"rem overflow", 0x02c5e533, minimum, minus_one, 0},
    {"remu a0,a1,a2", 0x02c5f533, minus_one, 10, 5},
    {"remu by zero", 0x02c5f533, 9, 0, 9},
    {"fence", 0x0ff0000f, 0, 0, 0},
    {"fence.i", 0x0000100f, 0, 0, 0},
};

TEST(Instruction, RegisterResults) {
  for (const TimingParameters& timing : every_model) {
    for (const OneResult& test : one_result) {
      TestMachine machine(take(Assembler()(test.word)(as::ret()).image()), timing);
      machine.begin.arguments = {0, test.a, test.b, 0};
      const Stop stop = machine.run();
      ASSERT_EQ(stop.kind, StopKind::returned) << test.name << ": " << stop.fault.describe();
      EXPECT_EQ(stop.value, test.expected) << test.name;
      EXPECT_EQ(machine.core.counters().instructions, 2u) << test.name;
    }
  }
}

TEST(Instruction, RegisterZeroStaysZero) {
  TestMachine machine(take(
      Assembler()(as::addi(as::zero, as::a1, 5))(as::lw(as::zero, as::sp, -4))(as::addi(as::a0, as::zero, 0))(as::ret())
          .image()));
  machine.begin.arguments = {77, 1, 0, 0};
  EXPECT_EQ(machine.run().value, 0u);
}

struct BranchCase {
  const char* name;
  uint32_t word;  // b.. a1,a2,+8
  uint32_t a;
  uint32_t b;
  bool taken;
};

const BranchCase branch_cases[] = {
    {"beq", 0x00c58463, 3, 3, true},          {"beq", 0x00c58463, 3, 4, false},
    {"bne", 0x00c59463, 3, 4, true},          {"bne", 0x00c59463, 3, 3, false},
    {"blt", 0x00c5c463, minus_one, 0, true},  {"blt", 0x00c5c463, 0, minus_one, false},
    {"bge", 0x00c5d463, 0, minus_one, true},  {"bge", 0x00c5d463, minus_one, 0, false},
    {"bltu", 0x00c5e463, 0, minus_one, true}, {"bltu", 0x00c5e463, minus_one, 0, false},
    {"bgeu", 0x00c5f463, minus_one, 0, true}, {"bgeu", 0x00c5f463, 0, minus_one, false},
};

TEST(Instruction, Branches) {
  for (const TimingParameters& timing : every_model) {
    for (const BranchCase& test : branch_cases) {
      // A taken branch skips the instruction that sets a0 to 1.
      TestMachine machine(take(Assembler()(test.word)(as::addi(as::a0, as::zero, 1))(as::ret()).image()), timing);
      machine.begin.arguments = {0, test.a, test.b, 0};
      EXPECT_EQ(machine.run().value, test.taken ? 0u : 1u) << test.name << " " << test.a << "," << test.b;
      EXPECT_EQ(machine.core.counters().branches, 1u);
    }
  }
}

TEST(Instruction, JumpsLinkTheNextInstruction) {
  // jal a0,+8 over an ebreak; auipc a1,0 at 8; jalr a1,16(a1) over an ebreak at 20..; sub a0,a1,a0
  Assembler code;
  code(0x0080056f)(0x00100073)(as::auipc(as::a1, 0))(as::jalr(as::a1, as::a1, 12))(0x00100073);
  code(as::sub(as::a0, as::a1, as::a0))(as::ret());
  TestMachine machine(take(code.image()));
  const Stop stop = machine.run();
  ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
  EXPECT_EQ(stop.value, 12u);  // 16 - 4
}

struct MemoryCase {
  const char* name;
  uint32_t word;      // loads: a0 from 4(a1); stores: a2 to 4(a1)
  uint32_t expected;  // loads: a0; stores: the word at 4(a1) afterwards
};

TEST(Instruction, Loads) {
  const MemoryCase cases[] = {{"lb", 0x00458503, 0xffffff80},
                              {"lh", 0x00459503, 0xffff9180},
                              {"lw", 0x0045a503, 0xb3a29180},
                              {"lbu", 0x0045c503, 0x80},
                              {"lhu", 0x0045d503, 0x9180}};
  for (const MemoryCase& test : cases) {
    TestMachine machine(take(Assembler()(test.word)(as::ret()).image()));
    machine.begin.arguments = {0, SPL_HPU_STACK_BASE + 3, 0, 0};  // misaligned on purpose
    const uint8_t bytes[] = {0x80, 0x91, 0xa2, 0xb3};
    std::copy(std::begin(bytes), std::end(bytes), machine.stack.begin() + 7);
    EXPECT_EQ(machine.run().value, test.expected) << test.name;
  }
}

TEST(Instruction, Stores) {
  const MemoryCase cases[] = {
      {"sb", 0x00c58223, 0x111111d4}, {"sh", 0x00c59223, 0x1111c3d4}, {"sw", 0x00c5a223, 0xa1b2c3d4}};
  for (const MemoryCase& test : cases) {
    TestMachine machine(take(Assembler()(test.word)(as::ret()).image()));
    machine.begin.arguments = {0, SPL_HPU_STACK_BASE, 0xa1b2c3d4, 0};
    std::fill(machine.stack.begin(), machine.stack.end(), uint8_t{0x11});
    ASSERT_EQ(machine.run().kind, StopKind::returned);
    uint32_t word = 0;
    std::memcpy(&word, machine.stack.data() + 4, 4);
    EXPECT_EQ(word, test.expected) << test.name;
    EXPECT_EQ(machine.stack[3], 0x11);
    EXPECT_EQ(machine.stack[8], 0x11);
  }
}

struct AtomicCase {
  const char* name;
  uint32_t word;  // amo.w a0,a2,(a1)
  uint32_t memory;
  uint32_t operand;
  uint32_t after;
};

TEST(Instruction, Atomics) {
  const AtomicCase cases[] = {
      {"amoswap.w", 0x08c5a52f, 5, 7, 7},
      {"amoadd.w", 0x00c5a52f, minus_one, 2, 1},
      {"amoxor.w", 0x20c5a52f, 0xff, 0x0f, 0xf0},
      {"amoand.w", 0x60c5a52f, 0xff, 0x0f, 0x0f},
      {"amoor.w", 0x40c5a52f, 0xf0, 0x0f, 0xff},
      {"amomin.w", 0x80c5a52f, minus_one, 1, minus_one},
      {"amomax.w", 0xa0c5a52f, minus_one, 1, 1},
      {"amominu.w", 0xc0c5a52f, minus_one, 1, 1},
      {"amomaxu.w", 0xe0c5a52f, minus_one, 1, minus_one},
      {"amoadd.w.aqrl", 0x06c5a52f, 3, 4, 7},
  };
  for (const TimingParameters& timing : every_model) {
    for (const AtomicCase& test : cases) {
      TestMachine machine(take(Assembler()(test.word)(as::ret()).image()), timing);
      machine.begin.arguments = {0, SPL_HPU_STATE_BASE + 8, test.operand, 0};
      std::memcpy(machine.shared.data() + 8, &test.memory, 4);
      const Stop stop = machine.run();
      ASSERT_EQ(stop.kind, StopKind::returned) << test.name;
      EXPECT_EQ(stop.value, test.memory) << test.name;
      uint32_t after = 0;
      std::memcpy(&after, machine.shared.data() + 8, 4);
      EXPECT_EQ(after, test.after) << test.name;
      EXPECT_EQ(machine.events.front().kind, StopKind::shared) << test.name;
    }
  }
}

TEST(Instruction, StoreConditionalNeedsItsReservation) {
  // lr a0; sc a3,a2 -> 0 (kept); sc a4,a2 -> 1 (used up); a0 = a3 + 2 a4
  const uint32_t lr = 0x1005a52f;
  const uint32_t sc_a3 = 0x18c5a6af;
  const uint32_t sc_a4 = 0x18c5a72f;
  Assembler code;
  code(lr)(sc_a3)(sc_a4)(as::add(as::a4, as::a4, as::a4))(as::add(as::a0, as::a3, as::a4))(as::ret());
  TestMachine machine(take(code.image()));
  machine.begin.arguments = {0, SPL_HPU_STATE_BASE, 0x1234, 99};
  EXPECT_EQ(machine.run().value, 2u);
  EXPECT_EQ(machine.shared[0], 0x34);
  EXPECT_EQ(machine.core.counters().atomics, 3u);
}

TEST(Instruction, ReservationBreaksWhenAnotherCoreWrites) {
  Assembler code;
  code(0x1005a52f)(0x18c5a6af)(as::addi(as::a0, as::a3, 0))(as::ret());
  TestMachine machine(take(code.image()));
  machine.begin.arguments = {0, SPL_HPU_STATE_BASE, 0x1234, 0};
  machine.begin.image = &machine.image;
  machine.begin.memory = &machine.memory;
  machine.core.start(machine.begin);
  ASSERT_EQ(machine.core.run(1000).kind, StopKind::shared);  // the stop before lr
  ASSERT_EQ(machine.core.run(1000).kind, StopKind::shared);  // the stop before sc
  machine.shared[0] = 9;
  const Stop stop = machine.core.run(1000);
  ASSERT_EQ(stop.kind, StopKind::returned);
  EXPECT_EQ(stop.value, 1u);
  EXPECT_EQ(machine.shared[0], 9);
}

TEST(Instruction, ReservationEndsWithItsHandler) {
  // The first handler only takes a reservation; sc at +8, the second handler's start, must fail.
  Assembler code;
  code(0x1005a52f)(as::ret())(0x18c5a52f)(as::ret());
  TestMachine machine(take(code.image()));
  machine.begin.arguments = {0, SPL_HPU_STATE_BASE, 0x1234, 0};
  ASSERT_EQ(machine.run().kind, StopKind::returned);
  machine.begin.pc += 8;
  EXPECT_EQ(machine.run().value, 1u);
  EXPECT_EQ(machine.shared[0], 0);
}

TEST(Instruction, CountersRead) {
  // two nops, then rdcycle a0, rdinstret a1, rdtime a2, rdcycleh a3
  Assembler code;
  code(as::nop())(as::nop())(0xc0002573)(0xc02025f3)(0xc0102673)(0xc80026f3)(as::ret());
  TestMachine machine(take(code.image()));
  EXPECT_EQ(machine.run().value, 2u);
  EXPECT_EQ(machine.core.register_value(11), 3u);
  EXPECT_EQ(machine.core.register_value(12), 4u);
  EXPECT_EQ(machine.core.register_value(13), 0u);
}

struct FaultCase {
  const char* name;
  uint32_t word;
  uint32_t a1;
  FaultKind kind;
  uint32_t address;
};

TEST(Instruction, Faults) {
  const uint32_t stack_end = SPL_HPU_STACK_BASE + TestMachine::stack_bytes;
  const FaultCase cases[] = {
      {"all zeros", 0x00000000, 0, FaultKind::illegal_instruction, 0},
      {"all ones", 0xffffffff, 0, FaultKind::illegal_instruction, 0xffffffff},
      {"slli with shift 32", 0x02059513, 0, FaultKind::illegal_instruction, 0x02059513},
      {"csrrw cycle", 0xc0059573, 0, FaultKind::illegal_instruction, 0xc0059573},
      {"csrrs cycle with a source", 0xc005a573, 0, FaultKind::illegal_instruction, 0xc005a573},
      {"csrrs mstatus", 0x30002573, 0, FaultKind::illegal_instruction, 0x30002573},
      {"fadd.s with a reserved rounding mode", 0x00c5d553, 0, FaultKind::illegal_instruction, 0x00c5d553},
      {"fadd.q", 0x06c58553, 0, FaultKind::illegal_instruction, 0x06c58553},
      {"fadd.h", 0x04c58553, 0, FaultKind::illegal_instruction, 0x04c58553},
      {"flh", 0x00059507, 0, FaultKind::illegal_instruction, 0x00059507},
      {"fsqrt.d with a second source", 0x5a158553, 0, FaultKind::illegal_instruction, 0x5a158553},
      {"fmv.x.d", 0xe2058553, 0, FaultKind::illegal_instruction, 0xe2058553},
      {"fcvt.l.d", 0xc2258553, 0, FaultKind::illegal_instruction, 0xc2258553},
      {"csrrw of no float register", 0x00459573, 0, FaultKind::illegal_instruction, 0x00459573},
      {"lr with a source", 0x1015a52f, 0, FaultKind::illegal_instruction, 0x1015a52f},
      {"ecall", 0x00000073, 0, FaultKind::environment_call, SPL_HPU_IMAGE_BASE},
      {"ebreak", 0x00100073, 0, FaultKind::environment_call, SPL_HPU_IMAGE_BASE},
      {"lw null", 0x0005a503, 0, FaultKind::load_violation, 0},
      {"lw across the end", 0x0005a503, stack_end - 3, FaultKind::load_violation, stack_end - 3},
      {"lw before the region", 0x0005a503, SPL_HPU_STACK_BASE - 1, FaultKind::load_violation, SPL_HPU_STACK_BASE - 1},
      {"lw at the top", 0x0005a503, minus_one, FaultKind::load_violation, minus_one},
      {"sw across the end", 0x00c5a023, stack_end - 3, FaultKind::store_violation, stack_end - 3},
      {"sw to the packet", 0x00c5a023, SPL_HPU_PACKET_BASE, FaultKind::store_violation, SPL_HPU_PACKET_BASE},
      {"sw to the image", 0x00c5a023, SPL_HPU_IMAGE_BASE, FaultKind::store_violation, SPL_HPU_IMAGE_BASE},
      {"sw to constants", 0x00c5a023, SPL_HPU_CONST_BASE, FaultKind::store_violation, SPL_HPU_CONST_BASE},
      {"amoadd to the packet", 0x00c5a52f, SPL_HPU_PACKET_BASE, FaultKind::store_violation, SPL_HPU_PACKET_BASE},
      {"amoadd to the device", 0x00c5a52f, SPL_HPU_COMMAND_BASE, FaultKind::device_violation, SPL_HPU_COMMAND_BASE},
      {"amoadd misaligned", 0x00c5a52f, SPL_HPU_STATE_BASE + 2, FaultKind::misaligned_atomic, SPL_HPU_STATE_BASE + 2},
      {"lr misaligned", 0x1005a52f, SPL_HPU_STATE_BASE + 1, FaultKind::misaligned_atomic, SPL_HPU_STATE_BASE + 1},
      {"lw of WORD0", 0x0005a503, SPL_HPU_COMMAND_BASE, FaultKind::device_violation, SPL_HPU_COMMAND_BASE},
      {"lb of ISSUE", 0x00058503, SPL_HPU_COMMAND_BASE + SPL_CMD_ISSUE, FaultKind::device_violation,
       SPL_HPU_COMMAND_BASE + SPL_CMD_ISSUE},
      {"sb to WORD0", 0x00c58023, SPL_HPU_COMMAND_BASE, FaultKind::device_violation, SPL_HPU_COMMAND_BASE},
      {"sw to ISSUE", 0x00c5a023, SPL_HPU_COMMAND_BASE + SPL_CMD_ISSUE, FaultKind::device_violation,
       SPL_HPU_COMMAND_BASE + SPL_CMD_ISSUE},
      {"sw between words", 0x00c5a023, SPL_HPU_COMMAND_BASE + 2, FaultKind::device_violation, SPL_HPU_COMMAND_BASE + 2},
      {"lw after the window", 0x0005a503, SPL_HPU_COMMAND_BASE + SPL_CMD_WINDOW_BYTES, FaultKind::device_violation,
       SPL_HPU_COMMAND_BASE + SPL_CMD_WINDOW_BYTES},
      {"jump to data", 0x00058567, SPL_HPU_STACK_BASE, FaultKind::fetch_violation, SPL_HPU_STACK_BASE},
      {"branch before the image", 0xfe058ee3, 0, FaultKind::fetch_violation, SPL_HPU_IMAGE_BASE - 4},
      {"fall off the end", 0x00000013, 0, FaultKind::fetch_violation, SPL_HPU_IMAGE_BASE + 4},
  };
  for (const TimingParameters& timing : every_model) {
    for (const FaultCase& test : cases) {
      TestMachine machine(take(Assembler()(test.word).image()), timing);
      machine.begin.arguments = {0, test.a1, 0, 0};
      const Stop stop = machine.run();
      ASSERT_EQ(stop.kind, StopKind::fault) << test.name;
      EXPECT_EQ(name_of(stop.fault.kind), name_of(test.kind)) << test.name << ": " << stop.fault.describe();
      EXPECT_EQ(stop.fault.address, test.address) << test.name;
      EXPECT_FALSE(machine.core.busy());
    }
  }
}

TEST(Instruction, BadStartAddressesFault) {
  TestMachine machine(take(Assembler()(as::ret()).image()));
  machine.begin.pc = SPL_HPU_IMAGE_BASE + 1;
  EXPECT_EQ(machine.run().fault.kind, FaultKind::misaligned_fetch);
  machine.begin.pc = SPL_HPU_STACK_BASE;
  EXPECT_EQ(machine.run().fault.kind, FaultKind::fetch_violation);
  machine.begin.pc = SPL_HPU_IMAGE_BASE;
  EXPECT_EQ(machine.run().kind, StopKind::returned);
}

TEST(Instruction, DataSegmentsCannotBeExecuted) {
  Segment text{SPL_HPU_IMAGE_BASE, {0x67, 0x80, 0x05, 0x00}, true};  // jalr x0,0(a1)
  Segment data{SPL_HPU_IMAGE_BASE + 4, {0x82, 0x80, 0x82, 0x80}, false};  // c.jr ra twice, but not code
  const Segment segments[] = {text, data};
  TestMachine machine(take(Image::from_segments(segments, {})));
  machine.begin.arguments = {0, SPL_HPU_IMAGE_BASE + 4, 0, 0};
  const Stop stop = machine.run();
  ASSERT_EQ(stop.kind, StopKind::fault);
  EXPECT_EQ(stop.fault.kind, FaultKind::fetch_violation);
  EXPECT_EQ(stop.fault.pc, SPL_HPU_IMAGE_BASE + 4);
}

}  // namespace
}  // namespace spinloom::hpu
