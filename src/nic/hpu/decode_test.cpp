// Decoding: compressed instructions against their 32-bit forms, and totality.
#include "nic/hpu/decode.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

struct Expansion {
  const char* name;
  uint16_t compressed;
  uint32_t expanded;
};

// Both columns were assembled by GNU as 2.40 from the same mnemonics (with and without the C extension).
const Expansion expansions[] = {
    {"c.addi4spn a2, sp, 1020", 0x1ff0, 0x3fc10613},
    {"c.addi4spn s0, sp, 4", 0x0040, 0x00410413},
    {"c.lw a0, 124(a5)", 0x5fe8, 0x07c7a503},
    {"c.lw s1, 4(a3)", 0x42c4, 0x0046a483},
    {"c.sw a5, 64(s0)", 0xc03c, 0x04f42023},
    {"c.nop", 0x0001, 0x00000013},
    {"c.addi a0, -32", 0x1501, 0xfe050513},
    {"c.addi t6, 31", 0x0ffd, 0x01ff8f93},
    {"c.jal .+2046", 0x2ffd, 0x7fe000ef},
    {"c.jal .-2048", 0x3001, 0x801ff0ef},
    {"c.li t0, -1", 0x52fd, 0xfff00293},
    {"c.li a7, 31", 0x48fd, 0x01f00893},
    {"c.addi16sp sp, -512", 0x7101, 0xe0010113},
    {"c.addi16sp sp, 496", 0x617d, 0x1f010113},
    {"c.lui a0, 0xfffe0", 0x7501, 0xfffe0537},
    {"c.lui t1, 31", 0x637d, 0x0001f337},
    {"c.srli a4, 31", 0x837d, 0x01f75713},
    {"c.srai a4, 1", 0x8705, 0x40175713},
    {"c.andi s1, -7", 0x98e5, 0xff94f493},
    {"c.sub a0, a1", 0x8d0d, 0x40b50533},
    {"c.xor a2, a3", 0x8e35, 0x00d64633},
    {"c.or a4, a5", 0x8f5d, 0x00f76733},
    {"c.and s0, s1", 0x8c65, 0x00947433},
    {"c.j .-2", 0xbffd, 0xfffff06f},
    {"c.j .+1366", 0xab99, 0x5560006f},
    {"c.beqz a5, .+254", 0xcffd, 0x0e078f63},
    {"c.beqz s0, .-256", 0xd001, 0xf00400e3},
    {"c.bnez a0, .-2", 0xfd7d, 0xfe051fe3},
    {"c.slli a3, 17", 0x06c6, 0x01169693},
    {"c.lwsp ra, 252(sp)", 0x50fe, 0x0fc12083},
    {"c.lwsp s11, 4(sp)", 0x4d92, 0x00412d83},
    {"c.jr ra", 0x8082, 0x00008067},
    {"c.jalr t1", 0x9302, 0x000300e7},
    {"c.mv a0, t6", 0x857e, 0x01f00533},
    {"c.add t6, a0", 0x9faa, 0x00af8fb3},
    {"c.ebreak", 0x9002, 0x00100073},
    {"c.swsp ra, 252(sp)", 0xdf86, 0x0e112e23},
    {"c.swsp zero, 0(sp)", 0xc002, 0x00012023},
    // From the tables of the manual's chapter on compressed instructions; qemu runs them in qemu_float_test.cpp.
    {"c.fld fa0, 248(a5)", 0x3fe8, 0x0f87b507},
    {"c.flw fa0, 124(a5)", 0x7fe8, 0x07c7a507},
    {"c.fsd fs1, 64(s0)", 0xa024, 0x04943027},
    {"c.fsw fs1, 64(s0)", 0xe024, 0x04942027},
    {"c.fldsp ft0, 504(sp)", 0x307e, 0x1f813007},
    {"c.flwsp ft1, 252(sp)", 0x70fe, 0x0fc12087},
    {"c.fsdsp ft11, 504(sp)", 0xbffe, 0x1ff13c27},
    {"c.fswsp ft0, 4(sp)", 0xe202, 0x00012227},
};

TEST(Decode, CompressedInstructionsExpandAsTheAssemblerSays) {
  for (const Expansion& test : expansions) {
    EXPECT_EQ(expand_compressed(test.compressed), test.expanded) << test.name;
    const Op short_op = decode(test.compressed, 0x1000);
    const Op long_op = decode(test.expanded, 0x1000);
    EXPECT_EQ(short_op.code, long_op.code) << test.name;
    EXPECT_EQ(short_op.rd, long_op.rd) << test.name;
    EXPECT_EQ(short_op.rs1, long_op.rs1) << test.name;
    EXPECT_EQ(short_op.rs2, long_op.rs2) << test.name;
    EXPECT_EQ(short_op.immediate, long_op.immediate) << test.name;
    EXPECT_EQ(short_op.slots, 1) << test.name;
    EXPECT_EQ(long_op.slots, 2) << test.name;
    EXPECT_EQ(short_op.raw, test.compressed) << test.name;
  }
}

TEST(Decode, ReservedCompressedFormsAreIllegal) {
  const uint16_t reserved[] = {
      0x0000,  // all zeros
      0x0004,  // c.addi4spn with a zero offset
      0x6101,  // c.addi16sp with a zero offset
      0x6501,  // c.lui with a zero immediate
      0x9001,  // c.srli by 32
      0x9401,  // c.srai by 32
      0x9c01,  // c.subw
      0x1002,  // c.slli by 32
      0x4002,  // c.lwsp to x0
      0x8002,  // c.jr x0
  };
  for (const uint16_t raw : reserved) EXPECT_EQ(decode(raw, 0).code, OpCode::illegal) << std::hex << raw;
}

TEST(Decode, IsTotalAndKeepsItsInvariants) {
  const uint64_t seed = test_seed(1);
  SCOPED_TRACE(replay("Decode.IsTotal*", seed));
  Random random(seed, "decode");
  unsigned legal = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint32_t raw = static_cast<uint32_t>(random.next());
    const Op op = decode(raw, 0x10000000);
    ASSERT_LE(op.code, OpCode::no_execute) << raw;
    ASSERT_TRUE(op.rd >= 1 && op.rd < register_slots) << raw;
    ASSERT_TRUE(op.rd <= register_discard || is_float(op.code) || op.code == OpCode::illegal) << raw;
    for (const uint8_t source : {op.rs1, op.rs2, op.rs3}) {
      ASSERT_TRUE(source < 32 || (source >= register_float && source < register_slots)) << raw;
    }
    ASSERT_EQ(op.slots, is_compressed(raw) ? 1 : 2) << raw;
    legal += op.code != OpCode::illegal;
  }
  EXPECT_GT(legal, 50000u);  // the sweep reached real instructions
}

}  // namespace
}  // namespace spinloom::hpu
