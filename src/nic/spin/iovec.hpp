// Iovec - host memory in pieces, addressed by offsets in their concatenation.
//
// Contract: ends_of() says where each element ends in the concatenation. pieces_of() cuts a range of the
//   concatenation into contiguous pieces, in order, none of them empty. Elements may be empty.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.hpp"

namespace spinloom::spin {

// One element of a scatter list: ptl_iovec_t.
struct IovecElement {
  uint8_t* base = nullptr;
  uint64_t length = 0;
};

// Elements and their ends, both owned by somebody else.
struct IovecView {
  std::span<const IovecElement> elements;
  std::span<const uint64_t> ends;

  [[nodiscard]] bool exists() const { return !elements.empty(); }
  [[nodiscard]] uint64_t length() const { return ends.empty() ? 0 : ends.back(); }
};

[[nodiscard]] inline std::vector<uint64_t> ends_of(std::span<const IovecElement> elements) {
  std::vector<uint64_t> ends;
  ends.reserve(elements.size());
  uint64_t end = 0;
  for (const IovecElement& element : elements) ends.push_back(end += element.length);
  return ends;
}

// The element that holds this place; the number of elements if none does.
[[nodiscard]] inline size_t element_at(const IovecView& list, uint64_t offset) {
  return static_cast<size_t>(std::upper_bound(list.ends.begin(), list.ends.end(), offset) - list.ends.begin());
}

[[nodiscard]] inline std::vector<IovecElement> pieces_of(const IovecView& list, uint64_t offset, uint64_t length) {
  SPL_ASSERT(offset <= list.length() && length <= list.length() - offset, length, " B at ", offset, " of a list");
  std::vector<IovecElement> pieces;
  for (size_t index = element_at(list, offset); length > 0; ++index) {
    const IovecElement& element = list.elements[index];
    const uint64_t within = offset - (list.ends[index] - element.length);
    const uint64_t bytes = std::min(length, element.length - within);
    if (bytes > 0) pieces.push_back({element.base + within, bytes});
    offset += bytes;
    length -= bytes;
  }
  return pieces;
}

}  // namespace spinloom::spin
