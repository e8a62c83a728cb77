#include "memory/layout/testing/place.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace spinloom::layout::test {
namespace {

// The place of packed byte `position` in a row of children that begins at `start`.
int64_t in_row(const Type& child, int64_t start, int64_t position) {
  return start + position / child.size() * child.extent() + place_of(child, position % child.size());
}

int64_t in_list(const TypeNode& node, int64_t unit, int64_t position) {
  for (int64_t i = 0; i < node.displacements.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    const Type& child = node.children[node.children.size() > 1 ? at : 0];
    const int64_t length = node.block_lengths.empty() ? node.block_length : node.block_lengths[at];
    const int64_t bytes = length * child.size();
    if (position < bytes) return in_row(child, node.displacements[i] * unit, position);
    position -= bytes;
  }
  SPL_ASSERT(false, "position ", position, " behind the last block");
  return 0;
}

// The number of elements of a dimension that the rank owns, and the index of its k-th element.
int64_t dealt_elements(const DarrayDimension& dealt, int64_t size) {
  const int64_t round = dealt.block * dealt.processes;
  return size / round * dealt.block +
         std::clamp<int64_t>(size % round - dealt.coordinate * dealt.block, 0, dealt.block);
}
int64_t dealt_element(const DarrayDimension& dealt, int64_t k) {
  return (k / dealt.block * dealt.processes + dealt.coordinate) * dealt.block + k % dealt.block;
}

int64_t in_array(const TypeNode& node, int64_t position) {
  const Type& child = node.children[0];
  int64_t rest = position / child.size();
  int64_t element = 0;
  int64_t pitch = 1;
  const int64_t dimensions = node.sizes.size();
  for (int64_t step = 0; step < dimensions; ++step) {  // the fastest dimension is first, the slowest last
    const int64_t d = node.order == Order::c ? dimensions - 1 - step : step;
    const bool dealt = node.combiner == Combiner::darray;
    const DarrayDimension dimension = dealt ? node.dimensions[static_cast<size_t>(d)] : DarrayDimension{};
    const int64_t here = dealt ? dealt_elements(dimension, node.sizes[d]) : node.subsizes[d];
    const int64_t k = rest % here;
    element += (dealt ? dealt_element(dimension, k) : node.starts[d] + k) * pitch;
    rest /= here;
    pitch *= node.sizes[d];
  }
  return element * child.extent() + place_of(child, position % child.size());
}

}  // namespace

int64_t place_of(const Type& type, int64_t position) {
  const TypeNode& node = type.node();
  switch (node.combiner) {
    case Combiner::primitive: return position;
    case Combiner::contiguous: return in_row(node.children[0], 0, position);
    case Combiner::vector:
    case Combiner::hvector: {
      const Type& child = node.children[0];
      const int64_t stride = node.combiner == Combiner::vector ? node.stride * child.extent() : node.stride;
      const int64_t block = node.block_length * child.size();
      return in_row(child, position / block * stride, position % block);
    }
    case Combiner::indexed:
    case Combiner::indexed_block: return in_list(node, node.children[0].extent(), position);
    case Combiner::hindexed:
    case Combiner::hindexed_block:
    case Combiner::structure: return in_list(node, 1, position);
    case Combiner::resized:
    case Combiner::dup: return place_of(node.children[0], position);
    case Combiner::subarray:
    case Combiner::darray: return in_array(node, position);
  }
  return 0;
}

}  // namespace spinloom::layout::test
