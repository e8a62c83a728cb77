// Compiled C on the core against the same C compiled natively: results, memory, and every quantum.
//
// Needs Python with ziglang: environment variable or CMake variable SPINLOOM_PYTHON_EXECUTABLE. Without it the
// tests say that they were skipped and why.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hpu/compiled_programs.h"
#include "hpu/test_machine.hpp"

namespace spinloom::hpu {
namespace {

std::string python() {
  if (const char* set = std::getenv("SPINLOOM_PYTHON_EXECUTABLE")) return set;
  return SPINLOOM_PYTHON_EXECUTABLE;  // from CMake; may be empty
}

// The image, or the reason why there is none.
struct Compiled {
  std::vector<uint8_t> file;
  std::string reason;
};

Compiled compile(const std::string& level) {
  if (python().empty()) return {{}, "SPINLOOM_PYTHON_EXECUTABLE is not set: no RV32 compiler"};
  const std::string quoted = "'" + python() + "'";
  if (std::system((quoted + " -c 'import ziglang' 2>/dev/null").c_str()) != 0) {
    return {{}, python() + " has no ziglang: no RV32 compiler"};
  }
  const std::filesystem::path out =
      std::filesystem::temp_directory_path() / ("spinloom_hpu_compiled_" + std::to_string(::getpid()) + level + ".elf");
  // -g, because at -Os the driver strips the symbols without it.
  const std::string command = quoted + " -m ziglang cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+a+c " +
                              level +
                              " -g -fno-unwind-tables -fno-asynchronous-unwind-tables -fomit-frame-pointer "
                              "-ffreestanding -nostdlib -fno-builtin"
                              " -fno-sanitize=all -static -Wl,-e,program_sort -Wl,--image-base=0x10000000"
                              " '" SPINLOOM_HPU_SOURCE_DIR "/compiled_programs.c' -o '" +
                              out.string() + "'";
  const int status = std::system(command.c_str());
  Compiled compiled;
  if (status != 0) {
    ADD_FAILURE() << "the compiler ended with status " << status << ": " << command;
    return compiled;
  }
  std::ifstream stream(out, std::ios::binary);
  compiled.file.assign(std::istreambuf_iterator<char>(stream), {});
  std::filesystem::remove(out);
  return compiled;
}

struct Program {
  const char* name;
  uint32_t (*native)(uint32_t, uint8_t*, uint32_t);
};

const Program programs[] = {
    {"program_sort", program_sort},
    {"program_arithmetic_64", program_arithmetic_64},
    {"program_misaligned_copy", program_misaligned_copy},
    {"program_crc", program_crc},
    {"program_divide", program_divide},
    {"program_indirect", program_indirect},
};

class CompiledProgram : public testing::TestWithParam<const char*> {};

TEST_P(CompiledProgram, GivesTheNativeResult) {
  const Compiled compiled = compile(GetParam());
  if (!compiled.reason.empty()) GTEST_SKIP() << compiled.reason;
  ASSERT_FALSE(compiled.file.empty());
  constexpr uint32_t bytes = 2048;
  const uint64_t seed = test_seed(11);
  for (const Program& program : programs) {
    SCOPED_TRACE(std::string(program.name) + " " + GetParam());
    std::vector<uint8_t> expected(bytes);
    const uint32_t value = program.native(static_cast<uint32_t>(seed), expected.data(), bytes);
    for (const TimingParameters& timing : every_model) {
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
        machine.stack.resize(bytes);  // what lies above is the stack
        EXPECT_EQ(machine.stack, expected);
        if (quantum == TestMachine::no_quantum) cycles = stop.cycle;
        EXPECT_EQ(stop.cycle, cycles) << "quantum " << quantum;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CompiledProgram, testing::Values("-O2", "-Os", "-O0"),
                         [](const auto& level) { return std::string(level.param + 1); });

}  // namespace
}  // namespace spinloom::hpu
