// File - the two files of one rank's trace: docs/formats/trace.md.
//
// Contract: rank-N.trace holds chunks that are complete; rank-N.open the one under way, which its writer maps, so that
//   it outlives the process. A chunk has three columns: definitions, the signatures of events, and their times.
// Invariants: (1) the open chunk's lengths are published by one store, behind its bytes; (2) its sequence number is the
//   number of complete chunks, or one less while the rank is between appending it and beginning the next one.
// Threads: one writer, any readers. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace spinloom::trace {

inline constexpr std::array<char, 8> trace_magic{'S', 'P', 'L', 'T', 'R', 'C', '0', '1'};
inline constexpr std::array<char, 8> open_magic{'S', 'P', 'L', 'O', 'P', 'N', '0', '1'};
inline constexpr uint32_t chunk_magic = 0x4b'4e'48'43;  // "CHNK"

enum class Packing : uint32_t { raw, zstd };
enum class Column : uint8_t { definitions, signatures, times };
inline constexpr size_t columns = 3;
// A tag stands before each definition; the definition's length and bytes follow.
enum class Tag : uint8_t { head = 1, type, comm, signature };

struct ChunkHeader {
  uint32_t magic = chunk_magic;
  uint32_t sequence = 0;
  std::array<uint32_t, columns> bytes{};  // the bytes of the columns before they are packed
  uint32_t stored_bytes = 0;
  Packing packing = Packing::raw;
  uint32_t zero = 0;
  uint64_t checksum = 0;  // checksum_of() this header, with 0 here, and the stored bytes
};
static_assert(sizeof(ChunkHeader) == 40);

// The columns lie behind it, as many bytes each as `rooms` says.
struct OpenHeader {
  static constexpr size_t bytes = 4096;
  std::array<char, 8> magic{};
  std::array<uint32_t, columns> rooms{};
  uint32_t zero = 0;
  std::atomic<uint64_t> sequence{0};
  std::atomic<uint64_t> lengths{0};  // 21 bits each, the first column's lowest
  std::atomic<uint64_t> under_way{0};  // the UnderWay word of a call that some thread is in; 0: none is
  char trouble[512] = {};  // the reason why recording has stopped; empty: it has not
};
static_assert(sizeof(OpenHeader) <= OpenHeader::bytes && std::atomic<uint64_t>::is_always_lock_free);

// A word of a call that is under way: its number plus 1, its form, and when it was entered, in ns since the beginning.
struct UnderWay {
  static constexpr unsigned form_shift = 8;
  static constexpr unsigned time_shift = 16;
  [[nodiscard]] static uint64_t word(uint8_t call, uint8_t form, uint64_t ns) {
    return (uint64_t{call} + 1) | uint64_t{form} << form_shift | ns << time_shift;
  }
};

inline constexpr unsigned length_bits = 21;
inline constexpr std::array<uint32_t, columns> open_rooms{512U << 10, 128U << 10, 384U << 10};
[[nodiscard]] inline uint64_t lengths_of(const std::array<uint32_t, columns>& bytes) {
  return bytes[0] | uint64_t{bytes[1]} << length_bits | uint64_t{bytes[2]} << (2 * length_bits);
}
[[nodiscard]] inline std::array<uint32_t, columns> bytes_of(uint64_t lengths) {
  constexpr uint64_t mask = (uint64_t{1} << length_bits) - 1;
  return {static_cast<uint32_t>(lengths & mask), static_cast<uint32_t>(lengths >> length_bits & mask),
          static_cast<uint32_t>(lengths >> (2 * length_bits) & mask)};
}

[[nodiscard]] std::string trace_path(const std::string& directory, uint32_t rank);
[[nodiscard]] std::string open_path(const std::string& directory, uint32_t rank);
[[nodiscard]] uint64_t checksum_of(ChunkHeader header, std::span<const uint8_t> stored);

}  // namespace spinloom::trace
