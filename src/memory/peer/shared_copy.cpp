#include "memory/peer/shared_copy.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace spinloom::peer {
namespace {

constexpr uint32_t none_left = UINT32_MAX;  // more parts than any copy has

constexpr uint64_t of(uint32_t generation, uint32_t part) { return (uint64_t{generation} << 32) | part; }

CopyPart part_at(const CopyPart& whole, uint64_t part_bytes, uint64_t index) {
  const uint64_t at = index * part_bytes;
  return {whole.from + at, whole.to + at, std::min(part_bytes, whole.length - at)};
}

}  // namespace

void SharedCopy::begin(const CopyPart& whole, uint64_t part_bytes) {
  SPL_ASSERT(!active_ && whole.length > 0, "a copy of ", whole.length, " B");
  active_ = true;
  well_ = true;
  whole_ = whole;
  part_bytes_ = part_bytes;
  parts_ = static_cast<uint32_t>((whole.length + part_bytes_ - 1) / part_bytes_);
  own_ = 0;
  // A peer that sees one of the stores below also sees this one.
  memory_->next.store(of(++generation_, none_left), std::memory_order_relaxed);
  memory_->from.store(whole.from, std::memory_order_release);
  memory_->to.store(whole.to, std::memory_order_release);
  memory_->length.store(whole.length, std::memory_order_release);
  memory_->part_bytes.store(part_bytes_, std::memory_order_release);
  memory_->ended.store(0, std::memory_order_relaxed);
  memory_->failed.store(0, std::memory_order_relaxed);
  memory_->next.store(of(generation_, 0), std::memory_order_release);
}

std::optional<CopyPart> SharedCopy::take() {
  if (own_ == parts_) return std::nullopt;  // the loop ends even if the sender writes wrong values into `next`
  uint64_t seen = memory_->next.load(std::memory_order_relaxed);
  do {
    if (seen >= of(generation_, parts_) || seen < of(generation_, 0)) return std::nullopt;
  } while (!memory_->next.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
  ++own_;
  return part_at(whole_, part_bytes_, seen - of(generation_, 0));
}

void SharedCopy::stop() {
  while (take()) {
  }
}

void SharedCopy::read_parts(const PeerMemory& theirs) {
  while (const auto part = take()) {
    if (theirs.read(part->from, reinterpret_cast<uint8_t*>(part->to), part->length)) continue;
    well_ = false;
    stop();
  }
}

std::optional<bool> SharedCopy::finish(const PeerMemory& theirs, bool gone) {
  if (!done() && !gone) return std::nullopt;
  bool well = well_ && done();
  if (well && failed()) well = theirs.read(whole_.from, reinterpret_cast<uint8_t*>(whole_.to), whole_.length).ok();
  end();
  return well;
}

std::optional<CopyPart> CopyHelper::take() {
  if (memory_ == nullptr) return std::nullopt;
  uint64_t seen = memory_->next.load(std::memory_order_acquire);
  const uint64_t index = static_cast<uint32_t>(seen);
  if (index == none_left) return std::nullopt;
  const CopyPart whole{memory_->from.load(std::memory_order_acquire), memory_->to.load(std::memory_order_acquire),
                       memory_->length.load(std::memory_order_acquire)};
  const uint64_t part_bytes = memory_->part_bytes.load(std::memory_order_acquire);
  if (part_bytes == 0 || whole.length == 0 || index > (whole.length - 1) / part_bytes) return std::nullopt;
  // On success, the values read above belong together, because they change only after `next` has changed.
  if (!memory_->next.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire)) return std::nullopt;
  return part_at(whole, part_bytes, index);
}

void CopyHelper::tell(bool well) {
  if (!well) memory_->failed.store(1, std::memory_order_relaxed);
  memory_->ended.fetch_add(1, std::memory_order_release);
}

}  // namespace spinloom::peer
