// Code - how the parts of a trace are written as bytes: docs/formats/trace.md.
//
// Contract: encode() appends. decode() takes what encode() wrote, and older heads and communicators without their last
//   field. It returns false if the bytes end early, are left over, or name something that is not there.
// Invariants: (1) equal signatures have equal bytes; (2) no bytes make decode() allocate more than a small multiple of
//   their number.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

using Bytes = std::vector<uint8_t>;

// Facts about the whole trace, which stand before all its other parts.
struct Head {
  uint32_t rank = 0;
  uint32_t ranks = 0;
  uint64_t begun_ns = 0;
  uint64_t begun_unix_ns = 0;
  std::string host;
  std::string mpi;
  std::string program;
  bool is_cpu_time = false;
};

inline constexpr size_t varint_bytes_max = 10;
// Writes seven bits a byte, the lowest first; returns the place behind the last byte.
inline uint8_t* put_varint(uint8_t* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<uint8_t>(value);
  return to;
}

// Reads varints and bytes. After the first read that fails, the decoder has failed, and all later reads give 0.
class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_at_end() const { return at_ == end_; }
  [[nodiscard]] bool is_complete() const { return !has_failed_ && is_at_end(); }
  [[nodiscard]] size_t remaining() const { return static_cast<size_t>(end_ - at_); }
  uint64_t varint();
  int64_t signed_varint();  // zigzag: 0, -1, 1, -2, ...
  uint32_t index();  // `none` is 0, all others are one more
  int32_t int32();
  std::span<const uint8_t> bytes(uint64_t length);
  std::string string();
  // Reads the length of a list whose entries take at least a byte each.
  size_t length();

 private:
  uint64_t fail() {
    has_failed_ = true;
    at_ = end_;
    return 0;
  }
  const uint8_t* at_;
  const uint8_t* end_;
  bool has_failed_ = false;
};

void encode(const Head& head, Bytes& bytes);
void encode(const TypeEntry& type, Bytes& bytes);
void encode(const CommEntry& comm, Bytes& bytes);
void encode(const Signature& signature, Bytes& bytes);
[[nodiscard]] bool decode(std::span<const uint8_t> bytes, Head& head);
[[nodiscard]] bool decode(std::span<const uint8_t> bytes, TypeEntry& type);
[[nodiscard]] bool decode(std::span<const uint8_t> bytes, CommEntry& comm);
// The signature may name only types and communicators of `trace`.
[[nodiscard]] bool decode(std::span<const uint8_t> bytes, const RankTrace& trace, Signature& signature);

}  // namespace spinloom::trace
