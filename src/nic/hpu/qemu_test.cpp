// The core compared with qemu's user mode: random instruction sequences and compiled C. Skipped visibly without qemu.
#include "nic/hpu/random_program.hpp"
#include "nic/hpu/testing/compile_programs.hpp"
#include "nic/hpu/testing/qemu_machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;

TEST(Qemu, RandomProgramsLeaveTheSameRegistersAndMemory) {
  if (!QemuMachine::is_there()) GTEST_SKIP() << no_qemu;
  const uint64_t first = test_seed(1);
  const uint64_t count = std::getenv("SPINLOOM_TEST_SEED") != nullptr ? 1 : 60;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(replay("Qemu.RandomProgramsLeaveTheSameRegistersAndMemory", seed));
    Random random(seed, "qemu");
    as::Assembler code;
    code(as::lui(8, SPL_HPU_STATE_BASE))(as::addi(31, 0, 0));
    const RandomProgramOptions options{.length = 300, .rounds = 20, .user_mode = true};
    TestMachine machine(take(code.append(RandomProgram(random, options).build()).image()));
    machine.begin.arguments = {1, 0x80000000u, 77, 0xffffffffu};
    for (uint8_t& byte : machine.stack) byte = static_cast<uint8_t>(random.below(256));
    for (uint8_t& byte : machine.shared) byte = static_cast<uint8_t>(random.below(256));
    const auto expected = QemuMachine(machine).run();
    ASSERT_TRUE(expected) << "qemu did not run the program to its end";
    const Stop stop = machine.run();
    ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
    for (unsigned i = 2; i < 32; ++i) ASSERT_EQ(machine.core.register_value(i), expected->x[i]) << "x" << i;
    ASSERT_EQ(machine.stack, expected->stack);
    ASSERT_EQ(machine.shared, expected->shared);
  }
}

class QemuCompiled : public testing::TestWithParam<const char*> {};

TEST_P(QemuCompiled, GivesTheSameResult) {
  if (!QemuMachine::is_there()) GTEST_SKIP() << no_qemu;
  const Compiled compiled = compile_programs(programs_source, GetParam());
  if (!compiled.reason.empty()) GTEST_SKIP() << compiled.reason;
  ASSERT_FALSE(compiled.file.empty());
  for (const Program& program : programs) {
    SCOPED_TRACE(program.name);
    ASSERT_NO_FATAL_FAILURE(compare_with_qemu(compiled, program));
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, QemuCompiled, testing::Values("-O2", "-Os", "-O0"),
                         [](const auto& level) { return std::string(level.param + 1); });

}  // namespace
}  // namespace spinloom::hpu
