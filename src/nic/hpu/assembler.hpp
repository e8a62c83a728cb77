// Assembler - RV32 instruction words by name, for tests and benchmarks that need exact code.
//
// Contract: encoders for each format. Assembler collects words from SPL_HPU_IMAGE_BASE on. It resolves no labels:
//   branch offsets are given in bytes, or taken from here() before and after. Operands are masked, not checked.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nic/hpu/elf.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::hpu::assembler {

enum Register : uint32_t {
  zero,
  ra,
  sp,
  gp,
  tp,
  t0,
  t1,
  t2,
  s0,
  s1,
  a0,
  a1,
  a2,
  a3,
  a4,
  a5,
  a6,
  a7,
  s2,
  s3,
  s4,
  s5,
  s6,
  s7,
  s8,
  s9,
  s10,
  s11,
  t3,
  t4,
  t5,
  t6
};

constexpr uint32_t r_type(uint32_t upper, uint32_t function, uint32_t opcode, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return upper << 25 | rs2 << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode;
}
constexpr uint32_t i_type(uint32_t function, uint32_t opcode, uint32_t rd, uint32_t rs1, int32_t immediate) {
  return static_cast<uint32_t>(immediate) << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode;
}
constexpr uint32_t s_type(uint32_t function, uint32_t rs2, uint32_t rs1, int32_t immediate) {
  const uint32_t value = static_cast<uint32_t>(immediate);
  return (value >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | function << 12 | (value & 31) << 7 | 0x23;
}
constexpr uint32_t b_type(uint32_t function, uint32_t rs1, uint32_t rs2, int32_t offset) {
  const uint32_t value = static_cast<uint32_t>(offset);
  return (value >> 12 & 1) << 31 | (value >> 5 & 0x3f) << 25 | rs2 << 20 | rs1 << 15 | function << 12 |
         (value >> 1 & 15) << 8 | (value >> 11 & 1) << 7 | 0x63;
}
constexpr uint32_t j_type(uint32_t rd, int32_t offset) {
  const uint32_t value = static_cast<uint32_t>(offset);
  return (value >> 20 & 1) << 31 | (value >> 1 & 0x3ff) << 21 | (value >> 11 & 1) << 20 | (value >> 12 & 0xff) << 12 |
         rd << 7 | 0x6f;
}

constexpr uint32_t lui(uint32_t rd, uint32_t value) { return (value & 0xfffff000u) | rd << 7 | 0x37; }
constexpr uint32_t auipc(uint32_t rd, uint32_t value) { return (value & 0xfffff000u) | rd << 7 | 0x17; }
constexpr uint32_t addi(uint32_t rd, uint32_t rs1, int32_t value) { return i_type(0, 0x13, rd, rs1, value); }
constexpr uint32_t slli(uint32_t rd, uint32_t rs1, int32_t value) { return i_type(1, 0x13, rd, rs1, value); }
constexpr uint32_t srli(uint32_t rd, uint32_t rs1, int32_t value) { return i_type(5, 0x13, rd, rs1, value); }
constexpr uint32_t andi(uint32_t rd, uint32_t rs1, int32_t value) { return i_type(7, 0x13, rd, rs1, value); }
constexpr uint32_t add(uint32_t rd, uint32_t rs1, uint32_t rs2) { return r_type(0, 0, 0x33, rd, rs1, rs2); }
constexpr uint32_t sub(uint32_t rd, uint32_t rs1, uint32_t rs2) { return r_type(0x20, 0, 0x33, rd, rs1, rs2); }
constexpr uint32_t xor_(uint32_t rd, uint32_t rs1, uint32_t rs2) { return r_type(0, 4, 0x33, rd, rs1, rs2); }
constexpr uint32_t mul(uint32_t rd, uint32_t rs1, uint32_t rs2) { return r_type(1, 0, 0x33, rd, rs1, rs2); }
constexpr uint32_t div(uint32_t rd, uint32_t rs1, uint32_t rs2) { return r_type(1, 4, 0x33, rd, rs1, rs2); }
constexpr uint32_t lw(uint32_t rd, uint32_t rs1, int32_t offset) { return i_type(2, 0x03, rd, rs1, offset); }
constexpr uint32_t sw(uint32_t rs2, uint32_t rs1, int32_t offset) { return s_type(2, rs2, rs1, offset); }
constexpr uint32_t flw(uint32_t rd, uint32_t rs1, int32_t offset) { return i_type(2, 0x07, rd, rs1, offset); }
constexpr uint32_t fld(uint32_t rd, uint32_t rs1, int32_t offset) { return i_type(3, 0x07, rd, rs1, offset); }
constexpr uint32_t fsw(uint32_t rs2, uint32_t rs1, int32_t offset) { return s_type(2, rs2, rs1, offset) | 4; }
constexpr uint32_t fsd(uint32_t rs2, uint32_t rs1, int32_t offset) { return s_type(3, rs2, rs1, offset) | 4; }
// `upper` holds the operation's five bits, then the format's two, S 0 or D 1.
constexpr uint32_t float_operation(uint32_t upper, uint32_t rounding, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return r_type(upper, rounding, 0x53, rd, rs1, rs2);
}
constexpr uint32_t beq(uint32_t rs1, uint32_t rs2, int32_t offset) { return b_type(0, rs1, rs2, offset); }
constexpr uint32_t bne(uint32_t rs1, uint32_t rs2, int32_t offset) { return b_type(1, rs1, rs2, offset); }
constexpr uint32_t jal(uint32_t rd, int32_t offset) { return j_type(rd, offset); }
constexpr uint32_t jalr(uint32_t rd, uint32_t rs1, int32_t offset) { return i_type(0, 0x67, rd, rs1, offset); }
constexpr uint32_t ret() { return jalr(zero, ra, 0); }
constexpr uint32_t nop() { return addi(zero, zero, 0); }
// `operation` holds the upper five bits, for example 0 for amoadd.
constexpr uint32_t atomic(uint32_t operation, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return operation << 27 | rs2 << 20 | rs1 << 15 | 2u << 12 | rd << 7 | 0x2f;
}
constexpr uint32_t amoadd(uint32_t rd, uint32_t rs1, uint32_t rs2) { return atomic(0x00, rd, rs1, rs2); }
constexpr uint32_t amoswap(uint32_t rd, uint32_t rs1, uint32_t rs2) { return atomic(0x01, rd, rs1, rs2); }
constexpr uint32_t lr(uint32_t rd, uint32_t rs1) { return atomic(0x02, rd, rs1, 0); }
constexpr uint32_t sc(uint32_t rd, uint32_t rs1, uint32_t rs2) { return atomic(0x03, rd, rs1, rs2); }
constexpr uint32_t rdcycle(uint32_t rd) { return i_type(2, 0x73, rd, 0, static_cast<int32_t>(0xc00u)); }

class Assembler {
 public:
  Assembler& operator()(uint32_t word) {
    halfwords_.push_back(static_cast<uint16_t>(word));
    halfwords_.push_back(static_cast<uint16_t>(word >> 16));
    return *this;
  }
  Assembler& compressed(uint16_t halfword) {
    halfwords_.push_back(halfword);
    return *this;
  }
  // Appends the code of another Assembler, which must be position-independent.
  Assembler& append(const Assembler& other) {
    halfwords_.insert(halfwords_.end(), other.halfwords_.begin(), other.halfwords_.end());
    return *this;
  }
  // Byte offset of the next instruction.
  [[nodiscard]] int32_t here() const { return static_cast<int32_t>(halfwords_.size() * 2); }

  [[nodiscard]] Result<Image> image(std::map<std::string, uint32_t> symbols = {}) const {
    Segment segment;
    segment.address = SPL_HPU_IMAGE_BASE;
    segment.executable = true;
    for (const uint16_t halfword : halfwords_) {
      segment.bytes.push_back(static_cast<uint8_t>(halfword));
      segment.bytes.push_back(static_cast<uint8_t>(halfword >> 8));
    }
    return Image::from_segments({&segment, 1}, std::move(symbols));
  }

 private:
  std::vector<uint16_t> halfwords_;
};

}  // namespace spinloom::hpu::assembler
