// The a15 model: each test states the algebra of timing_a15.hpp for a small program, then the number. T is the time
// from the handler's start to the retirement of its last instruction (a predicted `ret`).
#include <gtest/gtest.h>

#include <cstring>

#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;
using as::Assembler;

struct Measured {
  uint64_t cycles;
  Counters counters;
};

Assembler repeat(uint32_t word, int count) {
  Assembler code;
  for (int i = 0; i < count; ++i) code(word);
  return code;
}

Measured measure(Assembler code, const A15Parameters& parameters = {}) {
  code(as::ret());
  TestMachine machine(take(code.image()), parameters);
  const uint32_t self = SPL_HPU_STACK_BASE;  // the first word of private memory points to itself
  std::memcpy(machine.stack.data(), &self, 4);
  machine.begin.arguments = {5, self, 3, SPL_HPU_STATE_BASE};
  const Stop stop = machine.run();
  EXPECT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
  return {stop.cycle, machine.core.counters()};
}

TEST(A15, IndependentOperationsAreLimitedByTheUnits) {
  // issue_i = floor(i / alus); T = floor(N / 2) + 1 with the ret as instruction N = 40: 21.
  EXPECT_EQ(measure(repeat(as::addi(as::t0, as::zero, 1), 40)).cycles, 21u);
  // If there are 4 units, the rename width is the limit: T = floor(40 / 3) + 1 = 14.
  A15Parameters wide;
  wide.alus = 4;
  EXPECT_EQ(measure(repeat(as::addi(as::t0, as::zero, 1), 40), wide).cycles, 14u);
}

TEST(A15, DependentOperationsTakeTheirLatencies) {
  // issue_i = complete_{i-1} = issue_{i-1} + L; T = N L. N = 30: 30, multiply 90, divide 360, load-use 90.
  EXPECT_EQ(measure(repeat(as::addi(as::t0, as::t0, 1), 30)).cycles, 30u);
  EXPECT_EQ(measure(repeat(as::mul(as::t0, as::t0, as::a2), 30)).cycles, 90u);
  EXPECT_EQ(measure(repeat(as::div(as::t0, as::t0, as::a2), 30)).cycles, 360u);
  // load: load_cycles + memory_cycles = 2 + 1; a1 points to itself.
  EXPECT_EQ(measure(repeat(as::lw(as::a1, as::a1, 0), 30)).cycles, 90u);
  A15Parameters slow;
  slow.memory_cycles[static_cast<size_t>(LatencyClass::scratchpad)] = 10;
  EXPECT_EQ(measure(repeat(as::lw(as::a1, as::a1, 0), 30), slow).cycles, 360u);
}

TEST(A15, MultipliesArePipelinedDividesAreNot) {
  // T = (N - 1) + 3 for 30 independent multiplies: 32; T = 12 N for independent divides: 360.
  EXPECT_EQ(measure(repeat(as::mul(as::t0, as::a1, as::a2), 30)).cycles, 32u);
  EXPECT_EQ(measure(repeat(as::div(as::t0, as::a1, as::a2), 30)).cycles, 360u);
  // A multiply after a divide waits for the unit: 12 + 3.
  EXPECT_EQ(measure(Assembler()(as::div(as::t0, as::a1, as::a2))(as::mul(as::t1, as::a1, as::a2))).cycles, 15u);
}

// ft0 = ft0 op ft1, or ft2 = ft0 op ft1; `upper` holds operation and format.
constexpr uint32_t chained(uint32_t upper, uint32_t rs2 = 1) { return as::float_operation(upper, 0, 0, 0, rs2); }
constexpr uint32_t independent(uint32_t upper, uint32_t rs2 = 1) { return as::float_operation(upper, 0, 2, 0, rs2); }

TEST(A15, FloatingPointTakesItsLatencies) {
  // T = N L for N = 20 dependent operations: add 5, multiply 4, fused 5, divide 9, root 33, minimum 5, to the other
  // format 5, signs 3; single and double alike.
  for (const uint32_t format : {0u, 1u}) {
    EXPECT_EQ(measure(repeat(chained(0x00 | format), 20)).cycles, 100u);
    EXPECT_EQ(measure(repeat(chained(0x04 | format), 20)).cycles, 100u);
    EXPECT_EQ(measure(repeat(chained(0x08 | format), 20)).cycles, 80u);
    EXPECT_EQ(measure(repeat(as::r_type(1u << 2 | format, 0, 0x43, 0, 0, 1), 20)).cycles, 100u);
    EXPECT_EQ(measure(repeat(chained(0x0c | format), 20)).cycles, 180u);
    EXPECT_EQ(measure(repeat(chained(0x2c | format, 0), 20)).cycles, 660u);
    EXPECT_EQ(measure(repeat(chained(0x14 | format), 20)).cycles, 100u);
    EXPECT_EQ(measure(repeat(chained(0x20 | format, 1 - format), 20)).cycles, 100u);
    EXPECT_EQ(measure(repeat(chained(0x10 | format), 20)).cycles, 60u);
  }
  // The result also waits for the third source: ft0 = ft1 * ft1 + ft0.
  EXPECT_EQ(measure(repeat(as::r_type(0u << 2 | 1, 0, 0x43, 0, 1, 1), 20)).cycles, 100u);
  // An integer is converted to a double and back ten times: fcvt.d.w 5, fcvt.w.d 5.
  Assembler there_and_back;
  for (int i = 0; i < 10; ++i) {
    there_and_back(as::float_operation(0x69, 0, 0, as::t0, 0))(as::float_operation(0x61, 0, as::t0, 0, 0));
  }
  EXPECT_EQ(measure(there_and_back).cycles, 100u);
}

TEST(A15, TwoUnitsForFloatingPoint) {
  // Independent adds: two a cycle, T = (N / 2 - 1) + 5 = 19; with one unit (N - 1) + 5 = 34.
  EXPECT_EQ(measure(repeat(independent(0x01), 30)).cycles, 19u);
  A15Parameters one;
  one.float_units = 1;
  EXPECT_EQ(measure(repeat(independent(0x01), 30), one).cycles, 34u);
  // Divisions hold their units: T = 9 N / 2; roots 33 N / 2.
  EXPECT_EQ(measure(repeat(independent(0x0d), 30)).cycles, 135u);
  EXPECT_EQ(measure(repeat(independent(0x2d, 0), 10)).cycles, 165u);
  // Floating-point operations do not disturb integers: with 20 of each, T is the multiplier's (N - 1) + 3.
  Assembler both;
  for (int i = 0; i < 20; ++i) both(independent(0x01))(as::mul(as::t0, as::a1, as::a2));
  EXPECT_EQ(measure(both).cycles, 22u);
}

TEST(A15, NumbersOfEightBytesAreLoadedStoredAndForwarded) {
  const uint32_t fld = as::fld(1, as::a1, 8);
  const uint32_t fsd = as::fsd(2, as::a1, 8);
  // A floating-point load takes 2 + 1, as the load of a word does; a misaligned load one more.
  EXPECT_EQ(measure(Assembler()(fld)).cycles, 3u);
  EXPECT_EQ(measure(Assembler()(as::fld(1, as::a1, 12))).cycles, 4u);
  // Forwarding from both stored words takes 2 + 3, from a misaligned pair over three words 3 + 4.
  EXPECT_EQ(measure(Assembler()(fsd)(fld)).cycles, 5u);
  EXPECT_EQ(measure(Assembler()(fsd)(as::lw(as::t0, as::a1, 12))).cycles, 5u);
  EXPECT_EQ(measure(Assembler()(as::fsd(2, as::a1, 10))(as::lw(as::t0, as::a1, 12))).cycles, 6u);
  // The store waits for the value: add 5, store 2.
  EXPECT_EQ(measure(Assembler()(independent(0x01))(fsd)).cycles, 7u);
}

TEST(A15, LoadsAndStoresHaveOneUnitEach) {
  // T = (N - 1) + 3 for 30 independent loads: 32; stores (N - 1) + 2: 31; both together do not disturb
  // each other: the last load of 30 issues at 29, T = 32.
  EXPECT_EQ(measure(repeat(as::lw(as::t0, as::a1, 4), 30)).cycles, 32u);
  EXPECT_EQ(measure(repeat(as::sw(as::a0, as::a1, 8), 30)).cycles, 31u);
  Assembler both;
  for (int i = 0; i < 30; ++i) both(as::sw(as::a0, as::a1, 8))(as::lw(as::t0, as::a1, 4));
  EXPECT_EQ(measure(both).cycles, 32u);
}

TEST(A15, StoredDataIsForwarded) {
  // store: issue 0, data at 2; load of the same word: issue 2, complete 2 + 3 = 5. Another word: 3.
  EXPECT_EQ(measure(Assembler()(as::sw(as::a0, as::a1, 8))(as::lw(as::t0, as::a1, 8))).cycles, 5u);
  EXPECT_EQ(measure(Assembler()(as::sw(as::a0, as::a1, 8))(as::lw(as::t0, as::a1, 12))).cycles, 3u);
  // A load of a byte of that word depends on the store, too.
  EXPECT_EQ(measure(Assembler()(as::sw(as::a0, as::a1, 8))(as::i_type(0, 3, as::t0, as::a1, 11))).cycles, 5u);
}

TEST(A15, MisalignedAccessesCostOneMore) {
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a1, 5))).cycles, 4u);
  EXPECT_EQ(measure(Assembler()(as::sw(as::t0, as::a1, 6))).cycles, 3u);
  EXPECT_EQ(measure(Assembler()(as::i_type(1, 3, as::t0, as::a1, 7))).cycles, 4u);   // lh
  EXPECT_EQ(measure(Assembler()(as::i_type(1, 3, as::t0, as::a1, 6))).cycles, 3u);
}

TEST(A15, MispredictedBranchRestartsTheFrontEnd) {
  // A taken branch is mispredicted the first time: resolved at 1, restart at 1 + 7, then the ret completes: T = 9.
  Assembler code;
  code(as::beq(as::zero, as::zero, 8))(0x00100073);
  const Measured taken = measure(code);
  EXPECT_EQ(taken.cycles, 9u);
  EXPECT_EQ(taken.counters.mispredicts, 1u);
  EXPECT_EQ(taken.counters.stall_front_end, 7u);
  // A branch that is not taken is predicted. It issues at 0 together with the ret: T = 1.
  EXPECT_EQ(measure(Assembler()(as::bne(as::zero, as::zero, 8))).cycles, 1u);
}

TEST(A15, LoopPaysForItsExit) {
  // n iterations of (addi, bne), one a cycle. Cold: the first bne (issue 1) is mispredicted, restart 2 + 7 = 9;
  // iteration k >= 1 has addi at 9 + k - 1, bne at 9 + k; the last completes at 9 + n, exit mispredicted:
  // T = (9 + n) + 7 + 1 = n + 17. Warm: the counter still says taken, bne_k issues at 1 + k: T = n + 1 + 7 + 1.
  Assembler code;
  code(as::addi(as::a0, as::a0, -1))(as::bne(as::a0, as::zero, -4))(as::ret());
  TestMachine machine(take(code.image()), A15Parameters{});
  machine.begin.arguments = {10, 0, 0, 0};
  EXPECT_EQ(machine.run().cycle, 27u);
  EXPECT_EQ(machine.core.counters().mispredicts, 2u);
  EXPECT_EQ(machine.run().cycle, 27u + 19u);
  EXPECT_EQ(machine.core.counters().mispredicts, 3u);
  EXPECT_EQ(machine.core.counters().cycles, 46u);
}

TEST(A15, CallsAndReturnsArePredicted) {
  // A leaf call, then the return through a saved ra (t0 = x5 is a link register as well).
  Assembler code;
  code(as::addi(as::t0, as::ra, 0));  // 0: save ra
  code(as::jal(as::ra, 8));           // 4: call 12
  code(as::jalr(as::zero, as::t0, 0));  // 8: the handler's end
  code(as::ret());                    // 12
  TestMachine machine(take(code.image()), A15Parameters{});
  // mv and jal issue at 0, the leaf's ret at 1 (it needs ra), jr t0 beside it: both targets are on the return
  // stack, nothing restarts: T = 2.
  EXPECT_EQ(machine.run().cycle, 2u);
  EXPECT_EQ(machine.core.counters().mispredicts, 0u);
}

TEST(A15, WindowLimitsHowFarAheadWorkGoes) {
  // div, six nops, ret: with 40 entries the ret is done long before the divide and retires with it: T = 12.
  // With 7 entries instruction 7 (the ret) enters when the divide retires: T = 12 + 1.
  Assembler code;
  code(as::div(as::t0, as::a1, as::a2)).append(repeat(as::nop(), 6));
  EXPECT_EQ(measure(code).cycles, 12u);
  A15Parameters narrow;
  narrow.window = 7;
  EXPECT_EQ(measure(code, narrow).cycles, 13u);
}

TEST(A15, FullWindowDelaysALongTail) {
  // A divide of 50 cycles and 39 nops fill the window of 40; instruction 40, a load of 2 + 10 cycles, enters when
  // the divide retires: T = 50 + 12.
  A15Parameters parameters;
  parameters.divide_cycles = 50;
  parameters.memory_cycles[static_cast<size_t>(LatencyClass::scratchpad)] = 10;
  Assembler code;
  code(as::div(as::t0, as::a1, as::a2)).append(repeat(as::nop(), 39))(as::lw(as::t1, as::a1, 4));
  EXPECT_EQ(measure(code, parameters).cycles, 62u);
  // In a window of 80 entries, the load enters at floor(40 / 3) = 13 and waits. At 50 all 42 instructions are complete
  // and retire at 8 a cycle: T = 50 + floor(41 / 8) = 55.
  parameters.window = 80;
  EXPECT_EQ(measure(code, parameters).cycles, 55u);
}

TEST(A15, CommandIsSixStoresAndOneLoad) {
  // Store i issues at i, retires at i + 2; the last leaves the device port at 7 + device_store_cycles = 8, where
  // the load of ISSUE issues. Its value comes device_load_cycles later: T = 10; or when the driver says.
  Assembler command;
  for (int32_t i = 0; i < 6; ++i) command(as::sw(as::a0, as::a1, 4 * i));
  command(as::lw(as::a0, as::a1, SPL_CMD_ISSUE))(as::ret());
  TestMachine machine(take(command.image()), A15Parameters{});
  machine.begin.arguments = {5, SPL_HPU_COMMAND_BASE, 0, 0};
  EXPECT_EQ(machine.run().cycle, 10u);
  ASSERT_EQ(machine.events.front().kind, StopKind::call);
  EXPECT_EQ(machine.events.front().cycle, 8u);
  EXPECT_EQ(machine.events.front().value, 5u);

  TestMachine blocked(take(command.image()), A15Parameters{});
  blocked.begin.arguments = machine.begin.arguments;
  blocked.answer = [](const auto&, uint64_t cycle) { return std::pair<uint32_t, uint64_t>(42, cycle + 500); };
  const Stop stop = blocked.run();
  EXPECT_EQ(stop.cycle, 508u);
  EXPECT_EQ(stop.value, 42u);
}

TEST(A15, ACommandsLoadWaitsForAnsweredStoresAndIsTheOldest) {
  // The command of the test before, but its stores are 2 cycles apart and answered after 6: store i retires at 2 + 2 i,
  // the last store at 12, answered at 18, and the load issues 3 cycles later, at 21. If stores are answered after 2,
  // the last answer comes at 14 and the load issues at 17.
  A15Parameters parameters;
  parameters.device_store_cycles = 2;
  parameters.device_answer_cycles = 6;
  parameters.oldest_cycles = 3;
  Assembler command;
  for (int32_t i = 0; i < 6; ++i) command(as::sw(as::a0, as::a1, 4 * i));
  command(as::lw(as::a0, as::a1, SPL_CMD_ISSUE))(as::ret());
  const auto issued_at = [&](const A15Parameters& with) {
    TestMachine machine(take(command.image()), with);
    machine.begin.arguments = {5, SPL_HPU_COMMAND_BASE, 0, 0};
    machine.run();
    return machine.events.front().cycle;
  };
  EXPECT_EQ(issued_at(parameters), 21u);
  parameters.device_answer_cycles = 2;
  EXPECT_EQ(issued_at(parameters), 17u);
}

TEST(A15, AnswerOfACallHoldsBackMemoryThatItMayHaveWritten) {
  // lw ISSUE at 0, answered at 100. A private load issues at 100 at the earliest: T = 103. A packet load
  // went ahead and only retires with the answer: T = 100.
  const auto after_call = [](uint32_t base) {
    Assembler code;
    code(as::lw(as::t0, as::a1, SPL_CMD_ISSUE))(as::lw(as::t1, as::a2, 0))(as::ret());
    TestMachine machine(take(code.image()), A15Parameters{});
    machine.begin.arguments = {0, SPL_HPU_COMMAND_BASE, base, 0};
    machine.answer = [](const auto&, uint64_t) { return std::pair<uint32_t, uint64_t>(0, 100); };
    return machine.run().cycle;
  };
  EXPECT_EQ(after_call(SPL_HPU_STACK_BASE), 103u);
  EXPECT_EQ(after_call(SPL_HPU_PACKET_BASE), 100u);
}

// Returns the cycle of the first stop at shared memory behind a divide (12 cycles), and the handler's length.
std::pair<uint64_t, uint64_t> behind_divide(uint32_t access) {
  Assembler code;
  code(as::div(as::t0, as::a1, as::a2))(access)(as::ret());
  TestMachine machine(take(code.image()), A15Parameters{});
  machine.begin.arguments = {1, 7, 3, SPL_HPU_STATE_BASE};
  const uint64_t end = machine.run().cycle;
  EXPECT_EQ(machine.events.front().kind, StopKind::shared);
  return {machine.events.front().cycle, end};
}

TEST(A15, SharedAccessesHappenWhereTheAlgebraSays) {
  using Times = std::pair<uint64_t, uint64_t>;
  // A load issues at once (0) and retires with the divide.
  EXPECT_EQ(behind_divide(as::lw(as::t1, as::a3, 0)), Times(0, 12));
  // A store is visible when it retires, with the divide.
  EXPECT_EQ(behind_divide(as::sw(as::a0, as::a3, 0)), Times(12, 12));
  // An atomic issues when the divide has retired: 12, and takes 2 + 1.
  EXPECT_EQ(behind_divide(as::amoadd(as::t1, as::a3, as::a0)), Times(12, 15));
}

TEST(A15, DriverCanDelayASharedAccess) {
  Assembler code;
  code(as::lw(as::t1, as::a3, 0))(as::ret());
  TestMachine machine(take(code.image()), A15Parameters{});
  machine.begin.arguments = {0, 0, 0, SPL_HPU_STATE_BASE};
  machine.begin.image = &machine.image;
  machine.begin.memory = &machine.memory;
  machine.core.start(machine.begin);
  ASSERT_EQ(machine.core.run(1000).kind, StopKind::shared);
  machine.core.delay_shared(50);
  EXPECT_EQ(machine.core.cycle(), 50u);
  EXPECT_EQ(machine.core.run(1000).cycle, 53u);
}

TEST(A15, ParametersOutsideTheModelAreRefusedByName) {
  A15Parameters parameters;
  parameters.window = 0;
  const auto none = Core::create(parameters);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("window is 0"), std::string::npos) << none.error().message;
  parameters = {};
  parameters.predictor_entries = 1000;
  EXPECT_NE(Core::create(parameters).error().message.find("power of two"), std::string::npos);
  parameters = {};
  parameters.rename_width = 9;
  EXPECT_FALSE(Core::create(parameters));
  parameters.rename_width = 8;
  EXPECT_TRUE(Core::create(parameters));
}

}  // namespace
}  // namespace spinloom::hpu
