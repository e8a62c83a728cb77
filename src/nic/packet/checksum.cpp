#include "nic/packet/checksum.hpp"

#include <bit>
#include <cstring>

namespace spinloom::packet {

namespace {

uint64_t sum_of_halves(const uint8_t* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return (word & 0xffffffff) + (word >> 32);
}

uint16_t folded(uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// The number whose bytes in this machine's memory are those of `word` on the wire, and back.
uint16_t swapped(uint16_t word) {
  if constexpr (std::endian::native == std::endian::big) return word;
  return static_cast<uint16_t>(word << 8 | word >> 8);
}

}  // namespace

Checksum& Checksum::add(Bytes part) {
  const uint8_t* at = part.data();
  size_t left = part.size();
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t third = 0;
  uint64_t fourth = 0;
  for (; left >= 32; left -= 32, at += 32) {
    first += sum_of_halves(at);
    second += sum_of_halves(at + 8);
    third += sum_of_halves(at + 16);
    fourth += sum_of_halves(at + 24);
  }
  for (; left >= 8; left -= 8, at += 8) first += sum_of_halves(at);
  if (left > 0) {
    uint64_t rest = 0;
    std::memcpy(&rest, at, left);
    first += (rest & 0xffffffff) + (rest >> 32);
  }
  sum_ += uint64_t{folded(first)} + folded(second) + folded(third) + folded(fourth);
  return *this;
}

Checksum& Checksum::add(uint16_t word) {
  sum_ += swapped(word);
  return *this;
}

uint16_t Checksum::finish() const { return static_cast<uint16_t>(~swapped(folded(sum_))); }

uint16_t update_checksum(uint16_t checksum, uint16_t before, uint16_t after) {
  return static_cast<uint16_t>(
      ~folded(uint64_t{static_cast<uint16_t>(~checksum)} + static_cast<uint16_t>(~before) + after));
}

}  // namespace spinloom::packet
