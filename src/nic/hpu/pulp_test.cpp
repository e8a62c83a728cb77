// The pulp model: each test states the algebra of timing_pulp.hpp for a small program, then the number. T is the time
// from the handler's start to its end and includes the `ret` (a jump: 2 cycles).
#include <gtest/gtest.h>

#include <cstring>

#include "nic/hpu/function_profile.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;
using as::Assembler;

constexpr uint64_t ret_cycles = 2;

struct Measured {
  uint64_t cycles;  // the cycles without the ret
  Counters counters;
};

Assembler repeat(uint32_t word, int count) {
  Assembler code;
  for (int i = 0; i < count; ++i) code(word);
  return code;
}

using Arguments = std::array<uint32_t, 4>;

Measured measure(Assembler code, const Arguments& arguments, const PulpParameters& parameters = {}) {
  code(as::ret());
  TestMachine machine(take(code.image()), parameters);
  machine.begin.arguments = arguments;
  const Stop stop = machine.run();
  EXPECT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
  const Counters c = machine.core.counters();
  EXPECT_EQ(c.cycles,
            c.instructions + c.stall_front_end + c.stall_operand + c.stall_unit + c.stall_device + c.stall_latency);
  return {stop.cycle - ret_cycles, c};
}

// a0 = 5, a1 the stack (the cluster's memory), a2 = 3, a3 constants (handler memory).
Measured measure(const Assembler& code, const PulpParameters& parameters = {}) {
  return measure(code, Arguments{5, SPL_HPU_STACK_BASE, 3, SPL_HPU_CONST_BASE}, parameters);
}

TEST(Pulp, OperationsTakeTheirBusyCycles) {
  // T = N * 1, also for mul; mulhu N * 5. Dependence adds nothing: a result is ready for the next instruction.
  EXPECT_EQ(measure(repeat(as::addi(as::t0, as::t0, 1), 30)).cycles, 30u);
  EXPECT_EQ(measure(repeat(as::mul(as::t0, as::t0, as::a2), 30)).cycles, 30u);
  EXPECT_EQ(measure(repeat(as::r_type(1, 3, 0x33, as::t0, as::t0, as::a2), 30)).cycles, 150u);
  // A counter read takes 4.
  EXPECT_EQ(measure(repeat(as::rdcycle(as::t0), 3)).cycles, 12u);
}

TEST(Pulp, DivisionTakesThreeAndTheDivisorsLeadingZeros) {
  // PsPIN RTL: 33 cycles for 3, 21 for 12345, 35 for 0. A negative divisor counts by its magnitude.
  const auto division = [](uint32_t divisor) {
    return measure(Assembler()(as::div(as::t0, as::a0, as::a2)), Arguments{5, 0, divisor, 0}).cycles;
  };
  EXPECT_EQ(division(3), 33u);
  EXPECT_EQ(division(12345), 21u);
  EXPECT_EQ(division(0), 35u);
  EXPECT_EQ(division(0u - 3), 33u);
  EXPECT_EQ(measure(Assembler()(as::r_type(1, 7, 0x33, as::t0, as::a0, as::a2)), Arguments{5, 0, 0u - 3, 0}).cycles,
            3u);
}

TEST(Pulp, BranchesPayOnlyWhenTaken) {
  EXPECT_EQ(measure(Assembler()(as::bne(as::zero, as::zero, 8))(as::nop())).cycles, 2u);  // 1 + 1
  EXPECT_EQ(measure(Assembler()(as::beq(as::zero, as::zero, 8))(as::nop())).cycles, 3u);  // 3
  EXPECT_EQ(measure(Assembler()(as::jal(as::zero, 8))(as::nop())).cycles, 2u);            // 2
}

TEST(Pulp, TargetAcrossTwoFetchWordsCostsOneMore) {
  constexpr uint16_t c_nop = 0x0001;
  // A branch over 6 bytes to a 32-bit nop at 4 n + 2 takes 3 + 1; then the nop.
  EXPECT_EQ(measure(Assembler()(as::beq(as::zero, as::zero, 6)).compressed(c_nop)(as::nop())).cycles, 5u);
  // A 16-bit instruction cannot straddle: 3 + 1.
  Assembler narrow;
  narrow(as::beq(as::zero, as::zero, 6)).compressed(c_nop).compressed(c_nop);
  EXPECT_EQ(measure(narrow).cycles, 4u);
  EXPECT_EQ(measure(Assembler()(as::jal(as::zero, 6)).compressed(c_nop)(as::nop())).cycles, 4u);  // 2 + 1 + 1
}

TEST(Pulp, JumpWaitsForTheResultRightBeforeIt) {
  // mv t0, ra 1; jalr t0 right after it 1 + 2. With a nop in between: 1 + 1 + 2. T includes the jump as the ret.
  const auto through = [](bool apart) {
    Assembler code;
    code(as::addi(as::t0, as::ra, 0));
    if (apart) code(as::nop());
    code(as::jalr(as::zero, as::t0, 0));
    return measure(code).cycles + ret_cycles;
  };
  EXPECT_EQ(through(false), 4u);
  EXPECT_EQ(through(true), 4u);
  // jalr to a target just loaded: 1 (load) + 1 (load-use) + 1 + 2.
  TestMachine machine(take(Assembler()(as::lw(as::t0, as::a1, 0))(as::jalr(as::zero, as::t0, 0)).image()),
                      PulpParameters{});
  const uint32_t target = SPL_HPU_RETURN_PC;
  std::memcpy(machine.stack.data(), &target, 4);
  machine.begin.arguments = {0, SPL_HPU_STACK_BASE, 0, 0};
  EXPECT_EQ(machine.run().cycle, 5u);
}

TEST(Pulp, NearMemoryIsPipelinedFarMemoryBlocks) {
  // Cluster's memory: 1 each, + 1 for the use right after (PsPIN RTL: 1, load-use 1).
  EXPECT_EQ(measure(repeat(as::lw(as::t0, as::a1, 0), 30)).cycles, 30u);
  EXPECT_EQ(measure(repeat(as::sw(as::t0, as::a1, 0), 30)).cycles, 30u);
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a1, 0))(as::addi(as::t0, as::t0, 1))).cycles, 3u);
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a1, 0))(as::nop())(as::addi(as::t0, as::t0, 1))).cycles, 3u);
  // Handler memory in L2: 21 each, 22 with use; the core waits, a nop after it does not overlap.
  EXPECT_EQ(measure(repeat(as::lw(as::t0, as::a3, 0), 4)).cycles, 84u);
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a3, 0))(as::addi(as::t0, as::t0, 1))).cycles, 23u);
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a3, 0))(as::nop())).cycles, 22u);
  // Packets in L2: 20.
  PulpParameters far;
  far.memory_cycles[static_cast<size_t>(LatencyClass::packet_buffer)] = 20;
  EXPECT_EQ(measure(repeat(as::lw(as::t0, as::a0, 0), 4), Arguments{SPL_HPU_PACKET_BASE, 0, 0, 0}, far).cycles, 80u);
}

TEST(Pulp, AccessAcrossAWordTakesTwo) {
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a1, 5))).cycles, 2u);
  EXPECT_EQ(measure(Assembler()(as::sw(as::t0, as::a1, 6))).cycles, 2u);
  EXPECT_EQ(measure(Assembler()(as::i_type(1, 3, as::t0, as::a1, 7))).cycles, 2u);  // lh across a word
  EXPECT_EQ(measure(Assembler()(as::i_type(1, 3, as::t0, as::a1, 5))).cycles, 1u);  // lh at 1: inside a word
  EXPECT_EQ(measure(Assembler()(as::lw(as::t0, as::a3, 2))).cycles, 42u);
}

TEST(Pulp, AtomicsHoldEachOtherOrTheCore) {
  // Handler memory in L2: 21 + 6 = 27 each. The default state memory is L2.
  const Arguments shared = {1, 0, 3, SPL_HPU_STATE_BASE};
  EXPECT_EQ(measure(repeat(as::amoadd(as::t1, as::a3, as::a0), 2), shared).cycles, 54u);
  // In the cluster's memory: 1 to issue, 3 until the next atomic or the use of the result.
  PulpParameters near;
  near.memory_cycles[static_cast<size_t>(LatencyClass::nic_memory)] = 1;
  EXPECT_EQ(measure(repeat(as::amoadd(as::t1, as::a3, as::a0), 4), shared, near).cycles, 10u);  // 3 * 3 + 1
  EXPECT_EQ(measure(Assembler()(as::amoadd(as::t1, as::a3, as::a0))(as::nop()), shared, near).cycles, 2u);
  EXPECT_EQ(measure(Assembler()(as::amoadd(as::t1, as::a3, as::a0))(as::addi(as::t1, as::t1, 1)), shared, near).cycles,
            4u);
  EXPECT_EQ(measure(Assembler()(as::amoadd(as::zero, as::a3, as::a0))(as::lw(as::t0, as::a3, 4)), shared, near).cycles,
            2u);
  // A loop of six instructions with one atomic and a taken branch takes 8 cycles on the RTL: nothing waits.
  Assembler loop;
  loop(as::lw(as::t0, as::a3, 4))(as::amoadd(as::zero, as::a3, as::a0))(as::addi(as::t1, as::t1, 1));
  loop(as::addi(as::t2, as::t2, 4))(as::addi(as::a2, as::a2, -1))(as::bne(as::a2, as::zero, -20));
  EXPECT_EQ(measure(loop, shared, near).cycles, 8u + 8u + 6u);  // the last branch is not taken
}

TEST(Pulp, CommandIsSixStoresAndOneLoad) {
  // Six instructions of 1 cycle; the call is at 6 and its value at 7, or when the driver answers.
  Assembler command;
  for (int32_t i = 0; i < 6; ++i) command(as::sw(as::a0, as::a1, 4 * i));
  command(as::lw(as::a0, as::a1, SPL_CMD_ISSUE))(as::ret());
  TestMachine machine(take(command.image()), PulpParameters{});
  machine.begin.arguments = {5, SPL_HPU_COMMAND_BASE, 0, 0};
  EXPECT_EQ(machine.run().cycle, 7u + ret_cycles);
  EXPECT_EQ(machine.events.front().cycle, 6u);

  TestMachine blocked(take(command.image()), PulpParameters{});
  blocked.begin.arguments = machine.begin.arguments;
  blocked.answer = [](const auto&, uint64_t cycle) { return std::pair<uint32_t, uint64_t>(42, cycle + 500); };
  EXPECT_EQ(blocked.run().cycle, 506u + ret_cycles);
}

TEST(Pulp, EmptyHandlerTakesTheMeasuredNineCycles) {
  // PsPIN RTL: 9 from task start to doorbell: 5 to the first instruction, the ret, 2 to the doorbell.
  EXPECT_EQ(5 + measure(Assembler()).cycles + ret_cycles + 2, 9u);
}

TEST(Pulp, DriverCanDelayAContendedLoad) {
  Assembler code;
  code(as::lw(as::t1, as::a3, 12))(as::ret());
  TestMachine machine(take(code.image()), PulpParameters{});
  Region region = Region::read_only(SPL_HPU_CONST_BASE, machine.constants, LatencyClass::nic_memory);
  region.contended = true;
  ASSERT_TRUE(machine.memory.map(region).ok());
  machine.begin.image = &machine.image;
  machine.begin.memory = &machine.memory;
  machine.begin.arguments = {0, 0, 0, SPL_HPU_CONST_BASE};
  machine.core.start(machine.begin);
  const Stop stop = machine.core.run(1000);
  ASSERT_EQ(stop.kind, StopKind::shared);
  EXPECT_EQ(stop.address, SPL_HPU_CONST_BASE + 12);
  machine.core.delay_shared(7);
  EXPECT_EQ(machine.core.run(1000).cycle, 7u + 21 + ret_cycles);
}

TEST(FunctionProfile, CyclesGoToTheFunctionThatSpentThem) {
  // outer: mv t0, ra; jal inner; jr t0; inner: three nops, ret. Under pulp: outer 1 + 2 + 2, inner 3 + 2.
  Assembler code;
  code(as::addi(as::t0, as::ra, 0))(as::jal(as::ra, 8))(as::jalr(as::zero, as::t0, 0));
  code.append(repeat(as::nop(), 3))(as::ret());
  for (const TimingParameters& timing : every_model) {
    TestMachine machine(take(code.image({{"outer", SPL_HPU_IMAGE_BASE}, {"inner", SPL_HPU_IMAGE_BASE + 12}})), timing);
    FunctionProfile profile(machine.image);
    machine.begin.profile = &profile;
    const uint64_t cycles = machine.run().cycle;
    const std::map<std::string, uint64_t> by_name = profile.cycles();
    uint64_t sum = 0;
    for (const auto& [name, spent] : by_name) sum += spent;
    EXPECT_EQ(sum, cycles);
    if (std::holds_alternative<PulpParameters>(timing)) {
      EXPECT_EQ(by_name, (std::map<std::string, uint64_t>{{"inner", 5}, {"outer", 5}}));
    }
  }
}

TEST(Pulp, ParametersOutsideTheModelAreRefusedByName) {
  PulpParameters parameters;
  parameters.memory_cycles[1] = 0;
  const auto none = Core::create(parameters);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("memory_cycles of handler memory is 0"), std::string::npos)
      << none.error().message;
}

}  // namespace
}  // namespace spinloom::hpu
