// QemuMachine - runs a program under qemu's user mode, an independent implementation of RV32IMAFDC.
//
// Contract: takes the image, memory and registers of a TestMachine that has not run yet, writes a static Linux
//   executable with the same bytes at the same addresses, and runs it with qemu-riscv32. A small harness at the
//   bottom of the address space sets the registers and jumps to the program. When the program returns, the harness
//   writes registers x2..x31, f0..f31 and fcsr, private and shared memory to standard output. There is no command
//   window: programs must not use it.
// Invariants: the harness ends where SPL_HPU_RETURN_PC points, so that even ra holds the same value.
// Threads: one owner. Time: none; qemu counts no cycles.
#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/testing/folder.hpp"
#include "nic/hpu/testing/compile_programs.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {

inline constexpr const char* no_qemu =
    "qemu-riscv32 is not installed (Debian: qemu-user): nothing to compare the core with";

class QemuMachine {
 public:
  static constexpr const char* command = "qemu-riscv32";

  [[nodiscard]] static bool is_there() {
    return std::system((std::string("command -v ") + command + " >/dev/null 2>&1").c_str()) == 0;
  }

  explicit QemuMachine(const TestMachine& machine) : machine_(machine) {}

  // The state after the program's return; none if qemu failed.
  struct State {
    std::array<uint32_t, 32> x{};  // x[0] and x[1] are not dumped
    std::array<uint64_t, 32> f{};
    uint32_t float_status = 0;
    std::vector<uint8_t> stack;
    std::vector<uint8_t> shared;
  };
  [[nodiscard]] std::optional<State> run() const {
    const TestFolder folder;
    const std::filesystem::path path = folder.path() / "program.elf";
    const std::vector<uint8_t> file = executable();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::FILE* pipe = ::popen((std::string(command) + " '" + path.string() + "'").c_str(), "r");
    std::vector<uint8_t> out(dump_bytes + machine_.stack.size() + machine_.shared.size() + 1);
    const size_t got = pipe == nullptr ? 0 : std::fread(out.data(), 1, out.size(), pipe);
    const int status = pipe == nullptr ? -1 : ::pclose(pipe);
    if (status != 0 || got != out.size() - 1) return std::nullopt;
    State state;
    std::memcpy(state.x.data(), out.data(), sizeof state.x);
    std::memcpy(state.f.data(), out.data() + sizeof state.x, sizeof state.f);
    std::memcpy(&state.float_status, out.data() + sizeof state.x + sizeof state.f, sizeof state.float_status);
    const uint8_t* const stack = out.data() + dump_bytes;
    state.stack.assign(stack, stack + machine_.stack.size());
    state.shared.assign(stack + state.stack.size(), stack + state.stack.size() + machine_.shared.size());
    return state;
  }

 private:
  static constexpr uint32_t entry = 0x2000;
  static constexpr uint32_t dump = 0x3000;
  static constexpr size_t dump_bytes = 32 * 4 + 32 * 8 + 4;
  static constexpr uint32_t ecall = 0x73;

  static void load_immediate(assembler::Assembler& code, uint32_t rd, uint32_t value) {
    const int32_t low = static_cast<int32_t>(value << 20) >> 20;
    code(assembler::lui(rd, value - static_cast<uint32_t>(low)))(assembler::addi(rd, rd, low));
  }

  [[nodiscard]] std::vector<uint8_t> start_code() const {
    namespace as = assembler;
    as::Assembler code;
    for (uint32_t index = 1; index < 32; ++index) code(as::addi(index, 0, 0));
    for (uint32_t i = 0; i < 4; ++i) load_immediate(code, 10 + i, machine_.begin.arguments[i]);
    load_immediate(code, as::sp, machine_.begin.stack_pointer);
    load_immediate(code, as::ra, SPL_HPU_RETURN_PC);
    const int64_t at = int64_t{entry} + code.here();
    code(as::jal(0, static_cast<int32_t>(int64_t{trampoline} - at)));
    return bytes_of(code);
  }
  static constexpr uint32_t trampoline = 0x2800;

  // Writes `length` bytes from `address` to standard output.
  static void write_out(assembler::Assembler& code, uint32_t address, size_t length) {
    namespace as = assembler;
    load_immediate(code, as::a0, 1);
    load_immediate(code, as::a1, address);
    load_immediate(code, as::a2, static_cast<uint32_t>(length));
    load_immediate(code, as::a7, 64);
    code(ecall);
  }

  [[nodiscard]] std::vector<uint8_t> end_code() const {
    namespace as = assembler;
    as::Assembler code;
    code(as::lui(as::ra, dump));
    for (uint32_t index = 2; index < 32; ++index) code(as::sw(index, as::ra, 4 * static_cast<int32_t>(index)));
    for (uint32_t index = 0; index < 32; ++index) {
      code(as::fsd(index, as::ra, static_cast<int32_t>(32 * 4 + 8 * index)));
    }
    code(as::i_type(2, 0x73, as::a0, 0, 3))(as::sw(as::a0, as::ra, 32 * 4 + 32 * 8));  // frcsr
    write_out(code, dump, dump_bytes);
    write_out(code, SPL_HPU_STACK_BASE, machine_.stack.size());
    write_out(code, SPL_HPU_STATE_BASE, machine_.shared.size());
    load_immediate(code, as::a0, 0);
    load_immediate(code, as::a7, 93);
    code(ecall);
    return bytes_of(code);
  }

  static std::vector<uint8_t> bytes_of(const assembler::Assembler& code) {
    const Image image = take(code.image());
    return {image.bytes().begin(), image.bytes().end()};
  }

  struct Part {
    uint32_t address;
    std::vector<uint8_t> bytes;
  };

  // Everything below 0x4000: the end at SPL_HPU_RETURN_PC, the start, the way to the program, the dump.
  [[nodiscard]] Part harness() const {
    Part part{SPL_HPU_RETURN_PC, std::vector<uint8_t>(dump + dump_bytes - SPL_HPU_RETURN_PC)};
    const auto put = [&part](uint32_t address, const std::vector<uint8_t>& bytes) {
      std::copy(bytes.begin(), bytes.end(), part.bytes.begin() + (address - part.address));
    };
    put(SPL_HPU_RETURN_PC, end_code());
    put(entry, start_code());
    // A jump reaches 1 MiB, and the program lies further away. So x31 holds the program's address at its start
    // instead of zero; a test that compares registers clears x31 first.
    assembler::Assembler far;
    load_immediate(far, 31, machine_.begin.pc);
    far(assembler::jalr(0, 31, 0));
    put(trampoline, bytes_of(far));
    return part;
  }

  static void put32(std::vector<uint8_t>& out, uint32_t value) {
    for (unsigned byte = 0; byte < 4; ++byte) out.push_back(static_cast<uint8_t>(value >> (8 * byte)));
  }
  static void put16(std::vector<uint8_t>& out, uint16_t value) {
    for (unsigned byte = 0; byte < 2; ++byte) out.push_back(static_cast<uint8_t>(value >> (8 * byte)));
  }

  [[nodiscard]] std::vector<uint8_t> executable() const {
    const auto code = machine_.image.bytes();
    const Part parts[] = {harness(),
                          {machine_.image.base(), {code.begin(), code.end()}},
                          {SPL_HPU_STATE_BASE, machine_.shared},
                          {SPL_HPU_STACK_BASE, machine_.stack}};
    constexpr uint32_t header_bytes = 52;
    constexpr uint32_t entry_bytes = 32;
    constexpr uint32_t page = 4096;
    std::vector<uint8_t> file = {0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    put16(file, 2);    // ET_EXEC
    put16(file, 243);  // EM_RISCV
    put32(file, 1);
    put32(file, entry);
    put32(file, header_bytes);  // program headers
    put32(file, 0);
    put32(file, 1);  // compressed instructions, soft float
    put16(file, header_bytes);
    put16(file, entry_bytes);
    put16(file, std::size(parts));
    put16(file, 0);
    put16(file, 0);
    put16(file, 0);
    uint32_t offset = page;
    for (const Part& part : parts) {
      const auto bytes = static_cast<uint32_t>(part.bytes.size());
      put32(file, 1);  // PT_LOAD
      put32(file, offset + part.address % page);
      put32(file, part.address);
      put32(file, part.address);
      put32(file, bytes);
      put32(file, bytes);
      put32(file, 7);  // read, write, execute
      put32(file, page);
      offset += (part.address % page + bytes + page - 1) / page * page;
    }
    offset = page;
    for (const Part& part : parts) {
      file.resize(offset + part.address % page);
      file.insert(file.end(), part.bytes.begin(), part.bytes.end());
      offset += (part.address % page + static_cast<uint32_t>(part.bytes.size()) + page - 1) / page * page;
    }
    file.resize(offset);
    return file;
  }

  const TestMachine& machine_;
};

// A compiled program on the core and under qemu: its result and its memory.
inline void compare_with_qemu(const Compiled& compiled, const Program& program) {
  constexpr uint32_t bytes = 2048;
  auto image = load_elf(compiled.file);
  ASSERT_TRUE(image) << image.error().message;
  TestMachine machine(std::move(*image));
  machine.begin.pc = take(machine.image.address_of(program.name));
  machine.begin.arguments = {12345, SPL_HPU_STACK_BASE, bytes, 0};
  const auto expected = QemuMachine(machine).run();
  ASSERT_TRUE(expected) << "qemu did not run the program to its end";
  const Stop stop = machine.run();
  ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
  EXPECT_EQ(stop.value, expected->x[assembler::a0]);
  machine.stack.resize(bytes);  // the stack lies above
  EXPECT_EQ(machine.stack, std::vector<uint8_t>(expected->stack.begin(), expected->stack.begin() + bytes));
}

}  // namespace spinloom::hpu
