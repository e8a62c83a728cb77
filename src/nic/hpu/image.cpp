#include <algorithm>
#include <cstring>
#include <ios>

#include "nic/hpu/decode.hpp"
#include "nic/hpu/elf.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::hpu {
namespace {

// The range of all segments together: even bounds inside [SPL_HPU_IMAGE_BASE, + image_bytes_max).
struct Extent {
  uint32_t base = 0;
  uint64_t end = 0;
};

Result<Extent> extent_of(std::span<const Segment> segments) {
  if (segments.empty()) return fail(Code::invalid, "the image has no segment to load");
  Extent extent{UINT32_MAX, 0};
  for (const Segment& segment : segments) {
    const uint64_t end = uint64_t{segment.address} + segment.bytes.size();
    if (segment.bytes.empty()) {
      return fail(Code::invalid, "segment at 0x", std::hex, segment.address, " is empty");
    }
    if (segment.address < SPL_HPU_IMAGE_BASE || end > uint64_t{SPL_HPU_IMAGE_BASE} + image_bytes_max) {
      return fail(Code::invalid, "segment [0x", std::hex, segment.address, ", 0x", end, ") is not inside [0x",
                  SPL_HPU_IMAGE_BASE, ", 0x", uint64_t{SPL_HPU_IMAGE_BASE} + image_bytes_max,
                  "): link at SPL_HPU_IMAGE_BASE; image_bytes_max limits the size");
    }
    extent.base = std::min(extent.base, segment.address & ~1u);
    extent.end = std::max(extent.end, end);
  }
  extent.end += extent.end & 1;
  return extent;
}

Status check_overlap(std::span<const Segment> segments) {
  std::vector<const Segment*> order;
  for (const Segment& segment : segments) order.push_back(&segment);
  std::sort(order.begin(), order.end(), [](const Segment* a, const Segment* b) { return a->address < b->address; });
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t end = uint64_t{order[i - 1]->address} + order[i - 1]->bytes.size();
    if (end > order[i]->address) {
      return fail(Code::invalid, "segments at 0x", std::hex, order[i - 1]->address, " and 0x", order[i]->address,
                  " overlap");
    }
  }
  return {};
}

}  // namespace

Image::Image() = default;
Image::Image(Image&&) noexcept = default;
Image& Image::operator=(Image&&) noexcept = default;
Image::~Image() = default;

Result<Image> Image::from_segments(std::span<const Segment> segments, std::map<std::string, uint32_t> symbols,
                                   bool needs_float) {
  SPL_ASSIGN(const Extent extent, extent_of(segments));
  SPL_TRY(check_overlap(segments));
  Image image;
  image.base_ = extent.base;
  image.bytes_.resize(extent.end - extent.base);
  image.symbols_ = std::move(symbols);
  image.needs_float_ = needs_float;
  std::vector<bool> executable(image.bytes_.size());
  for (const Segment& segment : segments) {
    const size_t offset = segment.address - extent.base;
    std::copy(segment.bytes.begin(), segment.bytes.end(), image.bytes_.begin() + static_cast<ptrdiff_t>(offset));
    if (segment.executable) {
      std::fill_n(executable.begin() + static_cast<ptrdiff_t>(offset), segment.bytes.size(), true);
    }
  }
  const auto fetchable = [&](size_t offset, size_t count) {
    for (size_t i = offset; i < offset + count; ++i) {
      if (i >= executable.size() || !executable[i]) return false;
    }
    return true;
  };
  // Two slots past the end, because the last slot's instruction may be two slots long.
  image.ops_.resize(image.slot_count() + size_t{2});
  for (uint32_t slot = 0; slot < image.slot_count(); ++slot) {
    const size_t offset = size_t{slot} * 2;
    if (!fetchable(offset, 2)) continue;
    uint32_t raw = image.bytes_[offset] | uint32_t{image.bytes_[offset + 1]} << 8;
    if (!is_compressed(raw)) {
      if (!fetchable(offset, 4)) continue;
      raw |= uint32_t{image.bytes_[offset + 2]} << 16 | uint32_t{image.bytes_[offset + 3]} << 24;
    }
    image.ops_[slot] = decode(raw, image.base_ + static_cast<uint32_t>(offset));
    image.has_float_code_ |= is_float(image.ops_[slot].code);
  }
  return image;
}

Result<uint32_t> Image::address_of(std::string_view symbol) const {
  if (const auto found = symbols_.find(std::string(symbol)); found != symbols_.end()) return found->second;
  std::string names;
  for (const auto& [name, address] : symbols_) names += (names.empty() ? "" : ", ") + name;
  return fail(Code::invalid, "the image has no symbol '", symbol, "'; it has: ", names.empty() ? "none" : names);
}

}  // namespace spinloom::hpu
