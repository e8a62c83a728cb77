#include "memory/layout/testing/bounds.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "memory/layout/copy.hpp"
#include "memory/layout/cursor.hpp"
#include "spinloom/segment.h"

namespace spinloom::layout::test {
namespace {

constexpr int64_t cut_bytes_max = 1 << 14;  // a foreign count may claim much
constexpr int64_t memory_max = 1 << 20;

using Big = __int128;  // a foreign extent may be as long as 64 bits are

// The bytes that `count` elements may touch, relative to the first byte of the first element.
struct Bounds {
  Big first = 0;
  Big last = 0;
  int64_t bytes = 0;
  bool is_outside = false;

  void add_piece(Big offset, int64_t length) {
    is_outside = is_outside || length <= 0 || offset < first || offset + length > last;
    bytes += length;
  }
};

void emit_narrow(void* context, int32_t offset, uint32_t, uint32_t bytes) {
  static_cast<Bounds*>(context)->add_piece(offset, bytes);
}
void emit_wide(void* context, int64_t offset, uint64_t, uint64_t bytes) {
  static_cast<Bounds*>(context)->add_piece(offset, static_cast<int64_t>(bytes));
}

Bounds walked(const Blob& blob, Bounds bounds, int64_t first, int64_t bytes) {
  if (blob.is_narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &bounds);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &bounds);
  }
  return bounds;
}

Bounds processed(const Blob& blob, Bounds bounds, int64_t first, int64_t bytes) {
  if (blob.is_narrow()) {
    spl_segment_narrow segment{};
    spl_segment_init_narrow(&segment, blob.data());
    spl_segment_manipulate_narrow(&segment, blob.data(), static_cast<uint32_t>(first),
                                  static_cast<uint32_t>(first + bytes), emit_narrow, &bounds);
  } else {
    spl_segment_wide segment{};
    spl_segment_init_wide(&segment, blob.data());
    spl_segment_manipulate_wide(&segment, blob.data(), static_cast<uint64_t>(first),
                                static_cast<uint64_t>(first + bytes), emit_wide, &bounds);
  }
  return bounds;
}

Bounds stepped(Cursor& cursor, const Blob& blob, Bounds bounds, int64_t first, int64_t bytes) {
  if (!cursor.seek(first)) return bounds;
  while (bounds.bytes < bytes) {
    const Piece piece = cursor.next(bytes - bounds.bytes);
    if (piece.bytes == 0) break;
    bounds.add_piece(Big{piece.offset} - blob.true_lb(), piece.bytes);
  }
  return bounds;
}

std::string check_copies(const Blob& blob, int64_t count, const Bounds& bounds) {
  const int64_t total = count * blob.size();
  if (total == 0) return {};
  if (bounds.last - bounds.first > memory_max || total > memory_max) return {};
  constexpr int64_t address_max = int64_t{1} << 46;  // a base farther away is no address
  if (blob.true_lb() > address_max || blob.true_lb() < -address_max) return {};
  std::vector<std::byte> memory(static_cast<size_t>(bounds.last - bounds.first), std::byte{1});
  std::vector<std::byte> packed(static_cast<size_t>(total));
  std::byte* const base = memory.data() - static_cast<int64_t>(bounds.first) - blob.true_lb();
  if (!pack(blob, count, base, 0, total, packed)) return "pack refuses the whole message";
  if (!std::all_of(packed.begin(), packed.end(), [](std::byte byte) { return byte == std::byte{1}; })) {
    return "pack reads beside the message";
  }
  if (!unpack(blob, count, base, total / 3, total, std::span(packed).subspan(static_cast<size_t>(total / 3)))) {
    return "unpack refuses a part of the message";
  }
  return {};
}

std::string check_elements(const Blob& blob, int64_t count) {
  auto cursor = Cursor::open(blob, count);
  if (!cursor) return {};  // it does not fit in 64 bits
  const int64_t total = cursor->total();
  const int64_t span = (count - 1) * blob.extent();
  const Bounds bounds{std::min<Big>(0, span), blob.true_extent() + std::max<Big>(0, span)};
  const bool fits = bounds.first >= INT64_MIN && bounds.last <= INT64_MAX;  // offsets from the first byte on
  const bool reaches = blob.is_narrow() ? blob.narrow_reaches(count) : fits;
  const int64_t bytes = std::min(total, cut_bytes_max);
  for (const int64_t first : {int64_t{0}, (total - bytes) / 2, total - bytes}) {
    const auto is_wrong = [&](const Bounds& seen) { return seen.is_outside || seen.bytes != bytes; };
    if (bytes == 0) break;
    if (is_wrong(stepped(*cursor, blob, bounds, first, bytes))) return text("the cursor from ", first);
    if (!reaches) continue;
    if (is_wrong(walked(blob, bounds, first, bytes))) return text("the walker from ", first);
    if (first < cut_bytes_max && is_wrong(processed(blob, bounds, first, bytes)))
      return text("the segment from ", first);
  }
  return check_copies(blob, count, bounds);
}

}  // namespace

std::string stays_in_bounds(const Blob& blob) {
  for (const int64_t count : {1, 2, 3, 1000}) {
    if (const std::string trouble = check_elements(blob, count); !trouble.empty())
      return text(count, " elements: ", trouble);
  }
  return {};
}

}  // namespace spinloom::layout::test
