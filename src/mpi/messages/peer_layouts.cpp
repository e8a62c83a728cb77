#include "mpi/messages/peer_layouts.hpp"

#include <algorithm>

namespace spinloom::mpi {

BlobPointer PeerLayouts::find(uint32_t sender, uint64_t number) {
  for (KeptLayout& kept : kept_) {
    if (kept.number != number || kept.sender != sender) continue;
    kept.last_use = ++uses_;
    return kept.blob;
  }
  return nullptr;
}

BlobPointer PeerLayouts::learn(uint32_t sender, uint64_t number, std::span<const std::byte> bytes) {
  auto blob = layout::Blob::validate(bytes);
  if (!blob) return nullptr;
  KeptLayout kept{sender, number, ++uses_, std::make_shared<const layout::Blob>(std::move(*blob))};
  if (kept_.size() < most) {
    kept_.push_back(std::move(kept));
    return kept_.back().blob;
  }
  KeptLayout& oldest = *std::ranges::min_element(kept_, {}, &KeptLayout::last_use);
  oldest = std::move(kept);
  return oldest.blob;
}

}  // namespace spinloom::mpi
