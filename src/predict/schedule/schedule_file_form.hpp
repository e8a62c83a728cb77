// ScheduleFileForm - the parts of a file of our own form that have a fixed size, as docs/formats/schedule.md has them.
//
// Contract: behind the Head lie the ranks' numbers of programs, a ProgramEntry each, how often each is done
//   (has_passes), ShapeEntries, WideEntries (has_wide), TransferLayouts (has_transfer_layouts), a LayoutEntry each,
//   layouts, operations and edges.
// Threads: plain values. Time: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "predict/schedule/schedule.hpp"

namespace spinloom::schedule::file {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and is copied as it is");

inline constexpr std::string_view magic = "SPLSCHED";
inline constexpr uint32_t version = 1;
inline constexpr uint32_t has_transfer_layouts = 1;
inline constexpr uint32_t has_passes = 2;
inline constexpr uint32_t has_wide = 4;
inline constexpr uint32_t flags_known = has_transfer_layouts | has_passes | has_wide;

struct Head {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t flags = 0;
  uint32_t ranks = 0;
  uint32_t programs = 0;
  uint32_t shapes = 0;
  uint32_t layouts = 0;
  uint64_t operations = 0;  // the operations of all Programs
  uint64_t edges = 0;
  uint64_t blob_bytes = 0;
  uint64_t checksum = 0;  // the checksum of the whole file with 0 here
};
static_assert(sizeof(Head) == 64);

inline constexpr size_t blobs_end_at = 4;  // a multiple of it, so that operations can be used where they lie

struct ProgramEntry {
  uint32_t operations;
  uint32_t edges;
};
struct ShapeEntry {
  uint64_t size;
  uint32_t tag;
  uint8_t kind;
  uint8_t peer;
  uint8_t cpu;  // 0 in files with WideEntries
  uint8_t nic;
};
// The CPU and the NIC of a Shape, in files in which some number of them does not fit into a byte.
struct WideEntry {
  uint32_t cpu;
  uint32_t nic;
};
struct LayoutEntry {
  uint64_t blob_bytes;
  int64_t count;
  uint64_t bytes;
};
static_assert(sizeof(ShapeEntry) == 16 && sizeof(TransferLayouts) == 8 && sizeof(Operation) == 12 && sizeof(Edge) == 4);
static_assert(std::has_unique_object_representations_v<ShapeEntry> &&
              std::has_unique_object_representations_v<LayoutEntry>);

// Takes bytes in parts, of which all but the last are whole words.
class Checksum {
 public:
  explicit Checksum(Head head) {
    head.checksum = 0;
    add({reinterpret_cast<const char*>(&head), sizeof head});
  }
  void add(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
      hash_ = (hash_ ^ word) * 0x0000'0100'0000'01b3;
      hash_ ^= hash_ >> 32;
    }
  }
  [[nodiscard]] uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf2'9ce4'8422'2325;
};

}  // namespace spinloom::schedule::file
