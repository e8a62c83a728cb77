#include "portals/model/pieces.hpp"

#include <algorithm>

namespace spinloom::model {

std::vector<Region> parts_of(Region memory, const std::vector<Region>& pieces, uint16_t offset, uint16_t length) {
  const std::vector<Region> whole{{0, memory.length}};
  std::vector<Region> parts;
  for (const Region& piece : pieces.empty() ? whole : pieces) {
    if (offset >= piece.length) {
      offset = static_cast<uint16_t>(offset - piece.length);
      continue;
    }
    const auto taken = std::min(length, static_cast<uint16_t>(piece.length - offset));
    if (taken == 0) break;
    parts.push_back({static_cast<uint16_t>(memory.offset + piece.offset + offset), taken});
    length = static_cast<uint16_t>(length - taken);
    offset = 0;
  }
  return parts;
}

std::vector<uint8_t> gather(std::span<const uint8_t> memory, const std::vector<Region>& parts) {
  std::vector<uint8_t> bytes;
  for (const Region& part : parts) {
    const auto from = memory.subspan(part.offset, part.length);
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  return bytes;
}

void scatter(std::span<const uint8_t> bytes, const std::vector<Region>& parts, std::span<uint8_t> memory) {
  for (const Region& part : parts) {
    const size_t now = std::min<size_t>(part.length, bytes.size());
    std::copy_n(bytes.begin(), now, memory.begin() + part.offset);
    bytes = bytes.subspan(now);
  }
}

}  // namespace spinloom::model
