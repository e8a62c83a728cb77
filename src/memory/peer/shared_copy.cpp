#include "memory/peer/shared_copy.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace spinloom::peer {
namespace {

constexpr uint32_t none_left = UINT32_MAX;  // more parts than any copy has

constexpr uint64_t ticket_of(uint32_t generation, uint32_t part) { return (uint64_t{generation} << 32) | part; }

CopyPart part_at(const CopyPart& message, uint64_t part_bytes, uint64_t index) {
  const uint64_t at = index * part_bytes;
  return {message.from + at, message.to + at, std::min(part_bytes, message.length - at)};
}

}  // namespace

void SharedCopy::begin(const CopyPart& message, uint64_t part_bytes) {
  SPL_ASSERT(!is_active_ && message.length > 0, "a copy of ", message.length, " B");
  is_active_ = true;
  own_parts_read_ = true;
  message_ = message;
  part_bytes_ = part_bytes;
  part_count_ = static_cast<uint32_t>((message.length + part_bytes_ - 1) / part_bytes_);
  own_parts_ = 0;
  // A peer that sees one of the stores below also sees this one.
  memory_->next.store(ticket_of(++generation_, none_left), std::memory_order_relaxed);
  memory_->from.store(message.from, std::memory_order_release);
  memory_->to.store(message.to, std::memory_order_release);
  memory_->length.store(message.length, std::memory_order_release);
  memory_->part_bytes.store(part_bytes_, std::memory_order_release);
  memory_->ended.store(0, std::memory_order_relaxed);
  memory_->failed.store(0, std::memory_order_relaxed);
  memory_->next.store(ticket_of(generation_, 0), std::memory_order_release);
}

std::optional<CopyPart> SharedCopy::take() {
  if (own_parts_ == part_count_)
    return std::nullopt;  // the loop ends even if the sender writes wrong values into `next`
  uint64_t ticket = memory_->next.load(std::memory_order_relaxed);
  do {
    if (ticket >= ticket_of(generation_, part_count_) || ticket < ticket_of(generation_, 0)) return std::nullopt;
  } while (!memory_->next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed));
  ++own_parts_;
  return part_at(message_, part_bytes_, ticket - ticket_of(generation_, 0));
}

void SharedCopy::take_remaining() {
  while (take()) {
  }
}

void SharedCopy::read_parts(const PeerMemory& theirs) {
  while (const auto part = take()) {
    if (theirs.read(part->from, reinterpret_cast<uint8_t*>(part->to), part->length)) continue;
    own_parts_read_ = false;
    take_remaining();
  }
}

std::optional<bool> SharedCopy::finish(const PeerMemory& theirs, bool has_helper_ended) {
  if (!is_helper_done() && !has_helper_ended) return std::nullopt;
  bool is_complete = own_parts_read_ && is_helper_done();
  if (is_complete && has_failed())
    is_complete = theirs.read(message_.from, reinterpret_cast<uint8_t*>(message_.to), message_.length).ok();
  end();
  return is_complete;
}

std::optional<CopyPart> CopyHelper::take() {
  if (memory_ == nullptr) return std::nullopt;
  uint64_t ticket = memory_->next.load(std::memory_order_acquire);
  const uint64_t index = static_cast<uint32_t>(ticket);
  if (index == none_left) return std::nullopt;
  const CopyPart message{memory_->from.load(std::memory_order_acquire), memory_->to.load(std::memory_order_acquire),
                         memory_->length.load(std::memory_order_acquire)};
  const uint64_t part_bytes = memory_->part_bytes.load(std::memory_order_acquire);
  if (part_bytes == 0 || message.length == 0 || index > (message.length - 1) / part_bytes) return std::nullopt;
  // On success, the values read above belong together, because they change only after `next` has changed.
  if (!memory_->next.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acquire)) return std::nullopt;
  return part_at(message, part_bytes, index);
}

void CopyHelper::report(bool is_written) {
  if (!is_written) memory_->failed.store(1, std::memory_order_relaxed);
  memory_->ended.fetch_add(1, std::memory_order_release);
}

}  // namespace spinloom::peer
