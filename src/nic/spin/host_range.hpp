// HostRange - host memory that a handler is offered: one range, or the elements of a list.
//
// Contract: offsets count from the start, through the elements. pieces() requires that the bytes lie inside.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nic/spin/iovec.hpp"

namespace spinloom::spin {

struct HostRange {
  uint8_t* start = nullptr;
  uint64_t length = 0;
  IovecView list = {};  // the elements of a list; then `start` is not used

  [[nodiscard]] bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
  // The pieces of a range, one for each element that it touches.
  [[nodiscard]] std::vector<IovecElement> pieces(uint64_t offset, uint64_t bytes) const {
    if (!list.exists()) return {{start + offset, bytes}};
    return pieces_of(list, offset, bytes);
  }
  // Returns the address of the bytes; nothing if they lie outside, or in several elements of a list. For 0 bytes it
  // returns `start`.
  [[nodiscard]] std::optional<uint8_t*> contiguous(uint64_t offset, uint64_t bytes) const {
    if (!holds(offset, bytes)) return std::nullopt;
    if (bytes == 0) return start;
    const std::vector<IovecElement> touched = pieces(offset, bytes);
    return touched.size() == 1 ? std::optional(touched.front().base) : std::nullopt;
  }
};

}  // namespace spinloom::spin
