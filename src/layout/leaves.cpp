#include "layout/leaves.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

namespace spinloom::layout {
namespace {

class Collector {
 public:
  // `stride_min` is the smallest stride of the loops around this nest.
  void add(const Nest& nest, int64_t turns, int64_t stride_min) {
    switch (nest.kind) {
      case NestKind::vector: {
        leaf(shape_of(nest, stride_min), nest.block, turns, nest);
        break;
      }
      case NestKind::list: leaf(LeafShape::list, nest.block, turns, nest); break;
      case NestKind::runs: leaf(LeafShape::runs, nest.size / nest.count, turns, nest); break;
      case NestKind::loop:
        add(*nest.children[0], turns * nest.count, std::min(stride_min, std::abs(nest.stride)));
        break;
      case NestKind::child_list: add(*nest.children[0], turns * nest.count, stride_min); break;
      case NestKind::members:
        for (const NestPtr& child : nest.children) add(*child, turns, stride_min);
        break;
    }
  }

  [[nodiscard]] std::vector<Leaves> found() const {
    std::vector<Leaves> out;
    out.reserve(found_.size());
    for (const auto& [key, leaves] : found_) out.push_back(leaves);
    return out;
  }

 private:
  static LeafShape shape_of(const Nest& vector, int64_t stride_min) {
    if (vector.is_run()) return LeafShape::single;
    const int64_t stride = std::abs(vector.stride);
    if (stride > stride_min) return LeafShape::across;
    return stride <= 2 * vector.block ? LeafShape::dense : LeafShape::vector;
  }

  void leaf(LeafShape shape, int64_t block_bytes, int64_t turns, const Nest& nest) {
    Leaves& leaves = found_[{shape, block_bytes}];
    leaves.shape = shape;
    leaves.block_bytes = block_bytes;
    ++leaves.nodes;
    leaves.turns += turns;
    leaves.blocks += turns * nest.count;
    leaves.bytes += turns * nest.size;
    for (size_t i = 1; i < nest.lengths.size(); ++i) {
      if (nest.lengths[i] != nest.lengths[i - 1]) leaves.changes += turns;
    }
  }

  std::map<std::pair<LeafShape, int64_t>, Leaves> found_;
};

}  // namespace

std::vector<Leaves> leaves_of(const Placed& placed) {
  Collector collector;
  if (!placed.empty()) collector.add(*placed.nest, 1, std::numeric_limits<int64_t>::max());
  return collector.found();
}

}  // namespace spinloom::layout
