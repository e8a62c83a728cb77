// compile_programs - compiles C sources of this folder to RV32 images, for tests that also run the functions
// natively.
//
// Contract: needs Python with ziglang, named by the environment variable or CMake variable
//   SPINLOOM_PYTHON_EXECUTABLE. If it is missing, `reason` says so, and the test is skipped with it.
// Threads: pure. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/testing/folder.hpp"
#include "nic/hpu/compiled_float.h"
#include "nic/hpu/compiled_programs.h"

namespace spinloom::hpu {

inline std::string python() {
  if (const char* set = std::getenv("SPINLOOM_PYTHON_EXECUTABLE")) return set;
  return SPINLOOM_PYTHON_EXECUTABLE;  // set by CMake; may be empty
}

// The image, or the reason why there is none.
struct Compiled {
  std::vector<uint8_t> file;
  std::string reason;
};

struct ProgramSource {
  const char* name;
  const char* entry;
  const char* flags;
};
inline constexpr ProgramSource programs_source{"compiled_programs.c", "program_sort", "-mcpu=generic_rv32+m+a+c"};
inline constexpr ProgramSource float_programs_source{
    "compiled_float.c", "program_complex",
    "-mcpu=generic_rv32+m+a+f+d+c -mabi=ilp32d -ffp-contract=off -fno-math-errno"};

inline Compiled compile_programs(const ProgramSource& source, const std::string& level) {
  if (python().empty()) return {{}, "SPINLOOM_PYTHON_EXECUTABLE is not set: no RV32 compiler"};
  const std::string quoted = "'" + python() + "'";
  if (std::system((quoted + " -c 'import ziglang' 2>/dev/null").c_str()) != 0) {
    return {{}, python() + " has no ziglang: no RV32 compiler"};
  }
  const TestFolder folder;
  const std::string out = folder.of("program.elf");
  // Without -g, the driver strips the symbols at -Os.
  const std::string command = quoted + " -m ziglang cc -target riscv32-freestanding-none " + source.flags + " " +
                              level +
                              " -g -fno-unwind-tables -fno-asynchronous-unwind-tables -fomit-frame-pointer "
                              "-ffreestanding -nostdlib -fno-builtin"
                              " -fno-sanitize=all -static -Wl,--image-base=0x10000000 -Wl,-e," +
                              source.entry + " '" SPINLOOM_HPU_SOURCE_DIR "/" + source.name + "' -o '" + out + "'";
  const int status = std::system(command.c_str());
  Compiled compiled;
  if (status != 0) {
    ADD_FAILURE() << "the compiler ended with status " << status << ": " << command;
    return compiled;
  }
  std::ifstream stream(out, std::ios::binary);
  compiled.file.assign(std::istreambuf_iterator<char>(stream), {});
  return compiled;
}

struct Program {
  const char* name;
  uint32_t (*native)(uint32_t, uint8_t*, uint32_t);
};

inline const Program programs[] = {
    {"program_sort", program_sort},
    {"program_arithmetic_64", program_arithmetic_64},
    {"program_misaligned_copy", program_misaligned_copy},
    {"program_crc", program_crc},
    {"program_divide", program_divide},
    {"program_indirect", program_indirect},
};

inline const Program float_programs[] = {
    {"program_complex", program_complex},
    {"program_single", program_single},
    {"program_mixed", program_mixed},
    {"program_roots", program_roots},
    {"program_sort_numbers", program_sort_numbers},
    {"program_fused", program_fused},
};

}  // namespace spinloom::hpu
