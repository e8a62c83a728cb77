// Description - what the table (table.hpp) says of each register, and the shape of a NIC that the table leaves open.
//
// Contract: a register is 32 bits wide. A Description is for all registers of one name, which lie one after the other;
//   how many there are is `fixed_count` times the sizes that the shape gives to its dimensions.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spinloom::registers {

enum class Register : uint8_t;  // table.hpp
inline constexpr Register no_register{255};

enum class Access : uint8_t {
  kept,     // reads give what was written
  told,     // the NIC gives the value; writing is refused
  queue,    // reading takes the next element out; writing is refused
  command,  // writing a value other than 0 does something at once; the NIC gives the value that reading returns
};

enum class Dimension : uint8_t { none, rule_sets, rules, contexts, clusters };

struct Description {
  Register id;
  std::string_view group;
  std::string_view name;
  uint32_t group_base;
  uint32_t board_address;  // the address of the first one, in the board's shape
  uint32_t fixed_count;  // the number for each element of the dimensions
  std::array<Dimension, 2> dimensions;
  Access access;
  uint32_t width;
  uint32_t reset;
  Register guard;  // writes are refused while it is 1
};

// A memory of the NIC: where a host finds it in the application's PCIe addresses, and where handlers see it.
struct MemoryWindow {
  std::string_view name;
  uint32_t host_offset;
  uint32_t nic_address;
  uint32_t size_bytes;  // its size on the board
};

// The board's numbers (FPsPIN, deliverable D4.7, 4.2), unless a profile says others.
struct Shape {
  uint32_t rule_sets = 4;  // so many contexts can be matched
  uint32_t rules = 4;      // rules of a set; the last one finds the end of a message
  uint32_t contexts = 4;
  uint32_t clusters = 2;
  uint32_t cores = 8;         // cores of a cluster
  uint32_t match_words = 32;  // words of a frame that the matching engine keeps: 66 B, rounded up to two beats of 64 B
  uint32_t handler_memory_bytes = 1u << 20;
  uint32_t program_memory_bytes = 32u << 10;
};

}  // namespace spinloom::registers
