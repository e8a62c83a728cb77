// MessageBits - the match bits and the eight bytes of header data that messages between Rails carry.
//
// Contract: three portal table entries on each rail. `tags` matches the user's tags, all 64 bits. `words` takes active
//   messages. `keys` takes accesses by a key; the highest byte of the match bits is the kind of the key.
// Invariants: (1) header data of a message in `tags` is 0 for an eager message; otherwise it describes a message whose
//   bytes are read or put later (a request to send); (2) a slot is used again under the next of 128 generations, so
//   that a word that comes late for one message is not taken for a word of the slot's next message.
// Threads: pure functions. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rails::bits {

// The kinds of keys. `finished` and `taken` differ in one bit, so that one entry takes both.
//   exposed: memory of a long message at its sender        finished: the word that a part has been read
//   taken: the word that counts messages taken             user: memory under a key of the user
//   landing: memory of a receive, open to its sender       clear: the word that a message may be put
enum class KeyKind : uint8_t { exposed = 1, finished = 2, taken = 3, user = 4, landing = 5, clear = 6 };
inline constexpr uint64_t finished_or_taken = uint64_t{1} << 56;

[[nodiscard]] constexpr uint64_t match_bits_of(KeyKind kind, uint64_t number) {
  return uint64_t{static_cast<uint8_t>(kind)} << 56 | number;
}
inline constexpr uint64_t number_mask = (uint64_t{1} << 56) - 1;

inline constexpr uint64_t generation_mask = uint64_t{0x7f} << 16;
inline constexpr uint32_t slot_count = 1 << 16;
inline constexpr uint32_t generation_count = 1 << 7;
inline constexpr uint64_t bytes_max = (uint64_t{1} << 40) - 1;

// Names a long message at its sender.
struct Slot {
  uint32_t number = 0;
  uint32_t generation = 0;
  bool operator==(const Slot&) const = default;
};
[[nodiscard]] constexpr uint64_t number_of(Slot slot) { return uint64_t{slot.generation} << 16 | slot.number; }
[[nodiscard]] constexpr Slot slot_of(uint64_t number) {
  return {static_cast<uint32_t>(number % slot_count), static_cast<uint32_t>(number >> 16) % generation_count};
}

// The header data of a request to send: 1, slot, bytes.
struct Request {
  Slot slot;
  uint64_t bytes = 0;
};
[[nodiscard]] constexpr uint64_t hdr_data_of(Request request) {
  return uint64_t{1} << 63 | number_of(request.slot) << 40 | request.bytes;
}
[[nodiscard]] constexpr bool is_request(uint64_t hdr_data) { return hdr_data >> 63 != 0; }
[[nodiscard]] constexpr Request request_of(uint64_t hdr_data) {
  return {slot_of(hdr_data >> 40 & 0x7fffff), hdr_data & bytes_max};
}

// The header data of the word that ends a part of a message: the part's number, and the number of parts.
struct Part {
  uint32_t number = 0;
  uint32_t parts = 1;
};
[[nodiscard]] constexpr uint64_t hdr_data_of(Part part) { return uint64_t{part.parts} << 8 | part.number; }
[[nodiscard]] constexpr Part part_of(uint64_t hdr_data) {
  return {static_cast<uint32_t>(hdr_data & 0xff), static_cast<uint32_t>(hdr_data >> 8 & 0xff)};
}

}  // namespace spinloom::rails::bits
