#include "memory/layout/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/normalise.hpp"

namespace spinloom::layout {
namespace {

// The memory between the first and the last byte of a nest.
struct Span {
  int64_t first = 0;
  int64_t last = 0;
  [[nodiscard]] int64_t width() const { return last - first; }
};

struct Step {
  int64_t count = 0;
  int64_t stride = 0;
};

std::optional<Span> disjoint_span(const Nest& nest);

bool are_spans_disjoint(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i - 1].last > spans[i].first) return false;
  }
  return true;
}

// Returns the span of copies of `span` at all combinations of the steps; nothing if copies may overlap. Sorted by
// stride, each step must be at least as wide as everything within it, like the digits of a number.
std::optional<Span> span_of_steps(Span span, std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return std::abs(a.stride) < std::abs(b.stride); });
  int64_t width = span.width();
  for (const Step& step : steps) {
    if (std::abs(step.stride) < width) return std::nullopt;
    const int64_t distance = (step.count - 1) * step.stride;
    width += std::abs(distance);
    (distance < 0 ? span.first : span.last) += distance;
  }
  return span;
}

std::optional<Span> span_of_list(const Nest& nest) {
  std::vector<Span> spans;
  spans.reserve(nest.offsets.size());
  for (size_t i = 0; i < nest.offsets.size(); ++i) {
    Span span{0, nest.block};
    if (nest.kind == NestKind::runs) span.last = nest.lengths[i];
    if (!nest.children.empty()) {
      if (nest.kind == NestKind::members || i == 0) {
        const std::optional<Span> child = disjoint_span(*nest.children[i]);
        if (!child) return std::nullopt;
        span = *child;
      } else {
        span = {spans[0].first - nest.offsets[0], spans[0].last - nest.offsets[0]};
      }
    }
    spans.push_back({nest.offsets[i] + span.first, nest.offsets[i] + span.last});
  }
  if (!are_spans_disjoint(spans)) return std::nullopt;
  Span total_span = spans.front();
  for (const Span& span : spans) total_span.last = std::max(total_span.last, span.last);
  return total_span;
}

// Returns the span of the nest if arithmetic shows that its pieces do not overlap; nothing if that needs a closer look.
std::optional<Span> disjoint_span(const Nest& nest) {
  std::vector<Step> steps;
  const Nest* inner = &nest;
  for (; inner->kind == NestKind::loop; inner = inner->children[0].get())
    steps.push_back({inner->count, inner->stride});
  if (inner->kind == NestKind::vector) {
    if (inner->count > 1) steps.push_back({inner->count, inner->stride});
    return span_of_steps({0, inner->block}, std::move(steps));
  }
  const std::optional<Span> span = span_of_list(*inner);
  return span ? span_of_steps(*span, std::move(steps)) : std::nullopt;
}

struct PlacedPiece {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t packed = 0;  // the packed byte with which the piece begins
};

Result<std::vector<PlacedPiece>> list_pieces(const Type& message) {
  SPL_ASSIGN(const Blob blob, Blob::build(message));
  SPL_ASSIGN(Cursor cursor, Cursor::open(blob, 1));
  SPL_TRY(cursor.seek(0));
  std::vector<PlacedPiece> list;
  for (;;) {
    const int64_t packed = cursor.position();
    const Piece piece = cursor.next(std::numeric_limits<int64_t>::max());
    if (piece.bytes == 0) return list;
    if (static_cast<int64_t>(list.size()) == limits::message_blocks_max) {
      return fail(Code::exhausted, "whether the pieces of a message overlap cannot be listed beyond ",
                  limits::message_blocks_max, " pieces (message_blocks_max); receive fewer elements at a time");
    }
    list.push_back({piece.offset, piece.bytes, packed});
  }
}

std::optional<Overlap> first_overlap(std::vector<PlacedPiece> list) {
  std::sort(list.begin(), list.end(), [](const PlacedPiece& a, const PlacedPiece& b) {
    return std::pair(a.offset, a.packed) < std::pair(b.offset, b.packed);
  });
  for (size_t i = 1; i < list.size(); ++i) {
    const PlacedPiece& before = list[i - 1];
    const PlacedPiece& here = list[i];
    if (before.offset + before.bytes <= here.offset) continue;
    const auto [first, second] = std::minmax({before.packed + (here.offset - before.offset), here.packed});
    return Overlap{here.offset, first, second};
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<Overlap>> find_overlap(const Type& type, int64_t count) {
  SPL_ASSIGN(const Type message, contiguous(count, type));
  const PlacedNest placed = normalise(message);
  if (placed.empty() || disjoint_span(*placed.nest)) return std::optional<Overlap>();
  SPL_ASSIGN(std::vector<PlacedPiece> list, list_pieces(message));
  return first_overlap(std::move(list));
}

std::string describe(const Overlap& overlap) {
  return text("packed bytes ", overlap.first, " and ", overlap.second, " both land at offset ", overlap.offset);
}

}  // namespace spinloom::layout
