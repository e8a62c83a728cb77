#include "memory/gpu/draft.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "memory/gpu/draft_list.hpp"
#include "memory/gpu/draft_pieces.hpp"
#include "memory/gpu/draft_shapes.hpp"
#include "memory/layout/cursor.hpp"

namespace spinloom::gpu {
namespace {

Result<int64_t> bytes_of_side(const Side& side) {
  if (side.count < 0) return fail(Code::invalid, "count is ", side.count, ", it must not be negative");
  SPL_ASSIGN(const layout::Cursor cursor, layout::Cursor::open(*side.blob, side.count));
  return cursor.total();
}

// ---- drafts that are simpler and the same ----

bool continues(const DraftStep& outer, const DraftStep& inner, int64_t count) {
  return outer.table == nullptr && inner.table == nullptr && outer.stride == count * inner.stride;
}

void simplify(Draft& draft) {
  auto& levels = draft.levels;
  std::erase_if(levels, [](const DraftLevel& level) {
    return level.count == 1 && level.from.table == nullptr && level.to.table == nullptr;
  });
  if (draft.pieces == nullptr) {
    while (!levels.empty() && continues(levels[0].from, {1}, draft.block) &&
           continues(levels[0].to, {1}, draft.block)) {
      draft.block *= levels[0].count;
      levels.erase(levels.begin());
    }
  }
  for (size_t l = 1; l < levels.size();) {
    DraftLevel& inner = levels[l - 1];
    if (continues(levels[l].from, inner.from, inner.count) && continues(levels[l].to, inner.to, inner.count)) {
      inner.count *= levels[l].count;
      levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(l));
    } else {
      ++l;
    }
  }
}

// Cuts a draft along its outermost levels until no part has more than part_bytes_max bytes.
void split(Draft draft, std::vector<Draft>& out) {
  if (draft.bytes() <= part_bytes_max) {
    out.push_back(std::move(draft));
    return;
  }
  if (draft.levels.empty()) {
    for (int64_t at = 0; at < draft.block; at += part_bytes_max) {
      Draft part = draft;
      part.block = std::min(part_bytes_max, draft.block - at);
      part.first += at;
      if (!draft.is_walk) {
        part.from += at;
        part.to += at;
      }
      out.push_back(std::move(part));
    }
    return;
  }
  const DraftLevel outer = draft.levels.back();
  const int64_t inner_bytes = draft.bytes() / outer.count;
  const int64_t chunk = std::max<int64_t>(1, part_bytes_max / inner_bytes);
  const auto entry_bytes = [](const DraftStep& step) { return step.is_wide ? 8 : 4; };
  for (int64_t at = 0; at < outer.count; at += chunk) {
    Draft part = draft;
    DraftLevel& level = part.levels.back();
    level.count = std::min(chunk, outer.count - at);
    const auto move_on = [&](DraftStep& step, int64_t& offset) {
      if (chunk == 1) {
        offset += step.at(at);
      } else if (step.table != nullptr) {
        step.table += at * entry_bytes(step);
      } else {
        offset += at * step.stride;
      }
    };
    move_on(level.from, part.from);
    move_on(level.to, part.to);
    if (chunk == 1) part.levels.pop_back();
    split(std::move(part), out);
  }
}

Draft walk_of(int64_t bytes) {
  Draft draft;
  draft.is_walk = true;
  draft.block = bytes;
  return draft;
}

// ---- levels ----

// Returns the pieces of a leaf of runs; its period is a block.
std::shared_ptr<const PieceTable> pieces_of_runs(const Shape& shape, bool is_from) {
  auto table = std::make_shared<PieceTable>();
  auto& offsets = is_from ? table->from : table->to;
  for (int64_t i = 0; i <= shape.run_count; ++i) {
    const ShapeRun run = shape.run(i);
    table->starts.push_back(static_cast<uint32_t>(run.start));
    if (i < shape.run_count) offsets.push_back(run.offset);
  }
  return table;
}

Draft draft_of_shape(const Shape& shape, bool is_from) {
  Draft draft;
  draft.block = shape.block;
  draft.from = is_from ? shape.offset : shape.packed_offset;
  draft.to = is_from ? shape.packed_offset : shape.offset;
  for (const ShapeLevel& level : shape.levels) {
    const DraftStep placed{level.stride, level.table, level.is_wide};
    const DraftStep packed{level.packed_stride};
    draft.levels.push_back({level.count, is_from ? placed : packed, is_from ? packed : placed});
  }
  if (shape.run_count > 0) draft.pieces = pieces_of_runs(shape, is_from);
  return draft;
}

bool do_runs_fit(const std::vector<Shape>& shapes, const DraftOptions& options) {
  return std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
    return shape.run_count == 0 ||
           (shape.block <= part_bytes_max && shape.run_count <= options.pieces_bytes_max / piece_bytes);
  });
}

// True if one of several shapes has only short contiguous runs on the packed side, as parts of structs in loops have.
bool has_short_runs(const std::vector<Shape>& shapes) {
  constexpr int64_t short_bytes = 128;
  if (shapes.size() < 2) return false;
  return std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) {
    int64_t dense = shape.block;
    for (const ShapeLevel& level : shape.levels) {
      if (level.packed_stride != dense) return dense < short_bytes;
      dense *= level.count;
    }
    return false;
  });
}

// True if two layouts have the same turns, so that they can be joined level by level.
bool same_turns(const std::vector<Shape>& from, const std::vector<Shape>& to) {
  return std::equal(from.begin(), from.end(), to.begin(), to.end(), [](const Shape& a, const Shape& b) {
    return a.block == b.block && a.packed_offset == b.packed_offset && a.run_count == 0 && b.run_count == 0 &&
           std::equal(a.levels.begin(), a.levels.end(), b.levels.begin(), b.levels.end(),
                      [](const ShapeLevel& x, const ShapeLevel& y) {
                        return x.count == y.count && x.packed_stride == y.packed_stride;
                      });
  });
}

// Returns the step in memory that `bytes` packed bytes make in a dense shape. Nothing if the step falls within a level
// with a table, or does not fit a level.
std::optional<DraftStep> step_of(const Shape& shape, int64_t bytes, int64_t count) {
  if (bytes < shape.block) return DraftStep{bytes};
  int64_t size = shape.block;
  for (const ShapeLevel& level : shape.levels) {
    if (bytes < size * level.count) {
      if (level.table == nullptr) return DraftStep{level.stride * (bytes / size)};
      if (bytes == size && count == level.count) return DraftStep{0, level.table, level.is_wide};
      return std::nullopt;
    }
    size *= level.count;
  }
  return std::nullopt;
}

std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes{shape.block};
  for (const ShapeLevel& level : shape.levels) sizes.push_back(sizes.back() * level.count);
  return sizes;
}

// Returns the draft of two single shapes: the levels that both have once each is cut where the other is. Nothing if
// they have none in common.
std::optional<Draft> common_levels(const Shape& from, const Shape& to) {
  if (from.run_count > 0 || to.run_count > 0) return std::nullopt;
  std::vector<int64_t> sizes = sizes_of(from);
  const std::vector<int64_t> to_sizes = sizes_of(to);
  sizes.insert(sizes.end(), to_sizes.begin(), to_sizes.end());
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  Draft draft;
  draft.block = sizes[0];
  draft.from = from.offset;
  draft.to = to.offset;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (sizes[i + 1] % sizes[i] != 0) return std::nullopt;
    const int64_t count = sizes[i + 1] / sizes[i];
    const auto read = step_of(from, sizes[i], count);
    const auto written = step_of(to, sizes[i], count);
    if (!read || !written) return std::nullopt;
    draft.levels.push_back({count, *read, *written});
  }
  return draft;
}

std::vector<Draft> drafts_of_both(const std::vector<Shape>& from, const std::vector<Shape>& to) {
  std::vector<Draft> drafts;
  if (from.size() == 1 && to.size() == 1) {
    if (auto draft = common_levels(from[0], to[0])) drafts.push_back(std::move(*draft));
  } else if (same_turns(from, to)) {
    for (size_t i = 0; i < from.size(); ++i) {
      Draft draft = draft_of_shape(from[i], true);
      draft.to = to[i].offset;
      for (size_t l = 0; l < draft.levels.size(); ++l) {
        const ShapeLevel& level = to[i].levels[l];
        draft.levels[l].to = {level.stride, level.table, level.is_wide};
      }
      drafts.push_back(std::move(draft));
    }
  }
  return drafts;
}

Result<std::vector<Draft>> choose_drafts(const Message& message, int64_t bytes, const DraftOptions& options) {
  const bool both = message.from.blob && message.to.blob;
  if (options.only_walk) return std::vector<Draft>{walk_of(bytes)};
  if (!message.from.blob && !message.to.blob) {
    Draft draft;
    draft.block = bytes;
    return std::vector<Draft>{draft};
  }
  const Side& side = message.from.blob ? message.from : message.to;
  std::vector<Draft> drafts;
  if (!options.only_pieces) {
    const auto from = message.from.blob ? shapes_of(*message.from.blob, message.from.count) : std::vector<Shape>();
    const auto to = message.to.blob ? shapes_of(*message.to.blob, message.to.count) : std::vector<Shape>();
    if (both) {
      drafts = drafts_of_both(from, to);
    } else {
      const auto& shapes = message.from.blob ? from : to;
      if (!has_short_runs(shapes) && do_runs_fit(shapes, options)) {
        for (const Shape& shape : shapes) drafts.push_back(draft_of_shape(shape, message.from.blob.has_value()));
      }
    }
  }
  for (Draft& draft : drafts) simplify(draft);
  const bool is_too_deep = std::any_of(drafts.begin(), drafts.end(),
                                       [](const Draft& draft) { return draft.levels.size() > kernel::levels_max; });
  if (!drafts.empty() && !is_too_deep) return drafts;
  std::optional<Draft> pieces;
  if (both) {
    SPL_ASSIGN(pieces, pieces_of_both(message, options));
  } else {
    pieces = pieces_of_side(side, message.from.blob.has_value(), options);
  }
  if (!pieces) return std::vector<Draft>{walk_of(bytes)};
  simplify(*pieces);
  return std::vector<Draft>{std::move(*pieces)};
}

}  // namespace

Result<int64_t> bytes_of(const Message& message) {
  if (!message.from.blob && !message.to.blob) {
    return fail(Code::invalid, "a message without a layout on either side: give one side a layout");
  }
  std::optional<int64_t> bytes;
  for (const Side* side : {&message.from, &message.to}) {
    if (!side->blob) continue;
    SPL_ASSIGN(const int64_t side_bytes, bytes_of_side(*side));
    if (bytes && *bytes != side_bytes) {
      return fail(Code::invalid, "the source holds ", *bytes, " packed bytes, the target ", side_bytes,
                  ": both sides of a message must hold the same number");
    }
    bytes = side_bytes;
  }
  return *bytes;
}

Result<std::vector<Draft>> drafts_of(const Message& message, const DraftOptions& options) {
  SPL_ASSIGN(const int64_t bytes, bytes_of(message));
  std::vector<Draft> parts;
  if (bytes == 0) return parts;
  SPL_ASSIGN(std::vector<Draft> drafts, choose_drafts(message, bytes, options));
  for (Draft& draft : drafts) {
    draft.from += message.from.offset;
    draft.to += message.to.offset;
    split(std::move(draft), parts);
  }
  if (!options.allow_lists) return parts;
  if (auto list = list_of(parts, !message.from.blob.has_value())) parts = {std::move(*list)};
  return parts;
}

}  // namespace spinloom::gpu
