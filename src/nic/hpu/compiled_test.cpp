// Compiled C on the core against the same C compiled natively: results, memory, and every quantum.
//
// Needs Python with ziglang: environment variable or CMake variable SPINLOOM_PYTHON_EXECUTABLE. Without it the
// tests say that they were skipped and why.
#include <gtest/gtest.h>

#include "nic/hpu/testing/compile_programs.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

void compare_with_native(const Compiled& compiled, const Program& program, const TimingParameters& timing) {
  constexpr uint32_t bytes = 2048;
  const uint64_t seed = test_seed(11);
  std::vector<uint8_t> expected(bytes);
  const uint32_t value = program.native(static_cast<uint32_t>(seed), expected.data(), bytes);
  uint64_t cycles = 0;
  for (const uint64_t quantum : {TestMachine::no_quantum, uint64_t{64}, uint64_t{256}, uint64_t{1024}}) {
    auto image = load_elf(compiled.file);
    ASSERT_TRUE(image) << image.error().message;
    TestMachine machine(std::move(*image), timing);
    machine.begin.pc = take(machine.image.address_of(program.name));
    machine.begin.arguments = {static_cast<uint32_t>(seed), SPL_HPU_STACK_BASE, bytes, 0};
    const Stop stop = machine.run(quantum);
    ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
    EXPECT_EQ(stop.value, value);
    machine.stack.resize(bytes);  // the stack lies above
    EXPECT_EQ(machine.stack, expected);
    if (quantum == TestMachine::no_quantum) cycles = stop.cycle;
    EXPECT_EQ(stop.cycle, cycles) << "quantum " << quantum;
  }
}

class CompiledProgram : public testing::TestWithParam<const char*> {};

TEST_P(CompiledProgram, GivesTheNativeResult) {
  const Compiled compiled = compile_programs(programs_source, GetParam());
  if (!compiled.reason.empty()) GTEST_SKIP() << compiled.reason;
  ASSERT_FALSE(compiled.file.empty());
  for (const Program& program : programs) {
    SCOPED_TRACE(std::string(program.name) + " " + GetParam());
    for (const TimingParameters& timing : every_model) {
      ASSERT_NO_FATAL_FAILURE(compare_with_native(compiled, program, timing));
    }
  }
}

TEST_P(CompiledProgram, GivesTheNativeResultWithFloatingPoint) {
  const Compiled compiled = compile_programs(float_programs_source, GetParam());
  if (!compiled.reason.empty()) GTEST_SKIP() << compiled.reason;
  ASSERT_FALSE(compiled.file.empty());
  EXPECT_TRUE(take(load_elf(compiled.file)).needs_float());
  for (const Program& program : float_programs) {
    SCOPED_TRACE(std::string(program.name) + " " + GetParam());
    for (const TimingParameters& timing : every_model) {
      if (!has_float(timing)) continue;
      ASSERT_NO_FATAL_FAILURE(compare_with_native(compiled, program, timing));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CompiledProgram, testing::Values("-O2", "-Os", "-O0"),
                         [](const auto& level) { return std::string(level.param + 1); });

}  // namespace
}  // namespace spinloom::hpu
