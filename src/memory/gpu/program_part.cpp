#include "memory/gpu/program_part.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "memory/layout/reciprocal.hpp"

namespace spinloom::gpu {
namespace {

using kernel::Part;

constexpr int64_t sector_bytes = 32;
constexpr int64_t width_max = 16;
constexpr int64_t warp_block_bytes = 64;  // the shortest block that a warp moves where only narrow words could move it
constexpr int64_t tile_block_bytes = 32;  // the longest block whose neighbours share its sector
constexpr int64_t tile_count_min = 4;
constexpr int64_t tile_area_bytes = 16384;

kernel::FastDivisor fast_divisor(int64_t divisor) {
  const auto reciprocal = layout::Reciprocal::of(static_cast<uint64_t>(divisor), 32);
  return {static_cast<uint32_t>(divisor), static_cast<uint32_t>(reciprocal.multiplier), reciprocal.shift};
}

// ---- the widest word ----

uint64_t bits_of(const DraftStep& step, int64_t count) {
  if (step.table == nullptr) return static_cast<uint64_t>(step.stride);
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= static_cast<uint64_t>(step.at(i));
  return bits;
}

// Returns every bit that some size, block, stride, offset or start of a run or member of a blob has.
template <class U, class S>
uint64_t bits_of_nodes(const layout::Blob& blob) {
  const auto* const words = reinterpret_cast<const S*>(blob.data() + sizeof(spl_layout_header));
  const int64_t entries =
      (static_cast<int64_t>(blob.bytes().size()) - static_cast<int64_t>(sizeof(spl_layout_header))) / sizeof(S);
  // The nodes are walked one by one, because reciprocals, kinds and counts must not be included.
  uint64_t bits = 0;
  constexpr int64_t node_words = sizeof(S) == 4 ? 10 : 8;
  const auto* const start = reinterpret_cast<const std::byte*>(words);
  int64_t at = 0;
  while (at < entries) {
    const auto* const node = reinterpret_cast<const uint32_t*>(start + at * static_cast<int64_t>(sizeof(S)));
    const uint32_t kind = node[0];
    const int64_t table = node[3];
    const S* const fields = words + at + (sizeof(S) == 4 ? 4 : 2);  // count, size, block, reciprocal, stride
    bits |= static_cast<uint64_t>(fields[1]) | static_cast<uint64_t>(fields[2]) | static_cast<uint64_t>(fields[4]);
    const int64_t per_entry = kind == SPL_LEAF_RUNS ? 2 : kind == SPL_NODE_MEMBERS ? 3 : 1;
    for (int64_t i = 0; i < table; ++i) {
      const S* const entry = words + at + node_words + i * per_entry;
      bits |= static_cast<uint64_t>(entry[0]);
      if (per_entry > 1) bits |= static_cast<uint64_t>(entry[1]);
    }
    const int64_t bytes = (node_words + table * per_entry) * static_cast<int64_t>(sizeof(S));
    at += (bytes + 7) / 8 * 8 / static_cast<int64_t>(sizeof(S));
  }
  return bits;
}

uint64_t bits_of_walk(const Side& side) {
  if (!side.blob) return 0;
  const spl_layout_header& header = side.blob->header();
  const uint64_t nodes = side.blob->is_narrow() ? bits_of_nodes<uint32_t, int32_t>(*side.blob)
                                                : bits_of_nodes<uint64_t, int64_t>(*side.blob);
  return nodes | header.size | static_cast<uint64_t>(header.extent) |
         static_cast<uint64_t>(header.origin + header.true_lb);
}

uint32_t width_of(const Draft& draft, const Message& message) {
  uint64_t bits = static_cast<uint64_t>(draft.block) | width_max;
  for (const DraftLevel& level : draft.levels)
    bits |= bits_of(level.from, level.count) | bits_of(level.to, level.count);
  if (draft.pieces != nullptr) {
    for (const uint32_t start : draft.pieces->starts) bits |= start;
    for (const int64_t offset : draft.pieces->from) bits |= static_cast<uint64_t>(offset);
    for (const int64_t offset : draft.pieces->to) bits |= static_cast<uint64_t>(offset);
  }
  if (draft.is_walk) {
    bits |= static_cast<uint64_t>(draft.first) | bits_of_walk(message.from) | bits_of_walk(message.to);
  }
  return static_cast<uint32_t>(bits & (0 - bits));
}

// ---- tiles ----

// True if a tile can go along this level: it has no tables, and strides of 32 bits.
bool can_tile(const DraftLevel& level) {
  constexpr int64_t stride_max = (int64_t{1} << 31) - 1;
  return level.from.table == nullptr && level.to.table == nullptr && std::abs(level.from.stride) <= stride_max &&
         std::abs(level.to.stride) <= stride_max;
}

// Returns the level, among those that can turn, in which a side runs through memory in the shortest steps.
std::optional<size_t> fastest_level(const Draft& draft, bool is_from) {
  std::optional<size_t> found;
  int64_t shortest = 0;
  for (size_t l = 0; l < draft.levels.size(); ++l) {
    const DraftLevel& level = draft.levels[l];
    if (!can_tile(level)) continue;
    const int64_t stride = std::abs(is_from ? level.from.stride : level.to.stride);
    if (!found || stride < shortest) {
      found = l;
      shortest = stride;
    }
  }
  return found;
}

struct TileLevels {
  size_t column_level;
  size_t row_level;
};

std::optional<TileLevels> tile_levels_of(const Draft& draft, bool forced) {
  if (draft.pieces != nullptr || draft.is_walk || draft.block > tile_block_bytes) return std::nullopt;
  const auto column = fastest_level(draft, true);
  const auto row = fastest_level(draft, false);
  if (!column || !row) return std::nullopt;
  if (*column == *row) {
    // Forced: any other level, so that there are two.
    if (!forced) return std::nullopt;
    for (size_t l = 0; l < draft.levels.size(); ++l) {
      if (l != *row && can_tile(draft.levels[l])) return TileLevels{l, *row};
    }
    return std::nullopt;
  }
  const DraftLevel& columns = draft.levels[*column];
  const DraftLevel& rows = draft.levels[*row];
  if (!forced) {
    if (columns.count < tile_count_min || rows.count < tile_count_min) return std::nullopt;
    // A tile pays where each side runs along its own level in steps within a sector, and the source runs along the
    // level of `to` in steps longer than half a sector.
    if (std::abs(columns.from.stride) > sector_bytes || std::abs(rows.to.stride) > sector_bytes) return std::nullopt;
    if (std::abs(rows.from.stride) <= sector_bytes / 2) return std::nullopt;
  }
  return TileLevels{*column, *row};
}

void set_tiles(Part& part, const Draft& draft, const TileLevels& tile_levels) {
  const int64_t block = draft.block;
  const int64_t column_count = draft.levels[tile_levels.column_level].count;
  const int64_t row_count = draft.levels[tile_levels.row_level].count;
  const int64_t area = std::max<int64_t>(1, tile_area_bytes / block);
  int64_t side = 1;
  while (4 * side * side <= area) side *= 2;
  int64_t columns = std::min(column_count, side);
  int64_t rows = std::min(row_count, area / columns);
  if (rows > side) {
    columns = std::min(column_count, columns);
  } else {
    columns = std::min(column_count, area / rows);
  }
  if (column_count > side && row_count > side) {
    columns = side;
    rows = area / side;
  }
  // A few tiles are made equal, so that the last one is not a remainder.
  const auto evened = [](int64_t all, int64_t most) {
    const int64_t tiles = (all + most - 1) / most;
    return (all + tiles - 1) / tiles;
  };
  if (column_count < 4 * columns) columns = evened(column_count, columns);
  // Rows lie an odd number of words apart, so that a column's words fall into different banks.
  const int64_t unit = std::max<int64_t>(4, part.width);
  const int64_t pitch = ((columns * block + unit - 1) / unit | 1) * unit;
  rows = std::min<int64_t>(rows, kernel::shared_bytes / pitch);
  if (row_count < 4 * rows) rows = evened(row_count, rows);
  part.column_level = static_cast<uint32_t>(tile_levels.column_level);
  part.row_level = static_cast<uint32_t>(tile_levels.row_level);
  part.pitch = static_cast<uint32_t>(pitch);
  part.columns = static_cast<uint32_t>(columns);
  part.rows = static_cast<uint32_t>(rows);
  part.column_tiles = fast_divisor((column_count + columns - 1) / columns);
  part.row_tiles = fast_divisor((row_count + rows - 1) / rows);
  part.column_bytes = fast_divisor(columns * block);
  part.row_bytes = fast_divisor(rows * block);
}

// ---- tables ----

kernel::Step step_of(const DraftStep& step, const Side& side, ProgramArena& arena) {
  if (step.list != nullptr) return {0, arena.add(*step.list)};
  return {step.stride, step.table != nullptr ? arena.place_of(*side.blob, step.table) : 0};
}

void add_pieces(Part& part, const PieceTable& table, ProgramArena& arena) {
  const int64_t pieces = table.pieces();
  const int64_t bytes = table.starts.back();
  part.pieces = static_cast<uint32_t>(pieces);
  // There is a hint for each stretch as long as a mean piece, rounded down to a power of two.
  part.hint_shift =
      static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, bytes / pieces))) - 1);
  std::vector<uint32_t> hints;
  uint32_t piece = 0;
  for (int64_t at = 0; at < bytes; at += int64_t{1} << part.hint_shift) {
    while (table.starts[piece + 1] <= at) ++piece;
    hints.push_back(piece);
  }
  hints.push_back(static_cast<uint32_t>(pieces - 1));
  part.starts = arena.add(table.starts);
  part.hints = arena.add(hints);
  const auto fits = [](int64_t offset) { return offset == static_cast<int32_t>(offset); };
  const bool narrow =
      std::all_of(table.from.begin(), table.from.end(), fits) && std::all_of(table.to.begin(), table.to.end(), fits);
  part.wide_offsets = narrow ? 0 : 1;
  const auto add = [&](const std::vector<int64_t>& offsets) -> uint64_t {
    if (offsets.empty()) return 0;
    return narrow ? arena.add(std::vector<int32_t>(offsets.begin(), offsets.end())) : arena.add(offsets);
  };
  part.from_offsets = add(table.from);
  part.to_offsets = add(table.to);
}

kernel::Walk walk_of(const Side& side, ProgramArena& arena) {
  if (!side.blob) return {};
  const spl_layout_header& header = side.blob->header();
  const auto reciprocal = layout::Reciprocal::of(header.size, 64);
  return {arena.place_of(*side.blob),       header.size,   reciprocal.multiplier,         reciprocal.shift,
          side.blob->is_narrow() ? 1U : 0U, header.extent, header.true_lb + header.origin};
}

uint32_t kind_of(const Draft& draft, uint32_t width, bool can_use_tiles, std::optional<uint32_t> forced) {
  const int64_t block = draft.pieces != nullptr ? draft.block / draft.pieces->pieces() : draft.block;
  if (draft.is_walk) return kernel::kind_walk;
  if (forced == kernel::kind_warp) return kernel::kind_warp;
  if (draft.pieces != nullptr) {
    return width < 4 && block >= warp_block_bytes && !forced ? kernel::kind_warp : kernel::kind_pieces;
  }
  if (can_use_tiles && (!forced || forced == kernel::kind_tile)) return kernel::kind_tile;
  return width < 4 && block >= warp_block_bytes && !forced ? kernel::kind_warp : kernel::kind_word;
}

}  // namespace

Part make_part(const Draft& draft, const Message& message, std::optional<uint32_t> forced, ProgramArena& arena) {
  Part part{};
  part.ends_index = message.ends_index;
  part.bytes = static_cast<uint32_t>(draft.bytes());
  part.width = width_of(draft, message);
  part.dense = is_dense(draft, true) ? 1 : is_dense(draft, false) ? 2 : 0;
  part.block = fast_divisor(draft.block);
  part.from = draft.from;
  part.to = draft.to;
  part.levels = static_cast<uint32_t>(draft.levels.size());
  for (size_t l = 0; l < draft.levels.size(); ++l) {
    const DraftLevel& level = draft.levels[l];
    part.level[l].count = fast_divisor(level.count);
    part.level[l].wide_from = level.from.is_wide ? 1 : 0;
    part.level[l].wide_to = level.to.is_wide ? 1 : 0;
    part.level[l].from = step_of(level.from, message.from, arena);
    part.level[l].to = step_of(level.to, message.to, arena);
  }
  const auto tile_levels = tile_levels_of(draft, forced == kernel::kind_tile);
  part.kind = kind_of(draft, part.width, tile_levels.has_value(), forced);
  if (part.kind == kernel::kind_tile) set_tiles(part, draft, *tile_levels);
  const int64_t mean = draft.pieces != nullptr ? draft.block / draft.pieces->pieces() : draft.block;
  part.warp_below = part.kind != kernel::kind_tile && mean >= warp_block_bytes && !forced ? 4 : 0;
  if (draft.pieces != nullptr) add_pieces(part, *draft.pieces, arena);
  if (draft.is_walk) {
    part.first = static_cast<uint64_t>(draft.first);
    part.from_walk = walk_of(message.from, arena);
    part.to_walk = walk_of(message.to, arena);
  }
  return part;
}

void set_tile_bytes(Part& part, int64_t tile_bytes) {
  constexpr int64_t warp_tile_bytes_min = 2048;
  int64_t tile_bytes_min = int64_t{kernel::threads} * part.width;
  if (part.kind == kernel::kind_warp) tile_bytes_min = warp_tile_bytes_min;
  part.tile_bytes = static_cast<uint32_t>(std::max(tile_bytes, tile_bytes_min));
}

int64_t tiles_of(const Part& part) {
  if (part.kind != kernel::kind_tile) return (int64_t{part.bytes} + part.tile_bytes - 1) / part.tile_bytes;
  int64_t tiles = int64_t{part.column_tiles.divisor} * part.row_tiles.divisor;
  for (uint32_t l = 0; l < part.levels; ++l) {
    if (l != part.column_level && l != part.row_level) tiles *= part.level[l].count.divisor;
  }
  return tiles;
}

}  // namespace spinloom::gpu
