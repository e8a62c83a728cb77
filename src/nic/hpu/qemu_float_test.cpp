// Floating point compared with qemu's user mode, bits and flags: every operation on biased operands in every rounding
// mode, random instruction sequences, and compiled C. Skipped visibly without qemu.
#include "nic/hpu/disassemble.hpp"
#include "nic/hpu/float_operands.hpp"
#include "nic/hpu/random_program.hpp"
#include "nic/hpu/testing/compile_programs.hpp"
#include "nic/hpu/testing/qemu_machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;

constexpr uint32_t triples = 128;  // triples of operands for each program: three words of 8 bytes each
constexpr uint32_t triple_bytes = 24;
constexpr uint32_t result_bytes = 16;  // the destination's two words, fflags, an integer destination

// One operation of the F and D extensions: ft3 or a4 from ft0, ft1, ft2 or a5.
struct Operation {
  uint32_t word = 0;
  bool rounds = false;
};

std::vector<Operation> every_operation() {
  std::vector<Operation> all;
  for (uint32_t format = 0; format < 2; ++format) {
    const auto add = [&](uint32_t operation, uint32_t function, uint32_t rd, uint32_t rs1, uint32_t rs2, bool rounds) {
      all.push_back({as::float_operation(operation << 2 | format, function, rd, rs1, rs2), rounds});
    };
    for (const uint32_t operation : {0u, 1u, 2u, 3u}) add(operation, 0, 3, 0, 1, true);
    add(0x0b, 0, 3, 0, 0, true);
    for (const uint32_t kind : {0x43u, 0x47u, 0x4bu, 0x4fu}) {
      all.push_back({as::r_type(2u << 2 | format, 0, kind, 3, 0, 1), true});
    }
    for (const uint32_t function : {0u, 1u, 2u}) add(0x04, function, 3, 0, 1, false);
    for (const uint32_t function : {0u, 1u}) add(0x05, function, 3, 0, 1, false);
    for (const uint32_t function : {0u, 1u, 2u}) add(0x14, function, as::a4, 0, 1, false);
    add(0x08, 0, 3, 0, 1 - format, true);
    for (const uint32_t which : {0u, 1u}) {
      add(0x18, 0, as::a4, 0, which, true);
      add(0x1a, 0, 3, as::a5, which, true);
    }
    add(0x1c, 1, as::a4, 0, 0, false);
  }
  all.push_back({as::float_operation(0x70, 0, as::a4, 0, 0), false});
  all.push_back({as::float_operation(0x78, 0, 3, as::a5, 0), false});
  return all;
}

// For each triple: clears fflags, executes the operation, stores its results and fflags to shared memory.
TestMachine machine_for(uint32_t operation, Random& random) {
  as::Assembler code;
  code(as::lui(8, SPL_HPU_STATE_BASE))(as::addi(31, 0, triples))(as::lui(9, SPL_HPU_STACK_BASE));
  const int32_t loop = code.here();
  for (uint32_t i = 0; i < 3; ++i) code(as::fld(i, 9, static_cast<int32_t>(8 * i)));
  code(as::lw(as::a5, 9, 0))(as::addi(as::a4, 0, 0))(as::i_type(5, 0x73, 0, 0, 1));  // fsflagsi 0
  code(operation)(as::i_type(2, 0x73, as::a3, 0, 1));                               // frflags a3
  code(as::fsd(3, 8, 0))(as::sw(as::a3, 8, 8))(as::sw(as::a4, 8, 12));
  code(as::addi(9, 9, triple_bytes))(as::addi(8, 8, result_bytes))(as::addi(31, 31, -1));
  code(as::bne(31, 0, loop - code.here()))(as::ret());
  TestMachine machine(take(code.image()));
  FloatOperands singles(random, single_format);
  FloatOperands doubles(random, double_format);
  const bool is_double = (operation >> 25 & 1) != 0;
  const bool converts = operation >> 27 == 8;  // the operation converts from the other format
  FloatOperands& operands = is_double != converts ? doubles : singles;
  const uint64_t box = is_double != converts ? 0 : 0xffffffff00000000u;
  for (uint32_t i = 0; i < triples; ++i) {
    uint64_t in[3] = {operands.next(), operands.next(), operands.next()};
    if (random.chance(1, 4)) in[1] = operands.near(in[0]);
    if (random.chance(1, 2)) {  // the addend cancels the product, or nearly
      FloatContext context;
      const FloatFormat& format = is_double ? double_format : single_format;
      in[2] = operands.near(float_multiply(format, in[0], in[1], context));
    }
    for (uint64_t& bits : in) bits |= random.chance(1, 40) ? 0 : box;
    std::memcpy(machine.stack.data() + size_t{triple_bytes} * i, in, sizeof in);
  }
  return machine;
}

TEST(QemuFloat, EveryOperationGivesTheSameBitsAndFlags) {
  if (!QemuMachine::is_there()) GTEST_SKIP() << no_qemu;
  const uint64_t seed = test_seed(1);
  SCOPED_TRACE(replay("QemuFloat.EveryOperationGivesTheSameBitsAndFlags", seed));
  Random random(seed, "qemu-float");
  uint32_t compared = 0;
  for (const Operation& operation : every_operation()) {
    for (uint32_t rounding = 0; rounding < (operation.rounds ? 5u : 1u); ++rounding) {
      const uint32_t word = operation.word | (operation.rounds ? rounding << 12 : 0);
      SCOPED_TRACE(disassemble(decode(word, 0), 0));
      TestMachine machine = machine_for(word, random);
      const std::vector<uint8_t> operands = machine.stack;
      const auto expected = QemuMachine(machine).run();
      ASSERT_TRUE(expected) << "qemu did not run the program to its end";
      const Stop stop = machine.run();
      ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
      for (uint32_t i = 0; i < triples; ++i) {
        uint64_t in[3];
        std::memcpy(in, operands.data() + size_t{triple_bytes} * i, sizeof in);
        uint32_t ours[4];
        uint32_t theirs[4];
        std::memcpy(ours, machine.shared.data() + size_t{result_bytes} * i, sizeof ours);
        std::memcpy(theirs, expected->shared.data() + size_t{result_bytes} * i, sizeof theirs);
        for (int k = 0; k < 4; ++k) {
          ASSERT_EQ(ours[k], theirs[k]) << "word " << k << std::hex << " of 0x" << in[0] << " 0x" << in[1] << " 0x"
                                        << in[2];
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 20000u);
}

TEST(QemuFloat, RandomProgramsLeaveTheSameRegistersAndMemory) {
  if (!QemuMachine::is_there()) GTEST_SKIP() << no_qemu;
  const uint64_t first = test_seed(1);
  const uint64_t count = std::getenv("SPINLOOM_TEST_SEED") != nullptr ? 1 : 60;
  uint32_t flags_seen = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(replay("QemuFloat.RandomProgramsLeaveTheSameRegistersAndMemory", seed));
    Random random(seed, "qemu-float-program");
    as::Assembler code;
    code(as::lui(8, SPL_HPU_STATE_BASE))(as::addi(31, 0, 0));
    const RandomProgramOptions options{.length = 300, .rounds = 20, .user_mode = true, .floating = true};
    TestMachine machine(take(code.append(RandomProgram(random, options).build()).image()));
    machine.begin.arguments = {1, 0x80000000u, 77, 0xffffffffu};
    fill_with_numbers(random, machine.stack);
    const auto expected = QemuMachine(machine).run();
    ASSERT_TRUE(expected) << "qemu did not run the program to its end";
    const Stop stop = machine.run();
    ASSERT_EQ(stop.kind, StopKind::returned) << stop.fault.describe();
    for (unsigned i = 2; i < 32; ++i) ASSERT_EQ(machine.core.register_value(i), expected->x[i]) << "x" << i;
    for (unsigned i = 0; i < 32; ++i) ASSERT_EQ(machine.core.float_value(i), expected->f[i]) << "f" << i;
    ASSERT_EQ(machine.core.float_status(), expected->float_status);
    ASSERT_EQ(machine.stack, expected->stack);
    ASSERT_EQ(machine.shared, expected->shared);
    flags_seen |= machine.core.float_status();
  }
  EXPECT_TRUE(count == 1 || (flags_seen & 31) == 31) << flags_seen;
}

class QemuFloatCompiled : public testing::TestWithParam<const char*> {};

TEST_P(QemuFloatCompiled, GivesTheSameResult) {
  if (!QemuMachine::is_there()) GTEST_SKIP() << no_qemu;
  const Compiled compiled = compile_programs(float_programs_source, GetParam());
  if (!compiled.reason.empty()) GTEST_SKIP() << compiled.reason;
  ASSERT_FALSE(compiled.file.empty());
  for (const Program& program : float_programs) {
    SCOPED_TRACE(program.name);
    ASSERT_NO_FATAL_FAILURE(compare_with_qemu(compiled, program));
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, QemuFloatCompiled, testing::Values("-O2", "-Os", "-O0"),
                         [](const auto& level) { return std::string(level.param + 1); });

}  // namespace
}  // namespace spinloom::hpu
