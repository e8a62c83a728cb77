// Floating point on the core: NaN boxes, fcsr, moves, memory, registers at the start, cores without it, disassembly.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "nic/hpu/disassemble.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;
using as::Assembler;

constexpr uint64_t box = 0xffffffff00000000u;
constexpr uint64_t one_single = box | 0x3f800000;

// format 0 is S, 1 is D; rounding 7 is dynamic.
uint32_t fadd(uint32_t format, uint32_t rounding, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return as::float_operation(format, rounding, rd, rs1, rs2);
}
uint32_t csrrw(uint32_t rd, uint32_t csr, uint32_t rs1) {
  return as::i_type(1, 0x73, rd, rs1, static_cast<int32_t>(csr));
}
uint32_t csrrs(uint32_t rd, uint32_t csr, uint32_t rs1) {
  return as::i_type(2, 0x73, rd, rs1, static_cast<int32_t>(csr));
}

// a1 points to private memory with these words.
TestMachine machine_with(Assembler code, std::initializer_list<uint64_t> words,
                         const TimingParameters& timing = FunctionalParameters{}) {
  TestMachine machine(take(code(as::ret()).image()), timing);
  size_t at = 0;
  for (const uint64_t word : words) {
    std::memcpy(machine.stack.data() + at, &word, sizeof word);
    at += sizeof word;
  }
  machine.begin.arguments = {0, SPL_HPU_STACK_BASE, 0, SPL_HPU_STATE_BASE};
  return machine;
}

uint64_t word_at(const TestMachine& machine, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, machine.stack.data() + offset, sizeof word);
  return word;
}

TEST(Float, LoadsPutSinglesInBoxesAndStoresTakeTheLowerHalf) {
  for (const TimingParameters& timing : every_model) {
    if (!has_float(timing)) continue;
    Assembler code;
    code(as::fld(1, as::a1, 0))(as::flw(2, as::a1, 4))(as::fsd(2, as::a1, 8))(as::fsw(1, as::a1, 16))(
        as::fsd(1, as::a1, 28));
    TestMachine machine = machine_with(code, {0x1122334455667788u, 0, 0, 0, 0}, timing);
    const Stop stop = machine.run();
    ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
    EXPECT_EQ(machine.core.float_value(1), 0x1122334455667788u);
    EXPECT_EQ(machine.core.float_value(2), box | 0x11223344u);
    EXPECT_EQ(word_at(machine, 8), box | 0x11223344u);
    EXPECT_EQ(word_at(machine, 16), 0x55667788u);
    EXPECT_EQ(word_at(machine, 28), 0x1122334455667788u);
    EXPECT_EQ(machine.core.counters().loads, 2u);
    EXPECT_EQ(machine.core.counters().stores, 3u);
  }
}

TEST(Float, ASingleWithoutABoxIsTheCanonicalNan) {
  // A double 1.0 is no boxed single: fadd.s and fsgnj.s give the canonical NaN; fmv.x.w takes the lower half.
  const uint64_t one_double = std::bit_cast<uint64_t>(1.0);
  Assembler code;
  code(as::fld(1, as::a1, 0))(as::flw(2, as::a1, 8))(fadd(0, 7, 3, 1, 2));
  code(as::float_operation(0x10, 0, 4, 1, 1));         // fsgnj.s f4, f1, f1
  code(as::float_operation(0x70, 0, as::a0, 1, 0));    // fmv.x.w a0, f1
  TestMachine machine = machine_with(code, {one_double | 0x1234, one_single});
  EXPECT_EQ(machine.run().value, 0x1234u);
  EXPECT_EQ(machine.core.float_value(3), box | 0x7fc00000u);
  EXPECT_EQ(machine.core.float_value(4), box | 0x7fc00000u);
  EXPECT_EQ(machine.core.float_status(), 0u);
}

TEST(Float, TheModeInFrmRoundsAndFlagsAccrue) {
  // 1 + 2^-24 (a tie): down gives 1, up 1 + 2^-23; inexact both times. A static mode overrides frm.
  const uint64_t half_ulp = box | 0x33800000;
  Assembler code;
  code(as::flw(1, as::a1, 0))(as::flw(2, as::a1, 8))(as::addi(as::t0, as::zero, 3))(csrrw(as::zero, 2, as::t0));
  code(fadd(0, 7, 3, 1, 2))(fadd(0, 2, 4, 1, 2))(fadd(0, 4, 5, 1, 2))(fadd(0, 0, 6, 1, 2));
  code(csrrs(as::a0, 1, as::zero))(csrrs(as::a2, 3, as::zero));
  TestMachine machine = machine_with(code, {one_single, half_ulp});
  EXPECT_EQ(machine.run().value, 1u);
  EXPECT_EQ(machine.core.float_value(3), one_single + 1);
  EXPECT_EQ(machine.core.float_value(4), one_single);
  EXPECT_EQ(machine.core.float_value(5), one_single + 1);
  EXPECT_EQ(machine.core.float_value(6), one_single);
  EXPECT_EQ(machine.core.register_value(as::a2), 3u << 5 | 1);
}

TEST(Float, FcsrAndItsPartsReadAndWriteTheirBitsOnly) {
  Assembler code;
  code(as::addi(as::t0, as::zero, -1))(csrrw(as::a0, 3, as::t0))(csrrs(as::a2, 3, as::zero));  // 0 -> 0xff
  code(as::i_type(7, 0x73, as::a4, 9, 1));   // csrrci a4, fflags, 9: 31 -> 22
  code(as::i_type(5, 0x73, as::a5, 2, 2));   // csrrwi a5, frm, 2: 7 -> 2
  code(as::i_type(6, 0x73, as::a6, 1, 1));   // csrrsi a6, fflags, 1: 22 -> 23
  TestMachine machine = machine_with(code, {});
  EXPECT_EQ(machine.run().value, 0u);
  EXPECT_EQ(machine.core.register_value(as::a2), 0xffu);
  EXPECT_EQ(machine.core.register_value(as::a4), 31u);
  EXPECT_EQ(machine.core.register_value(as::a5), 7u);
  EXPECT_EQ(machine.core.register_value(as::a6), 22u);
  EXPECT_EQ(machine.core.float_status(), 2u << 5 | 23);
}

TEST(Float, AReservedModeInFrmTrapsWhereItIsAskedFor) {
  for (const uint32_t mode : {5u, 6u, 7u}) {
    Assembler code;
    code(as::i_type(5, 0x73, as::zero, mode, 2));  // csrrwi zero, frm, mode
    code(fadd(1, 1, 2, 3, 4));                     // its own mode: legal
    code(as::float_operation(0x11, 0, 2, 3, 4));      // fsgnj.d does not round
    code(fadd(1, 7, 2, 3, 4));
    TestMachine machine = machine_with(code, {});
    const Stop stop = machine.run();
    ASSERT_EQ(stop.kind, StopKind::fault);
    EXPECT_EQ(stop.fault.kind, FaultKind::illegal_instruction);
    EXPECT_EQ(stop.fault.pc, SPL_HPU_IMAGE_BASE + 12);
    EXPECT_EQ(stop.fault.address, fadd(1, 7, 2, 3, 4));
  }
}

TEST(Float, HandlersStartWithZerosAndRoundToNearest) {
  Assembler code;
  code(csrrs(as::a2, 3, as::zero))(as::fsd(1, as::a1, 8))(as::fld(1, as::a1, 0));
  code(as::addi(as::t0, as::zero, 0x6f))(csrrw(as::zero, 3, as::t0));
  TestMachine machine = machine_with(code, {one_single, ~uint64_t{0}});
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(machine.run().kind, StopKind::returned);
    EXPECT_EQ(machine.core.register_value(as::a2), 0u);
    EXPECT_EQ(word_at(machine, 8), 0u);
    EXPECT_EQ(machine.core.float_value(1), one_single);
    EXPECT_EQ(machine.core.float_status(), 0x6fu);
  }
}

TEST(Float, AccessesFaultLikeOthers) {
  TestMachine load = machine_with(Assembler()(as::fld(1, as::a0, 0)), {});
  EXPECT_EQ(load.run().fault.kind, FaultKind::load_violation);
  TestMachine edge = machine_with(Assembler()(as::fld(1, as::a1, 0)), {});
  edge.begin.arguments[1] = SPL_HPU_STACK_BASE + TestMachine::stack_bytes - 4;
  EXPECT_EQ(edge.run().fault.kind, FaultKind::load_violation);
  TestMachine store = machine_with(Assembler()(as::fsd(1, as::a1, 0)), {});
  store.begin.arguments[1] = SPL_HPU_PACKET_BASE;
  EXPECT_EQ(store.run().fault.kind, FaultKind::store_violation);
  TestMachine window = machine_with(Assembler()(as::fsw(1, as::a1, 0)), {});
  window.begin.arguments[1] = SPL_HPU_COMMAND_BASE;
  EXPECT_EQ(window.run().fault.kind, FaultKind::device_violation);
}

TEST(Float, SharedMemoryEndsASlice) {
  for (const TimingParameters& timing : every_model) {
    if (!has_float(timing)) continue;
    TestMachine machine = machine_with(Assembler()(as::fld(1, as::a3, 0))(as::fsd(1, as::a3, 8)), {}, timing);
    machine.shared[0] = 7;
    ASSERT_EQ(machine.run().kind, StopKind::returned);
    EXPECT_EQ(machine.shared[8], 7);
    ASSERT_EQ(machine.events.size(), 3u);
    EXPECT_EQ(machine.events[0].kind, StopKind::shared);
    EXPECT_EQ(machine.events[1].kind, StopKind::shared);
  }
}

TEST(Float, PulpCoresHaveNone) {
  for (const uint32_t word :
       {fadd(0, 0, 1, 2, 3), as::fld(1, as::a1, 0), as::fsw(1, as::a1, 0), csrrs(as::a0, 3, as::zero)}) {
    TestMachine machine = machine_with(Assembler()(word), {}, PulpParameters{});
    const Stop stop = machine.run();
    ASSERT_EQ(stop.kind, StopKind::fault);
    EXPECT_EQ(stop.fault.kind, FaultKind::illegal_instruction);
    EXPECT_EQ(stop.fault.address, word);
  }
}

struct Line {
  uint32_t word;
  const char* text;
};

TEST(Float, DisassemblesAsAssemblersWrite) {
  const Line lines[] = {
      {fadd(1, 7, 10, 11, 12), "fadd.d fa0, fa1, fa2"},
      {fadd(0, 1, 0, 8, 31), "fadd.s ft0, fs0, ft11, rtz"},
      {as::fld(10, as::a1, 8), "fld fa0, 8(a1)"},
      {as::fsw(9, as::sp, -4), "fsw fs1, -4(sp)"},
      {as::r_type(2u << 2 | 1, 7, 0x43, 10, 0, 1), "fmadd.d fa0, ft0, ft1, ft2"},
      {as::float_operation(0x2d, 7, 10, 11, 0), "fsqrt.d fa0, fa1"},
      {as::float_operation(0x61, 1, as::a0, 10, 1), "fcvt.wu.d a0, fa0, rtz"},
      {as::float_operation(0x68, 7, 10, as::a0, 0), "fcvt.s.w fa0, a0"},
      {as::float_operation(0x21, 0, 10, 11, 0), "fcvt.d.s fa0, fa1"},
      {as::float_operation(0x70, 0, as::a0, 10, 0), "fmv.x.w a0, fa0"},
      {as::float_operation(0x71, 1, as::a0, 10, 0), "fclass.d a0, fa0"},
      {csrrs(as::a0, 1, as::zero), "csrrs a0, fflags, zero"},
      {as::i_type(5, 0x73, 0, 3, 2), "csrrwi zero, frm, 3"},
  };
  for (const Line& line : lines) EXPECT_EQ(disassemble(decode(line.word, 0), 0), line.text);
}

}  // namespace
}  // namespace spinloom::hpu
