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
  static constexpr uint8_t fill = 0xa5;
  static constexpr uint8_t spoilt = 0x3c;

  explicit Region(uint64_t length = 0) : bytes_(length + 2 * guard_bytes, fill), expected_(bytes_) {}

  static Region random(Random& random, uint64_t length) {
    Region made(length);
    for (uint64_t i = 0; i < length; ++i) made.data()[i] = static_cast<uint8_t>(random.next());
    made.expected_ = made.bytes_;
    return made;
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
    std::fill_n(data(), size(), spoilt);
    expected_ = bytes_;
  }
  [[nodiscard]] Status check(const std::string& what) const {
    if (bytes_ == expected_) return {};
    size_t at = 0;
    while (bytes_[at] == expected_[at]) ++at;
    return fail(Code::mismatch, what, ": byte ", static_cast<int64_t>(at) - static_cast<int64_t>(guard_bytes), " of ",
                size(), " is ", int{bytes_[at]}, ", not ", int{expected_[at]});
  }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> expected_;
};

}  // namespace spinloom::torture
