#include "memory/gpu/draft_list.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace spinloom::gpu {
namespace {

constexpr int64_t unit_min = 4;

struct Block {
  int64_t from;
  int64_t to;
};

// Returns the blocks of one period of a draft, cut to `unit`.
std::vector<Block> period_of(const Draft& draft, int64_t unit) {
  std::vector<Block> period;
  const auto add = [&](int64_t from, int64_t to, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += unit) period.push_back({from + at, to + at});
  };
  if (draft.pieces == nullptr) {
    add(draft.from, draft.to, draft.block);
    return period;
  }
  const PieceTable& table = *draft.pieces;
  for (size_t i = 0; i + 1 < table.starts.size(); ++i) {
    const int64_t start = table.starts[i];
    const int64_t from = table.from.empty() ? start : table.from[i];
    const int64_t to = table.to.empty() ? start : table.to[i];
    add(draft.from + from, draft.to + to, table.starts[i + 1] - start);
  }
  return period;
}

std::vector<Block> blocks_of(const Draft& draft, int64_t unit) {
  std::vector<Block> blocks = period_of(draft, unit);
  for (const DraftLevel& level : draft.levels) {
    const size_t inner = blocks.size();
    std::vector<Block> turns;
    turns.reserve(inner * static_cast<size_t>(level.count));
    for (int64_t digit = 0; digit < level.count; ++digit) {
      for (const Block& block : blocks)
        turns.push_back({block.from + level.from.at(digit), block.to + level.to.at(digit)});
    }
    blocks = std::move(turns);
  }
  return blocks;
}

int64_t unit_of(std::span<const Draft> drafts) {
  int64_t unit = 0;
  for (const Draft& draft : drafts) {
    if (draft.pieces == nullptr) {
      unit = std::gcd(unit, draft.block);
      continue;
    }
    for (const uint32_t start : draft.pieces->starts) unit = std::gcd(unit, int64_t{start});
  }
  return unit;
}

// Fills in one side: a stride where blocks follow each other without gaps, else a table of offsets from the first
// block. False: the offsets need more than 32 bits.
bool set_step(const std::vector<int64_t>& offsets, int64_t unit, DraftStep& step) {
  const auto is_dense = [&](size_t i) { return offsets[i] == offsets[0] + static_cast<int64_t>(i) * unit; };
  bool dense = true;
  for (size_t i = 0; i < offsets.size() && dense; ++i) dense = is_dense(i);
  if (dense) {
    step.stride = unit;
    return true;
  }
  auto table = std::make_shared<std::vector<int32_t>>();
  table->reserve(offsets.size());
  for (const int64_t offset : offsets) {
    const int64_t distance = offset - offsets[0];
    if (distance != static_cast<int32_t>(distance)) return false;
    table->push_back(static_cast<int32_t>(distance));
  }
  step.table = reinterpret_cast<const std::byte*>(table->data());
  step.list = std::move(table);
  return true;
}

}  // namespace

std::optional<Draft> list_of(std::span<const Draft> drafts, bool packed_is_from) {
  int64_t bytes = 0;
  for (const Draft& draft : drafts) {
    if (draft.is_walk) return std::nullopt;
    bytes += draft.bytes();
  }
  if (bytes == 0 || bytes > list_bytes_max) return std::nullopt;
  if (drafts.size() == 1 && drafts[0].pieces == nullptr) return std::nullopt;
  const int64_t unit = unit_of(drafts);
  if (unit < unit_min) return std::nullopt;
  std::vector<Block> blocks;
  for (const Draft& draft : drafts) {
    const std::vector<Block> draft_blocks = blocks_of(draft, unit);
    blocks.insert(blocks.end(), draft_blocks.begin(), draft_blocks.end());
  }
  std::sort(blocks.begin(), blocks.end(),
            [&](const Block& a, const Block& b) { return packed_is_from ? a.from < b.from : a.to < b.to; });
  std::vector<int64_t> from;
  std::vector<int64_t> to;
  for (const Block& block : blocks) {
    from.push_back(block.from);
    to.push_back(block.to);
  }
  Draft list;
  list.block = unit;
  list.from = from[0];
  list.to = to[0];
  list.levels.push_back({static_cast<int64_t>(blocks.size()), {}, {}});
  if (!set_step(from, unit, list.levels[0].from)) return std::nullopt;
  if (!set_step(to, unit, list.levels[0].to)) return std::nullopt;
  return list;
}

}  // namespace spinloom::gpu
