#include "memory/gpu/draft_shapes.hpp"

#include <algorithm>

#include "memory/layout/width.hpp"

namespace spinloom::gpu {
namespace {

constexpr int64_t runs_apart_max = 4;  // a leaf of at most so many runs becomes a shape for each run

template <class W>
class Descent {
 public:
  explicit Descent(const layout::Blob& blob) : blob_(blob.data()) {}

  // Adds the shapes below a node; `shape` holds the levels above it. False: there are too many shapes.
  bool enter(const typename W::Node* node, Shape shape) {
    const auto* const table = reinterpret_cast<const std::byte*>(node + 1);
    const bool is_wide = W::bits == 64;
    ShapeLevel level;
    level.count = static_cast<int64_t>(node->count);
    level.packed_stride = static_cast<int64_t>(node->block);
    level.stride = static_cast<int64_t>(node->stride);
    if (node->kind == SPL_LEAF_LIST || node->kind == SPL_NODE_LIST) {
      level.table = table;
      level.is_wide = is_wide;
      level.stride = 0;
    }
    switch (node->kind) {
      case SPL_LEAF_VECTOR:
      case SPL_LEAF_LIST:
        shape.levels.push_back(level);
        shape.block = static_cast<int64_t>(node->block);
        return add(std::move(shape));
      case SPL_LEAF_RUNS: {
        shape.run_table = table;
        shape.is_wide = is_wide;
        shape.run_count = static_cast<int64_t>(node->count);
        shape.block = static_cast<int64_t>(node->size);
        if (shape.run_count > runs_apart_max) return add(std::move(shape));
        for (int64_t i = 0; i < static_cast<int64_t>(node->count); ++i) {
          Shape single_run = shape;
          single_run.run_count = 0;
          single_run.offset += shape.run(i).offset;
          single_run.packed_offset += shape.run(i).start;
          single_run.block = shape.run(i + 1).start - shape.run(i).start;
          if (!add(std::move(single_run))) return false;
        }
        return true;
      }
      case SPL_NODE_LOOP:
      case SPL_NODE_LIST: shape.levels.push_back(level); return enter(node_at(node->child), std::move(shape));
      default: {
        const auto* const members = reinterpret_cast<const typename W::Member*>(table);
        for (int64_t i = 0; i < level.count; ++i) {
          Shape member = shape;
          member.offset += static_cast<int64_t>(members[i].offset);
          member.packed_offset += static_cast<int64_t>(members[i].start);
          if (!enter(node_at(members[i].child), std::move(member))) return false;
        }
        return true;
      }
    }
  }
  const typename W::Node* node_at(uint64_t place) const {
    return reinterpret_cast<const typename W::Node*>(blob_ + place);
  }
  std::vector<Shape> finish() { return std::move(shapes_); }

 private:
  bool add(Shape shape) {
    if (shapes_.size() == shapes_max) return false;
    std::reverse(shape.levels.begin(), shape.levels.end());
    shapes_.push_back(std::move(shape));
    return true;
  }

  const std::byte* blob_;
  std::vector<Shape> shapes_;
};

template <class W>
std::vector<Shape> descend(const layout::Blob& blob, int64_t count) {
  Descent<W> descent(blob);
  Shape shape;
  shape.offset = blob.true_lb() + blob.header().origin;
  if (count > 1) shape.levels.push_back({count, blob.extent(), nullptr, false, blob.size()});
  if (!descent.enter(descent.node_at(sizeof(spl_layout_header)), std::move(shape))) return {};
  return descent.finish();
}

}  // namespace

ShapeRun Shape::run(int64_t index) const {
  if (is_wide) {
    const auto& entry = reinterpret_cast<const spl_run_wide*>(run_table)[index];
    return {entry.offset, static_cast<int64_t>(entry.start)};
  }
  const auto& entry = reinterpret_cast<const spl_run_narrow*>(run_table)[index];
  return {entry.offset, static_cast<int64_t>(entry.start)};
}

std::vector<Shape> shapes_of(const layout::Blob& blob, int64_t count) {
  if (count == 0 || blob.size() == 0) return {};
  return blob.is_narrow() ? descend<layout::Narrow>(blob, count) : descend<layout::Wide>(blob, count);
}

}  // namespace spinloom::gpu
