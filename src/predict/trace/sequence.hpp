// Sequence - a hash of the sequence of basic types that a message consists of, whatever its datatypes: the type
// signature of the MPI standard. The sent data and the buffer that receives them must have the same hash.
//
// Contract: basic() is the Sequence of one basic type; `+` joins two that follow each other; repeated() is the same one
//   several times over. hash_of() is the hash of a message.
// Invariants: (1) the hash depends on the sequence of names and sizes only; (2) what holds an unknown type is unknown.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

// A polynomial modulo a prime: each basic type is a coefficient, its power the bytes that follow it.
class Sequence {
 public:
  Sequence() = default;
  static Sequence unknown() { return {0, 0, false}; }
  static Sequence basic(std::string_view name, int64_t bytes) {
    uint64_t hash = 0xcbf2'9ce4'8422'2325;
    for (const char letter : name) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100'0000'01b3;
    return {hash % (prime - 1) + 1, static_cast<uint64_t>(bytes), true};
  }
  static Sequence of(const TypeEntry& type) {
    if (type.signature_hash == 0) return type.size_bytes == 0 ? Sequence() : unknown();
    return {type.signature_hash, static_cast<uint64_t>(type.size_bytes), true};
  }

  [[nodiscard]] uint64_t hash() const { return is_known_ ? hash_ : 0; }
  friend Sequence operator+(const Sequence& a, const Sequence& b) {
    if (!a.is_known_ || !b.is_known_) return unknown();
    return {(product(a.hash_, power(b.bytes_)) + b.hash_) % prime, a.bytes_ + b.bytes_, true};
  }
  [[nodiscard]] Sequence repeated(int64_t times) const {
    Sequence all;
    Sequence part = *this;
    for (auto left = static_cast<uint64_t>(times < 0 ? 0 : times); left != 0; left >>= 1) {
      if ((left & 1) != 0) all = all + part;
      part = part + part;
    }
    return all;
  }

 private:
  static constexpr uint64_t prime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t base = 0x9e37'79b9'7f4a'7c15 % prime;

  Sequence(uint64_t hash, uint64_t bytes, bool is_known) : hash_(hash), bytes_(bytes), is_known_(is_known) {}
  static uint64_t product(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(a) * b % prime);
  }
  static uint64_t power(uint64_t exponent) {
    uint64_t result = 1;
    for (uint64_t square = base; exponent != 0; exponent >>= 1, square = product(square, square)) {
      if ((exponent & 1) != 0) result = product(result, square);
    }
    return result;
  }

  uint64_t hash_ = 0;  // less than the prime
  uint64_t bytes_ = 0;
  bool is_known_ = true;
};

// Returns the hash of a message; 0 if it is empty or not known.
[[nodiscard]] inline uint64_t hash_of(const TypeEntry& type, int64_t count) {
  return Sequence::of(type).repeated(count).hash();
}

}  // namespace spinloom::trace
