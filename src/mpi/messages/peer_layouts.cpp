#include "mpi/messages/peer_layouts.hpp"

#include <algorithm>

namespace spinloom::mpi {

BlobPointer PeerLayouts::find(uint32_t sender, uint64_t number) {
  for (Known& known : known_) {
    if (known.number != number || known.sender != sender) continue;
    known.asked = ++asked_;
    return known.blob;
  }
  return nullptr;
}

BlobPointer PeerLayouts::learn(uint32_t sender, uint64_t number, std::span<const std::byte> bytes) {
  auto blob = layout::Blob::validate(bytes);
  if (!blob) return nullptr;
  Known known{sender, number, ++asked_, std::make_shared<const layout::Blob>(std::move(*blob))};
  if (known_.size() < most) {
    known_.push_back(std::move(known));
    return known_.back().blob;
  }
  Known& oldest = *std::ranges::min_element(known_, {}, &Known::asked);
  oldest = std::move(known);
  return oldest.blob;
}

}  // namespace spinloom::mpi
