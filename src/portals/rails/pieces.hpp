// Pieces - memory of a message that is not in one range: a list of ranges, in order.
//
// Contract: make_pieces() leaves empty ranges out, and everything behind the first `most` bytes. Offsets count through
//   the list. NICs read and write it in place; scatter() and gather() are the processor's ways.
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
  uint64_t bytes = 0;
  std::vector<nic::DescriptorRef> by_rail;
};
using PiecesRef = std::shared_ptr<const Pieces>;

[[nodiscard]] inline PiecesRef make_pieces(std::span<const nic::IovecElement> elements, size_t rails,
                                           uint64_t most = UINT64_MAX) {
  auto made = std::make_shared<Pieces>();
  for (nic::IovecElement one : elements) {
    one.length = std::min<uint64_t>(one.length, most - made->bytes);
    if (one.length == 0) continue;
    made->bytes += one.length;
    made->elements.push_back(one);
  }
  for (size_t rail = 0; rail < rails; ++rail) made->by_rail.push_back(nic::Descriptor::make(made->elements));
  return made;
}

// Copies `bytes` bytes, at most those of the list, to the pieces.
inline void scatter(const Pieces& pieces, const uint8_t* from, uint64_t bytes) {
  for (const nic::IovecElement& one : pieces.elements) {
    const uint64_t length = std::min<uint64_t>(one.length, bytes);
    if (length == 0) return;
    std::memcpy(one.base, from, length);
    from += length;
    bytes -= length;
  }
}

[[nodiscard]] inline std::vector<uint8_t> gather(const Pieces& pieces) {
  std::vector<uint8_t> made;
  made.reserve(pieces.bytes);
  for (const nic::IovecElement& one : pieces.elements) made.insert(made.end(), one.base, one.base + one.length);
  return made;
}

}  // namespace spinloom::rails
