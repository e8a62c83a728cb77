// Pieces - memory of a message that is not in one range: a list of ranges, in order.
//
// Contract: make_pieces() leaves empty ranges out, and everything behind the first `bytes_max` bytes. Offsets count
//   through the list. NICs read and write it in place; scatter() and gather() are the processor's ways.
// Invariants: (1) no range is empty; (2) each rail has a descriptor of its own, because NICs do not share counts.
// Threads: the owner of the Interfaces. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "nic/portals/descriptor.hpp"

namespace spinloom::rails {

struct Pieces {
  std::vector<nic::IovecElement> elements;
  uint64_t bytes = 0;  // the sum of the elements' lengths
  std::vector<nic::DescriptorRef> descriptors;  // one for each rail
};
using PiecesRef = std::shared_ptr<const Pieces>;

[[nodiscard]] inline PiecesRef make_pieces(std::span<const nic::IovecElement> elements, size_t rails,
                                           uint64_t bytes_max = UINT64_MAX) {
  auto pieces = std::make_shared<Pieces>();
  for (nic::IovecElement element : elements) {
    element.length = std::min<uint64_t>(element.length, bytes_max - pieces->bytes);
    if (element.length == 0) continue;
    pieces->bytes += element.length;
    pieces->elements.push_back(element);
  }
  for (size_t rail = 0; rail < rails; ++rail) pieces->descriptors.push_back(nic::Descriptor::make(pieces->elements));
  return pieces;
}

// Copies `bytes` bytes, at most those of the list, to the pieces.
inline void scatter(const Pieces& pieces, const uint8_t* from, uint64_t bytes) {
  for (const nic::IovecElement& element : pieces.elements) {
    const uint64_t length = std::min<uint64_t>(element.length, bytes);
    if (length == 0) return;
    std::memcpy(element.base, from, length);
    from += length;
    bytes -= length;
  }
}

[[nodiscard]] inline std::vector<uint8_t> gather(const Pieces& pieces) {
  std::vector<uint8_t> gathered;
  gathered.reserve(pieces.bytes);
  for (const nic::IovecElement& element : pieces.elements)
    gathered.insert(gathered.end(), element.base, element.base + element.length);
  return gathered;
}

}  // namespace spinloom::rails
