// Region - memory that NICs write or read, between guard zones, with its expected bytes.
//
// Contract: expect() notes what the NIC will write. check() compares every byte, gaps and guards included. spoil()
//   overwrites all bytes, as a host may once the memory belongs to it again: check() then finds later writes, and
//   later reads bring wrong data.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"

namespace spinloom::torture {

class Region {
 public:
  static constexpr size_t guard_bytes = 32;
  static constexpr uint8_t fill_byte = 0xa5;
  static constexpr uint8_t spoilt_byte = 0x3c;

  explicit Region(uint64_t length = 0) : bytes_(length + 2 * guard_bytes, fill_byte), expected_(bytes_) {}

  static Region random(Random& random, uint64_t length) {
    Region region(length);
    for (uint64_t i = 0; i < length; ++i) region.data()[i] = static_cast<uint8_t>(random.next());
    region.expected_ = region.bytes_;
    return region;
  }

  [[nodiscard]] uint8_t* data() { return bytes_.data() + guard_bytes; }
  [[nodiscard]] const uint8_t* data() const { return bytes_.data() + guard_bytes; }
  [[nodiscard]] uint8_t* expected() { return expected_.data() + guard_bytes; }
  [[nodiscard]] uint64_t size() const { return bytes_.size() - 2 * guard_bytes; }

  void expect(uint64_t offset, const uint8_t* from, uint64_t length) {
    SPL_ASSERT(offset <= size() && length <= size() - offset, offset, " + ", length, " of ", size());
    if (length > 0) std::copy_n(from, length, expected() + offset);
  }
  void spoil() {
    std::fill_n(data(), size(), spoilt_byte);
    expected_ = bytes_;
  }
  [[nodiscard]] Status check(const std::string& what) const {
    if (bytes_ == expected_) return {};
    size_t index = 0;
    while (bytes_[index] == expected_[index]) ++index;
    return fail(Code::mismatch, what, ": byte ", static_cast<int64_t>(index) - static_cast<int64_t>(guard_bytes),
                " of ", size(), " is ", int{bytes_[index]}, ", not ", int{expected_[index]});
  }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> expected_;
};

}  // namespace spinloom::torture
