// The C extension: translates each compressed instruction to its 32-bit form.
#include "nic/hpu/decode.hpp"

namespace spinloom::hpu {
namespace {

constexpr uint32_t opcode_load = 0x03;
constexpr uint32_t opcode_float_load = 0x07;
constexpr uint32_t opcode_immediate = 0x13;
constexpr uint32_t opcode_store = 0x23;
constexpr uint32_t opcode_float_store = 0x27;
constexpr uint32_t opcode_register = 0x33;
constexpr uint32_t opcode_lui = 0x37;
constexpr uint32_t opcode_branch = 0x63;
constexpr uint32_t opcode_jalr = 0x67;
constexpr uint32_t opcode_jal = 0x6f;
constexpr uint32_t word = 2;   // funct3 of lw, sw, flw and fsw
constexpr uint32_t twice = 3;  // funct3 of fld and fsd

constexpr uint32_t i_form(uint32_t opcode, uint32_t function, uint32_t rd, uint32_t rs1, uint32_t immediate) {
  return (immediate & 0xfff) << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode;
}
constexpr uint32_t r_form(uint32_t upper, uint32_t function, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return upper << 25 | rs2 << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode_register;
}
constexpr uint32_t s_form(uint32_t opcode, uint32_t function, uint32_t rs1, uint32_t rs2, uint32_t offset) {
  return (offset >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | function << 12 | (offset & 0x1f) << 7 | opcode;
}
constexpr uint32_t b_form(uint32_t function, uint32_t rs1, uint32_t offset) {
  return (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3f) << 25 | rs1 << 15 | function << 12 | (offset >> 1 & 0xf) << 8 |
         (offset >> 11 & 1) << 7 | opcode_branch;
}
constexpr uint32_t j_form(uint32_t rd, uint32_t offset) {
  return (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3ff) << 21 | (offset >> 11 & 1) << 20 |
         (offset >> 12 & 0xff) << 12 | rd << 7 | opcode_jal;
}

// A field of the instruction, moved to where its lowest bit belongs in the immediate.
constexpr uint32_t field(uint32_t raw, unsigned low, unsigned count, unsigned to) {
  return (raw >> low & ((1u << count) - 1)) << to;
}
constexpr uint32_t sign_extend(uint32_t value, unsigned count) {
  return static_cast<uint32_t>(static_cast<int32_t>(value << (32 - count)) >> (32 - count));
}
constexpr uint32_t small_register(uint32_t raw, unsigned low) { return 8 + (raw >> low & 7); }

constexpr uint32_t immediate_6(uint32_t raw) { return sign_extend(field(raw, 2, 5, 0) | field(raw, 12, 1, 5), 6); }
constexpr uint32_t offset_word(uint32_t raw) {
  return field(raw, 6, 1, 2) | field(raw, 10, 3, 3) | field(raw, 5, 1, 6);
}
constexpr uint32_t offset_twice(uint32_t raw) { return field(raw, 10, 3, 3) | field(raw, 5, 2, 6); }
constexpr uint32_t stack_load_word(uint32_t raw) {
  return field(raw, 4, 3, 2) | field(raw, 12, 1, 5) | field(raw, 2, 2, 6);
}
constexpr uint32_t stack_load_twice(uint32_t raw) {
  return field(raw, 5, 2, 3) | field(raw, 12, 1, 5) | field(raw, 2, 3, 6);
}
constexpr uint32_t stack_store_word(uint32_t raw) { return field(raw, 9, 4, 2) | field(raw, 7, 2, 6); }
constexpr uint32_t stack_store_twice(uint32_t raw) { return field(raw, 10, 3, 3) | field(raw, 7, 3, 6); }
constexpr uint32_t offset_jump(uint32_t raw) {
  return sign_extend(field(raw, 3, 3, 1) | field(raw, 11, 1, 4) | field(raw, 2, 1, 5) | field(raw, 7, 1, 6) |
                         field(raw, 6, 1, 7) | field(raw, 9, 2, 8) | field(raw, 8, 1, 10) | field(raw, 12, 1, 11),
                     12);
}
constexpr uint32_t offset_branch(uint32_t raw) {
  return sign_extend(
      field(raw, 3, 2, 1) | field(raw, 10, 2, 3) | field(raw, 2, 1, 5) | field(raw, 5, 2, 6) | field(raw, 12, 1, 8), 9);
}

uint32_t expand_quadrant_0(uint32_t raw) {
  const uint32_t rs1 = small_register(raw, 7);
  const uint32_t other = small_register(raw, 2);
  switch (raw >> 13) {
    case 0: {  // c.addi4spn
      const uint32_t offset = field(raw, 6, 1, 2) | field(raw, 5, 1, 3) | field(raw, 11, 2, 4) | field(raw, 7, 4, 6);
      return offset == 0 ? 0 : i_form(opcode_immediate, 0, other, 2, offset);
    }
    case 1: return i_form(opcode_float_load, twice, other, rs1, offset_twice(raw));   // c.fld
    case 2: return i_form(opcode_load, word, other, rs1, offset_word(raw));           // c.lw
    case 3: return i_form(opcode_float_load, word, other, rs1, offset_word(raw));     // c.flw
    case 5: return s_form(opcode_float_store, twice, rs1, other, offset_twice(raw));  // c.fsd
    case 6: return s_form(opcode_store, word, rs1, other, offset_word(raw));          // c.sw
    case 7: return s_form(opcode_float_store, word, rs1, other, offset_word(raw));    // c.fsw
    default: return 0;
  }
}

uint32_t expand_arithmetic(uint32_t raw) {
  const uint32_t rd = small_register(raw, 7);
  const uint32_t rs2 = small_register(raw, 2);
  const bool bit_12 = (raw >> 12 & 1) != 0;
  switch (raw >> 10 & 3) {
    case 0: return bit_12 ? 0 : i_form(opcode_immediate, 5, rd, rd, field(raw, 2, 5, 0));          // c.srli
    case 1: return bit_12 ? 0 : i_form(opcode_immediate, 5, rd, rd, 0x400 | field(raw, 2, 5, 0));  // c.srai
    case 2: return i_form(opcode_immediate, 7, rd, rd, immediate_6(raw));                          // c.andi
    default: break;
  }
  if (bit_12) return 0;  // c.subw, c.addw: 64-bit only
  switch (raw >> 5 & 3) {
    case 0: return r_form(0x20, 0, rd, rd, rs2);  // c.sub
    case 1: return r_form(0, 4, rd, rd, rs2);     // c.xor
    case 2: return r_form(0, 6, rd, rd, rs2);     // c.or
    default: return r_form(0, 7, rd, rd, rs2);    // c.and
  }
}

uint32_t expand_quadrant_1(uint32_t raw) {
  const uint32_t rd = raw >> 7 & 31;
  switch (raw >> 13) {
    case 0: return i_form(opcode_immediate, 0, rd, rd, immediate_6(raw));  // c.addi, c.nop
    case 1: return j_form(1, offset_jump(raw));                           // c.jal
    case 2: return i_form(opcode_immediate, 0, rd, 0, immediate_6(raw));   // c.li
    case 3:
      if (immediate_6(raw) == 0) return 0;
      if (rd == 2) {  // c.addi16sp
        const uint32_t offset = field(raw, 6, 1, 4) | field(raw, 2, 1, 5) | field(raw, 5, 1, 6) | field(raw, 3, 2, 7) |
                                field(raw, 12, 1, 9);
        return i_form(opcode_immediate, 0, 2, 2, sign_extend(offset, 10));
      }
      return immediate_6(raw) << 12 | rd << 7 | opcode_lui;  // c.lui
    case 4: return expand_arithmetic(raw);
    case 5: return j_form(0, offset_jump(raw));                               // c.j
    case 6: return b_form(0, small_register(raw, 7), offset_branch(raw));     // c.beqz
    default: return b_form(1, small_register(raw, 7), offset_branch(raw));    // c.bnez
  }
}

uint32_t expand_quadrant_2(uint32_t raw) {
  const uint32_t rd = raw >> 7 & 31;
  const uint32_t rs2 = raw >> 2 & 31;
  const bool bit_12 = (raw >> 12 & 1) != 0;
  switch (raw >> 13) {
    case 0: return bit_12 ? 0 : i_form(opcode_immediate, 1, rd, rd, rs2);  // c.slli
    case 1: return i_form(opcode_float_load, twice, rd, 2, stack_load_twice(raw));              // c.fldsp
    case 2: return rd == 0 ? 0 : i_form(opcode_load, word, rd, 2, stack_load_word(raw));        // c.lwsp
    case 3: return i_form(opcode_float_load, word, rd, 2, stack_load_word(raw));                // c.flwsp
    case 4:
      if (rs2 != 0) return bit_12 ? r_form(0, 0, rd, rd, rs2) : r_form(0, 0, rd, 0, rs2);  // c.add, c.mv
      if (rd != 0) return i_form(opcode_jalr, 0, bit_12 ? 1 : 0, rd, 0);                   // c.jalr, c.jr
      return bit_12 ? 0x00100073u : 0;                                                     // c.ebreak
    case 5: return s_form(opcode_float_store, twice, 2, rs2, stack_store_twice(raw));  // c.fsdsp
    case 6: return s_form(opcode_store, word, 2, rs2, stack_store_word(raw));          // c.swsp
    case 7: return s_form(opcode_float_store, word, 2, rs2, stack_store_word(raw));    // c.fswsp
    default: return 0;
  }
}

}  // namespace

uint32_t expand_compressed(uint16_t raw) {
  switch (raw & 3) {
    case 0: return expand_quadrant_0(raw);
    case 1: return expand_quadrant_1(raw);
    case 2: return expand_quadrant_2(raw);
    default: return 0;
  }
}

}  // namespace spinloom::hpu
