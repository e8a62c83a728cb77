// Core as a driver uses it: calls, device registers, several cores on shared memory, misuse.
#include "nic/hpu/core.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;
using as::Assembler;

TEST(Core, CallCarriesItsWordsAndTheAnswer) {
  Assembler code;
  code(as::sw(as::a0, as::a2, 0))(as::sw(as::a1, as::a2, 28))(as::lw(as::a0, as::a2, SPL_CMD_ISSUE))(as::ret());
  for (const TimingParameters& timing : every_model) {
    TestMachine machine(take(code.image()), timing);
    machine.begin.arguments = {SPL_CALL_DMA_WAIT, 0xabcd, SPL_HPU_COMMAND_BASE, 0};
    std::array<uint32_t, SPL_CMD_WORDS> seen{};
    machine.answer = [&](const auto& words, uint64_t cycle) {
      seen = words;
      return std::pair<uint32_t, uint64_t>(0x5eed, cycle + 9);
    };
    EXPECT_EQ(machine.run().value, 0x5eedu);
    EXPECT_EQ(seen, (std::array<uint32_t, SPL_CMD_WORDS>{SPL_CALL_DMA_WAIT, 0, 0, 0, 0, 0, 0, 0xabcd}));
    EXPECT_EQ(machine.core.counters().calls, 1u);
    EXPECT_EQ(machine.core.counters().stores, 2u);
    EXPECT_EQ(machine.core.counters().loads, 1u);
    EXPECT_EQ(machine.core.counters().instructions, 4u);
  }
}

TEST(Core, DeviceRegistersAnswerWithoutAStop) {
  Assembler code;
  code(as::lw(as::a0, as::a2, SPL_CMD_HPU))(as::lw(as::a1, as::a2, SPL_CMD_VHPU))(
      as::lw(as::a3, as::a2, SPL_CMD_HPU_COUNT));
  code(as::ret());
  TestMachine machine(take(code.image()), A15Parameters{});
  machine.begin.arguments = {0, 0, SPL_HPU_COMMAND_BASE, 0};
  machine.begin.hpu = 3;
  machine.begin.vhpu = 21;
  machine.begin.hpu_count = 32;
  EXPECT_EQ(machine.run().value, 3u);
  EXPECT_EQ(machine.core.register_value(11), 21u);
  EXPECT_EQ(machine.core.register_value(13), 32u);
  EXPECT_EQ(machine.events.size(), 1u);  // only the return
}

TEST(Core, StartsWithCleanRegisters) {
  Assembler code;
  code(as::addi(as::t3, as::zero, 7))(as::add(as::a0, as::t3, as::t4))(as::addi(as::t4, as::zero, 9))(as::ret());
  TestMachine machine(take(code.image()));
  EXPECT_EQ(machine.run().value, 7u);
  EXPECT_EQ(machine.run().value, 7u);  // t4 of the first run has been reset
}

TEST(Core, EndlessLoopIsCutByQuanta) {
  for (const TimingParameters& timing : every_model) {
    TestMachine machine(take(Assembler()(as::jal(as::zero, 0)).image()), timing);
    machine.budget = 5000;
    const Stop stop = machine.run(256);
    EXPECT_EQ(stop.kind, StopKind::quantum);
    EXPECT_GT(machine.quanta, 10u);
    EXPECT_LT(stop.cycle, 5000u + 300u);
  }
}

TEST(Core, AbandonedHandlerLeavesTheCoreFree) {
  Assembler code;
  code(as::addi(as::a0, as::a0, 1))(as::jal(as::zero, -4));
  for (const TimingParameters& timing : every_model) {
    TestMachine machine(take(code.image()), timing);
    machine.begin.image = &machine.image;
    machine.begin.memory = &machine.memory;
    machine.core.start(machine.begin);
    const Stop stop = machine.core.run(1000);
    ASSERT_EQ(stop.kind, StopKind::quantum);
    machine.core.abandon();
    EXPECT_FALSE(machine.core.busy());
    EXPECT_EQ(machine.core.counters().cycles, machine.core.cycle());
    EXPECT_THROW(machine.core.abandon(), InternalError);
    machine.begin.at_cycle = machine.core.cycle();
    machine.core.start(machine.begin);
    EXPECT_EQ(machine.core.run(machine.core.cycle() + 100).kind, StopKind::quantum);
  }
}

TEST(Core, MisuseIsAnAssertion) {
  TestMachine machine(take(Assembler()(as::lw(as::a0, as::a2, SPL_CMD_ISSUE))(as::ret()).image()));
  EXPECT_THROW(machine.core.run(10), InternalError);  // nothing started
  machine.begin.image = &machine.image;
  machine.begin.memory = &machine.memory;
  machine.begin.arguments = {0, 0, SPL_HPU_COMMAND_BASE, 0};
  machine.core.start(machine.begin);
  EXPECT_THROW(machine.core.start(machine.begin), InternalError);       // busy
  EXPECT_THROW(machine.core.resume_call(0, 0), InternalError);          // no call yet
  ASSERT_EQ(machine.core.run(10).kind, StopKind::call);
  EXPECT_THROW(machine.core.run(10), InternalError);                    // the call waits
  machine.core.resume_call(0, 20);
  EXPECT_EQ(machine.core.run(1000).kind, StopKind::returned);
  machine.begin.at_cycle = 0;
  EXPECT_THROW(machine.core.start(machine.begin), InternalError);  // earlier than the last end
}

TEST(Memory, MapRefusesWhatBreaksItsInvariants) {
  AddressSpace memory;
  std::vector<uint8_t> bytes(64);
  EXPECT_FALSE(memory.map(Region::private_memory(0x5fffffe0u, bytes)));  // crosses its window
  EXPECT_FALSE(memory.map(Region{}));
  Region nothing = Region::private_memory(SPL_HPU_STACK_BASE, bytes);
  nothing.bytes = nullptr;
  EXPECT_FALSE(memory.map(nothing));
  EXPECT_TRUE(memory.map(Region::private_memory(0xffffffc0u, bytes)));  // the very end of the address space
  EXPECT_NE(memory.write(0xffffffffu, 1), nullptr);
  EXPECT_EQ(memory.write(0xffffffffu, 2), nullptr);
  memory.unmap(0xffffffc0u);
  EXPECT_EQ(memory.read(0xffffffc0u, 1), nullptr);
  EXPECT_TRUE(memory.map(Region::read_only(SPL_HPU_PACKET_BASE, {}, LatencyClass::packet_buffer)));  // empty payload
  EXPECT_EQ(memory.read(SPL_HPU_PACKET_BASE, 1), nullptr);
}

// Cores take a spinlock, add to an unprotected word, and release the lock; a second word counts by amoadd. The driver
// serves stops in order of (cycle, core).
struct Outcome {
  std::vector<uint64_t> ends;
  std::vector<uint8_t> shared;
  std::vector<Counters> counters;
  uint64_t stops = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome contend(const TimingParameters& timing, uint64_t quantum, uint32_t cores, uint32_t rounds) {
  Assembler code;
  code(as::addi(as::t1, as::zero, 1));
  const int32_t loop = code.here();
  code(as::amoswap(as::t0, as::a3, as::t1));
  code(as::bne(as::t0, as::zero, loop - code.here()));
  code(as::lw(as::t2, as::a3, 4))(as::addi(as::t2, as::t2, 1))(as::sw(as::t2, as::a3, 4));
  code(as::amoswap(as::zero, as::a3, as::zero));
  code(as::addi(as::t3, as::a3, 8))(as::amoadd(as::t4, as::t3, as::a1));
  code(as::addi(as::a0, as::a0, -1));
  code(as::bne(as::a0, as::zero, loop - code.here()))(as::ret());
  const Image image = take(code.image());

  Outcome outcome;
  outcome.shared.resize(64);
  std::vector<std::vector<uint8_t>> stacks(cores, std::vector<uint8_t>(256));
  std::vector<AddressSpace> memories(cores);
  std::vector<Core> hpus;
  for (uint32_t i = 0; i < cores; ++i) {
    for (const Region& region :
         {Region::image(image.base(), image.bytes()), Region::shared(SPL_HPU_STATE_BASE, outcome.shared),
          Region::private_memory(SPL_HPU_STACK_BASE, stacks[i])}) {
      EXPECT_TRUE(memories[i].map(region));
    }
    hpus.push_back(take(Core::create(timing)));
    Start start;
    start.image = &image;
    start.memory = &memories[i];
    start.pc = image.base();
    start.arguments = {rounds, i + 1, 0, SPL_HPU_STATE_BASE};
    start.at_cycle = i * 3;
    hpus.back().start(start);
  }
  outcome.ends.resize(cores);
  for (;;) {
    size_t next = cores;
    for (size_t i = 0; i < cores; ++i) {
      if (hpus[i].busy() && (next == cores || hpus[i].cycle() < hpus[next].cycle())) next = i;
    }
    if (next == cores) break;
    const Stop stop = hpus[next].run(hpus[next].cycle() + quantum);
    outcome.stops += stop.kind == StopKind::shared;
    if (stop.kind == StopKind::returned) outcome.ends[next] = stop.cycle;
    if (stop.kind == StopKind::fault) ADD_FAILURE() << stop.fault.describe();
  }
  for (const Core& core : hpus) outcome.counters.push_back(core.counters());
  return outcome;
}

TEST(Core, SpinlocksAndContentionAreTheSameForEveryQuantum) {
  constexpr uint32_t cores = 4;
  constexpr uint32_t rounds = 25;
  for (const TimingParameters& timing : every_model) {
    const Outcome whole = contend(timing, TestMachine::no_quantum, cores, rounds);
    uint32_t protected_word = 0;
    uint32_t atomic_word = 0;
    std::memcpy(&protected_word, whole.shared.data() + 4, 4);
    std::memcpy(&atomic_word, whole.shared.data() + 8, 4);
    EXPECT_EQ(protected_word, cores * rounds);
    EXPECT_EQ(atomic_word, rounds * (1 + 2 + 3 + 4));
    EXPECT_GT(whole.stops, uint64_t{cores} * rounds * 5);  // some attempts found the lock taken
    for (const uint64_t quantum : {1, 64, 256, 1024}) {
      EXPECT_TRUE(contend(timing, quantum, cores, rounds) == whole) << "quantum " << quantum;
    }
  }
}

}  // namespace
}  // namespace spinloom::hpu
