#include "memory/layout/leaves.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "memory/layout/kernel.hpp"

namespace spinloom::layout {
namespace {

class Collector {
 public:
  // `stride_min` is the smallest stride of the loops around this nest.
  void add(const Nest& nest, int64_t turns, int64_t stride_min) {
    switch (nest.kind) {
      case NestKind::vector: {
        add_leaf(shape_of(nest, stride_min), nest.block, turns, nest);
        break;
      }
      case NestKind::list: add_leaf(LeafShape::list, nest.block, turns, nest); break;
      case NestKind::runs: add_leaf(LeafShape::runs, nest.size / nest.count, turns, nest); break;
      case NestKind::loop:
        if (are_structs(*nest.children[0])) {
          add_structs(nest, *nest.children[0], turns);
          break;
        }
        add(*nest.children[0], turns * nest.count, std::min(stride_min, std::abs(nest.stride)));
        break;
      case NestKind::child_list: add(*nest.children[0], turns * nest.count, stride_min); break;
      case NestKind::members:
        for (const NestPtr& child : nest.children) add(*child, turns, stride_min);
        break;
    }
  }

  [[nodiscard]] std::vector<LeafGroup> groups() const {
    std::vector<LeafGroup> out;
    out.reserve(groups_.size());
    for (const auto& [key, group] : groups_) out.push_back(group);
    return out;
  }

 private:
  static LeafShape shape_of(const Nest& vector, int64_t stride_min) {
    if (vector.is_run()) return LeafShape::single;
    const int64_t stride = std::abs(vector.stride);
    if (stride > stride_min) return LeafShape::across;
    return stride <= 2 * vector.block ? LeafShape::dense : LeafShape::vector;
  }

  static bool are_structs(const Nest& nest) {
    return (nest.kind == NestKind::list || nest.kind == NestKind::runs) && nest.count <= struct_runs_max &&
           nest.size <= nest.count * struct_run_bytes_max;
  }

  void add_structs(const Nest& loop, const Nest& element, int64_t turns) {
    const int64_t share =
        window_bytes / (loop.stride > 0 && span_of(element) <= loop.stride ? loop.stride : window_bytes);
    const int64_t cost = share > 1 ? narrow_bytes / share : narrow_bytes * windows_of(element);
    LeafGroup& group = groups_[{LeafShape::structs, cost}];
    group.shape = LeafShape::structs;
    group.block_bytes = cost;
    ++group.nodes;
    group.turns += turns;
    group.blocks += turns * loop.count;
    group.bytes += turns * loop.size;
  }

  // Returns how much packed rows with this stride crowd a usual first-level cache (64 sets of lines): 3 where they meet
  // in one set, 1 where they meet in two.
  static int64_t crowding(int64_t stride) { return stride % 4096 == 0 ? 3 : stride % 2048 == 0 ? 1 : 0; }

  static int64_t length_of(const Nest& nest, int64_t i) {
    return nest.kind == NestKind::runs ? nest.lengths[static_cast<size_t>(i)] : nest.block;
  }

  static int64_t span_of(const Nest& nest) { return nest.offsets.back() + length_of(nest, nest.count - 1); }

  // Returns the number of windows that move one struct: narrow windows if few of them will do.
  static int64_t windows_of(const Nest& nest) {
    const int64_t narrow = windows_of(nest, narrow_bytes);
    return narrow <= narrow_windows_max ? narrow : windows_of(nest, window_bytes);
  }

  static int64_t windows_of(const Nest& nest, int64_t width) {
    int64_t windows = 1;
    int64_t from = nest.offsets.front();  // the window's begin in memory; `to` is that in the packed bytes
    int64_t to = 0;
    int64_t packed = 0;
    for (int64_t i = 0; i < nest.count; ++i) {
      int64_t at = nest.offsets[static_cast<size_t>(i)];
      for (int64_t remaining = length_of(nest, i); remaining > 0;) {
        if (at < from || at >= from + width || packed >= to + width) {
          ++windows;
          from = at;
          to = packed;
        }
        const int64_t bytes = std::min(remaining, width - std::max(at - from, packed - to));
        at += bytes;
        packed += bytes;
        remaining -= bytes;
      }
    }
    return windows;
  }

  static constexpr int64_t narrow_bytes = 32;
  static constexpr int64_t window_bytes = 64;
  static constexpr int64_t narrow_windows_max = 3;

  void add_leaf(LeafShape shape, int64_t block_bytes, int64_t turns, const Nest& nest) {
    LeafGroup& group = groups_[{shape, block_bytes}];
    group.shape = shape;
    group.block_bytes = block_bytes;
    ++group.nodes;
    group.turns += turns;
    group.blocks += turns * nest.count;
    group.bytes += turns * nest.size;
    if (shape == LeafShape::across) group.crowded_blocks += turns * nest.count * crowding(nest.size);
    for (size_t i = 1; i < nest.lengths.size(); ++i) {
      if (nest.lengths[i] != nest.lengths[i - 1]) group.length_changes += turns;
    }
  }

  std::map<std::pair<LeafShape, int64_t>, LeafGroup> groups_;
};

}  // namespace

std::vector<LeafGroup> leaves_of(const PlacedNest& placed) {
  Collector collector;
  if (!placed.empty()) collector.add(*placed.nest, 1, std::numeric_limits<int64_t>::max());
  return collector.groups();
}

}  // namespace spinloom::layout
