#include "memory/layout/struct_array.hpp"

#include <algorithm>
#include <cstdlib>

namespace spinloom::layout {
namespace {

using Node = Narrow::Node;

constexpr int64_t extent_max = int64_t{1} << 31;  // no place of 2^24 elements overflows then
// Beyond these numbers the kernels of vectors are as quick.
constexpr int64_t vector_blocks_max = 4;
constexpr int64_t vector_block_bytes_max = 64;
constexpr int64_t blocks_max = 32;

// The leaf that one element repeats, the number of times and the stride.
struct RepeatedLeaf {
  Node block;  // a block of a vector, as a leaf of its own
  const Node* leaf;
  int64_t structs;
  int64_t stride;
};

void find_leaf(const Blob& blob, RepeatedLeaf& found) {
  const auto node_at = [&](size_t place) { return reinterpret_cast<const Node*>(blob.data() + place); };
  const Node& root = *node_at(sizeof(spl_layout_header));
  if (root.kind == SPL_NODE_LOOP) {
    found = {{}, node_at(root.child), static_cast<int64_t>(root.count), root.stride};
  } else if (root.kind == SPL_LEAF_VECTOR && static_cast<int64_t>(root.count) > vector_blocks_max) {
    found = {root, &found.block, static_cast<int64_t>(root.count), root.stride};
    found.block.count = 1;
    found.block.size = root.block;
  } else {
    found = {{}, &root, 1, blob.extent()};
  }
}

}  // namespace

std::unique_ptr<const StructArray> StructArray::from_blob(const Blob& blob) {
  const KernelSet* const set = kernels_if_any();
  if (set == nullptr || !blob.is_narrow() || blob.size() == 0 || std::abs(blob.extent()) > extent_max) return nullptr;
  RepeatedLeaf repeated;
  find_leaf(blob, repeated);
  const Node& leaf = *repeated.leaf;
  if (!is_struct(leaf)) return nullptr;
  int64_t structs_max = std::min(set->struct_moves_max, stream_bytes_min / static_cast<int64_t>(leaf.size));
  if (leaf.kind == SPL_LEAF_VECTOR) {
    const auto count = static_cast<int64_t>(leaf.count);
    if (count > vector_blocks_max || static_cast<int64_t>(leaf.block) > vector_block_bytes_max) return nullptr;
    if (count == 1) structs_max = std::min(structs_max, blocks_max);
  }
  // Elements are joined to one row of structs where they continue it.
  const bool is_joined = blob.extent() == repeated.structs * repeated.stride;
  const int64_t count_max = repeated.structs > structs_max ? 0 : is_joined ? structs_max / repeated.structs : 1;
  if (count_max == 0) return nullptr;
  StructMoves moves;
  if (!moves.prepare<Narrow>(*set, leaf, repeated.stride)) return nullptr;
  if (leaf.kind == SPL_LEAF_VECTOR && !moves.is_disjoint()) return nullptr;  // blocks that interleave
  return std::unique_ptr<const StructArray>(new StructArray(*set, blob, {repeated.structs, count_max}, moves));
}

StructArray::StructArray(const KernelSet& set, const Blob& blob, const Shape& shape, const StructMoves& moves)
    : set_(&set),
      count_max_(shape.count_max),
      structs_(shape.structs),
      origin_(blob.true_lb() + blob.header().origin),
      true_lb_(blob.true_lb()),
      true_extent_(blob.true_extent()),
      extent_(blob.extent()),
      moves_(moves) {}

StructArray::MemoryRange StructArray::memory_range(int64_t count, const std::byte* base) const {
  const int64_t span = (count - 1) * extent_;
  const auto first = reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(true_lb_);
  return {first + static_cast<uintptr_t>(std::min<int64_t>(0, span)),
          first + static_cast<uintptr_t>(true_extent_ + std::max<int64_t>(0, span))};
}

bool copy_structs(const StructArray& to, int64_t to_count, std::byte* target, const StructArray& from,
                  int64_t from_count, const std::byte* source) {
  const int64_t structs = to_count * to.structs_;
  if (structs != from_count * from.structs_ || !to.is_disjoint() || !to.moves_.matches(from.moves_)) return false;
  const StructArray::MemoryRange written = to.memory_range(to_count, target);
  const StructArray::MemoryRange read = from.memory_range(from_count, source);
  if (written.first < read.last && read.first < written.last) return false;
  to.moves_.copy(target + to.origin_, from.moves_, source + from.origin_, structs);
  return true;
}

}  // namespace spinloom::layout
