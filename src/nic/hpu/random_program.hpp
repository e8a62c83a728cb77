// RandomProgram - seeded RV32IMAC or RV32IMAFDC code that always ends, for differential tests.
//
// Contract: `length` items of random instructions (compressed ones among them) run `rounds` times. Branches and jumps
//   go forward inside the body only. No random instruction writes ra, sp (private memory), s0 = x8 (shared memory), s2
//   = x18 (the command window) or x30 (counts rounds). At the end registers hold the results of the body.
// Invariants: the program depends on the Random's state and the options only; no instruction faults.
// Threads: pure. Time: none.
#pragma once

#include "base/random.hpp"
#include "nic/hpu/assembler.hpp"

namespace spinloom::hpu {

struct RandomProgramOptions {
  uint32_t length = 60;
  uint32_t rounds = 8;
  bool reads_cycle = false;  // rdcycle makes results depend on the timing model
  bool user_mode = false;    // only what user mode has: no command window, no counters
  bool floating = false;     // half of the instructions are floating-point, with every rounding mode
};

class RandomProgram {
 public:
  RandomProgram(Random& random, const RandomProgramOptions& options) : random_(random), options_(options) {}

  assembler::Assembler build() {
    namespace as = assembler;
    std::vector<Item> items;
    for (uint32_t i = 0; i < options_.length; ++i) items.push_back(item());
    as::Assembler code;
    code(as::addi(2, 2, -2048))(as::addi(30, 0, static_cast<int32_t>(options_.rounds)));
    const int32_t loop = code.here();
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].skip > 0) patch(items, i);
      if (items[i].bytes == 2) {
        code.compressed(static_cast<uint16_t>(items[i].word));
      } else {
        code(items[i].word);
      }
    }
    code(as::addi(30, 30, -1));
    code(as::bne(30, 0, loop - code.here()));
    return code(as::jalr(0, 1, 0));
  }

 private:
  struct Item {
    uint32_t word = 0;
    uint32_t bytes = 4;
    uint32_t skip = 0;  // a branch or jump over this many items
  };

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_.below(bound)); }
  uint32_t source() { return below(32); }
  uint32_t destination() {
    for (;;) {
      const uint32_t index = below(32);
      const bool kept = index == 1 || index == 2 || index == 8 || index == 18 || index == 30;
      if (!kept) return index;
    }
  }
  int32_t immediate() {
    return random_.chance(1, 4) ? static_cast<int32_t>(below(16)) - 8 : static_cast<int32_t>(below(4096)) - 2048;
  }

  // Makes one random item. Without options_.floating it draws the numbers of integer() only, so that programs without
  // floating point stay the same.
  Item item() {
    if (options_.floating && random_.chance(1, 2)) return floating();
    return integer();
  }

  // A static rounding mode, or the one in frm.
  uint32_t rounding() { return random_.chance(1, 2) ? below(5) : 7; }

  Item floating() {
    namespace as = assembler;
    const uint32_t format = below(2);
    const uint32_t register_of = below(32);
    const int32_t place = static_cast<int32_t>(below(32)) * 8 - 128 + (random_.chance(1, 16) ? 4 : 0);
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return {as::i_type(2 + format, 0x07, register_of, 2, place)};
      case 3: return {as::s_type(2 + format, register_of, 2, place) | 4};
      case 4:
      case 5: {  // add, sub, mul, div, sqrt
        const uint32_t operation = below(5);
        const uint32_t second = operation == 4 ? 0 : below(32);
        return {as::float_operation((operation == 4 ? 0x0b : operation) << 2 | format, rounding(), register_of,
                                    below(32), second)};
      }
      case 6:
      case 7: {
        const uint32_t kind = 0x43 | below(4) << 2;
        return {as::r_type(below(32) << 2 | format, rounding(), kind, register_of, below(32), below(32))};
      }
      case 8: {  // signs, minimum and maximum; comparisons; class
        const uint32_t function = below(7);
        if (function < 3) return {as::float_operation(0x10 | format, function, register_of, below(32), below(32))};
        if (function < 5) return {as::float_operation(0x14 | format, function - 3, register_of, below(32), below(32))};
        if (function < 6) return {as::float_operation(0x50 | format, below(3), destination(), below(32), below(32))};
        return {as::float_operation(0x70 | format, 1, destination(), below(32), 0)};
      }
      case 9: {  // conversions and moves
        const uint32_t which = below(2);
        switch (below(5)) {
          case 0: return {as::float_operation(0x60 | format, rounding(), destination(), below(32), which)};
          case 1: return {as::float_operation(0x68 | format, rounding(), register_of, source(), which)};
          case 2: return {as::float_operation(0x20 | format, rounding(), register_of, below(32), 1 - format)};
          case 3: return {as::float_operation(0x70, 0, destination(), below(32), 0)};
          default: return {as::float_operation(0x78, 0, register_of, source(), 0)};
        }
      }
      case 10: {  // fsrmi with a mode that exists, frflags, fsflagsi, frcsr
        switch (below(4)) {
          case 0: return {as::i_type(5, 0x73, destination(), below(5), 2)};
          case 1: return {as::i_type(2, 0x73, destination(), 0, 1)};
          case 2: return {as::i_type(5 + below(3), 0x73, destination(), below(32), 1)};
          default: return {as::i_type(2, 0x73, destination(), 0, 3)};
        }
      }
      default: {  // c.fldsp, c.flwsp, c.fsdsp, c.fswsp
        if (random_.chance(1, 2))
          return {(format == 0 ? 0x6002u : 0x2002u) | register_of << 7 | below(2) << 12 | below(32) << 2, 2};
        return {(format == 0 ? 0xe002u : 0xa002u) | below(64) << 7 | register_of << 2, 2};
      }
    }
  }

  Item integer() {
    namespace as = assembler;
    static constexpr uint32_t operations[] = {0, 1, 4, 8, 12, 16, 20, 24, 28};
    switch (below(16)) {
      case 0:
      case 1:
      case 2: {  // register operations, multiply and divide among them
        const uint32_t upper = random_.chance(1, 3) ? 1 : 0;
        const uint32_t function = below(8);
        const bool alternative = upper == 0 && (function == 0 || function == 5) && random_.chance(1, 2);
        return {as::r_type(alternative ? 0x20 : upper, function, 0x33, destination(), source(), source())};
      }
      case 3:
      case 4:
      case 5: {  // immediate operations
        const uint32_t function = below(8);
        if (function != 1 && function != 5) return {as::i_type(function, 0x13, destination(), source(), immediate())};
        const int32_t arithmetic = function == 5 && random_.chance(1, 2) ? 0x400 : 0;
        return {as::i_type(function, 0x13, destination(), source(), static_cast<int32_t>(below(32)) | arithmetic)};
      }
      case 6:
        return {random_.chance(1, 2) ? as::lui(destination(), below(1 << 20) << 12)
                                     : as::auipc(destination(), below(1 << 20) << 12)};
      case 7:
      case 8: {  // private loads
        static constexpr uint32_t widths[] = {0, 1, 2, 4, 5};
        return {as::i_type(widths[below(5)], 0x03, destination(), 2, static_cast<int32_t>(below(256)) - 128)};
      }
      case 9: return {as::s_type(below(3), source(), 2, static_cast<int32_t>(below(256)) - 128)};
      case 10: {  // shared memory
        if (random_.chance(1, 2)) return {as::atomic(operations[below(9)], destination(), 8, source())};
        if (random_.chance(1, 2)) return {as::atomic(random_.chance(1, 2) ? 3 : 2, destination(), 8, 0)};
        return random_.chance(1, 2) ? Item{as::lw(destination(), 8, static_cast<int32_t>(below(64)))}
                                    : Item{as::sw(source(), 8, static_cast<int32_t>(below(64)))};
      }
      case 11:  // command window
        if (options_.user_mode) return compressed();
        if (random_.chance(1, 3)) return {as::lw(destination(), 18, SPL_CMD_ISSUE)};
        if (random_.chance(1, 3)) return {as::lw(destination(), 18, SPL_CMD_HPU + 4 * static_cast<int32_t>(below(3)))};
        return {as::sw(source(), 18, 4 * static_cast<int32_t>(below(SPL_CMD_WORDS)))};
      case 12: {  // forward branch
        static constexpr uint32_t conditions[] = {0, 1, 4, 5, 6, 7};
        return {as::b_type(conditions[below(6)], source(), source(), 0), 4, 1 + below(6)};
      }
      case 13: {
        if (options_.user_mode || random_.chance(1, 2)) return {as::jal(destination(), 0), 4, 1 + below(4)};
        const int32_t counter = options_.reads_cycle && random_.chance(1, 2) ? 0xc00 : 0xc02;
        return {as::i_type(2, 0x73, destination(), 0, counter)};
      }
      default: return compressed();
    }
  }

  // c.addi, c.li, c.mv, c.add, c.sub, c.xor, c.or, c.and, c.lwsp, c.swsp.
  Item compressed() {
    const uint32_t rd = destination();
    const uint32_t full = rd == 0 ? 10 : rd;
    const uint32_t six = below(2) << 12 | below(32) << 2;
    const uint32_t small = 1 + below(7);  // x9..x15: x8 is kept
    switch (below(6)) {
      case 0: return {0x0001 | full << 7 | six, 2};
      case 1: return {0x4001 | full << 7 | six, 2};
      case 2: return {0x8002 | full << 7 | (1 + below(31)) << 2, 2};
      case 3: return {0x9002 | full << 7 | (1 + below(31)) << 2, 2};
      case 4: return {0x8c01 | small << 7 | below(4) << 5 | below(8) << 2, 2};
      default:
        return random_.chance(1, 2) ? Item{0x4002 | full << 7 | six, 2}
                                    : Item{0xc002 | below(64) << 7 | source() << 2, 2};
    }
  }

  // Fills in the offset over the next `skip` items (at most to the end of the body).
  static void patch(std::vector<Item>& items, size_t at) {
    namespace as = assembler;
    int32_t offset = 4;
    for (size_t i = at + 1; i < items.size() && i <= at + items[at].skip; ++i)
      offset += static_cast<int32_t>(items[i].bytes);
    const bool is_jump = (items[at].word & 0x7f) == 0x6f;
    items[at].word |= is_jump ? as::j_type(0, offset) : as::b_type(0, 0, 0, offset);
  }

  Random& random_;
  RandomProgramOptions options_;
};

}  // namespace spinloom::hpu
