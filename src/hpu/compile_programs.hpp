// compile_programs - compiled_programs.c as an RV32 image, for tests; and the same functions natively.
//
// Contract: needs Python with ziglang: environment variable or CMake variable SPINLOOM_PYTHON_EXECUTABLE. Without it
//   `reason` says what is missing and a test skips with it.
// Threads: pure. Time: none.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hpu/compiled_programs.h"

namespace spinloom::hpu {

inline std::string python() {
  if (const char* set = std::getenv("SPINLOOM_PYTHON_EXECUTABLE")) return set;
  return SPINLOOM_PYTHON_EXECUTABLE;  // from CMake; may be empty
}

// The image, or the reason why there is none.
struct Compiled {
  std::vector<uint8_t> file;
  std::string reason;
};

inline Compiled compile_programs(const std::string& level) {
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

inline const Program programs[] = {
    {"program_sort", program_sort},
    {"program_arithmetic_64", program_arithmetic_64},
    {"program_misaligned_copy", program_misaligned_copy},
    {"program_crc", program_crc},
    {"program_divide", program_divide},
    {"program_indirect", program_indirect},
};

}  // namespace spinloom::hpu
