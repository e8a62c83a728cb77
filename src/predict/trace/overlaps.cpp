#include "predict/trace/overlaps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/blocks.hpp"

namespace spinloom::trace {
namespace {

struct Span {
  uint64_t first = 0;
  uint64_t last = 0;
};

class Spans {
 public:
  [[nodiscard]] bool add(const RankTrace& trace, const Block& block) {
    if (block.count <= 0) return true;
    if (block.type == none || block.address == nowhere) return false;
    const TypeEntry& type = trace.types[block.type];
    if (type.size_bytes == 0) return true;
    if (type.blob.empty()) {
      if (type.size_bytes != type.extent_bytes) return false;
      put(block.address, static_cast<uint64_t>(block.count) * static_cast<uint64_t>(type.size_bytes));
      return true;
    }
    const auto blob = layout::Blob::validate(type.blob);
    if (!blob) return false;
    bool fits = true;
    const auto visit = [&](const layout::Piece& piece) {
      put(block.address + static_cast<uint64_t>(piece.offset), static_cast<uint64_t>(piece.bytes));
      fits = std::cmp_less_equal(spans_.size(), limits::message_blocks_max);
      return fits;
    };
    return layout::for_each_block(*blob, block.count, visit).ok() && fits;
  }

  [[nodiscard]] int64_t common() {
    std::ranges::sort(spans_, {}, &Span::first);
    int64_t sum = 0;
    uint64_t last = 0;
    for (const Span& span : spans_) {
      if (span.first < last) sum += static_cast<int64_t>(std::min(last, span.last) - span.first);
      last = std::max(last, span.last);
    }
    return sum;
  }

 private:
  void put(uint64_t first, uint64_t bytes) { spans_.push_back({first, first + bytes}); }
  std::vector<Span> spans_;
};

}  // namespace

std::optional<int64_t> common_bytes(const RankTrace& trace, std::span<const Block> blocks) {
  Spans spans;
  for (const Block& block : blocks) {
    if (!spans.add(trace, block)) return std::nullopt;
  }
  return spans.common();
}

}  // namespace spinloom::trace
