#include "memory/layout/normalise.hpp"

#include <algorithm>
#include <unordered_map>

#include "memory/layout/passes.hpp"

namespace spinloom::layout {
namespace {

class Normaliser {
 public:
  PlacedNest nest_of(const Type& type) {
    const TypeNode* node = &type.node();
    if (node->size == 0) return {};
    if (const auto found = nests_.find(node); found != nests_.end()) return found->second;
    const PlacedNest placed = build(*node);
    nests_.emplace(node, placed);
    return placed;
  }

 private:
  PlacedNest build(const TypeNode& node) {
    switch (node.combiner) {
      case Combiner::primitive: return run_of(0, node.size);
      case Combiner::contiguous: return row(node.children[0], node.count);
      case Combiner::vector:
        return repeat(node.count, node.stride * node.children[0].extent(), row(node.children[0], node.block_length));
      case Combiner::hvector: return repeat(node.count, node.stride, row(node.children[0], node.block_length));
      case Combiner::indexed:
      case Combiner::indexed_block: return list_nest(node, node.children[0].extent());
      case Combiner::hindexed:
      case Combiner::hindexed_block: return list_nest(node, 1);
      case Combiner::structure: return struct_nest(node);
      case Combiner::resized:
      case Combiner::dup: return nest_of(node.children[0]);
      case Combiner::subarray: return subarray_nest(node);
      case Combiner::darray: return darray_nest(node);
    }
    return {};
  }

  // Returns the nest of `length` elements of the child, one extent apart.
  PlacedNest row(const Type& child, int64_t length) { return repeat(length, child.extent(), nest_of(child)); }

  PlacedNest list_nest(const TypeNode& node, int64_t unit) {
    const Type& child = node.children[0];
    const int64_t entries = node.displacements.size();
    const auto count = static_cast<size_t>(entries);
    std::vector<int64_t> displacements(count);
    for (size_t i = 0; i < count; ++i) displacements[i] = node.displacements[static_cast<int64_t>(i)] * unit;
    if (node.block_lengths.empty()) return scatter(std::move(displacements), row(child, node.block_length));
    std::vector<int64_t> lengths = node.block_lengths;
    drop_empty(displacements, lengths);
    const bool are_equal = std::all_of(lengths.begin(), lengths.end(), [&](int64_t l) { return l == lengths[0]; });
    if (are_equal) return scatter(std::move(displacements), row(child, lengths[0]));
    const PlacedNest element = nest_of(child);
    if (element.nest->is_run() && child.extent() == element.nest->block) {
      for (int64_t& length : lengths) length *= child.extent();
      return displaced(scatter_runs(std::move(displacements), std::move(lengths)), element.displacement);
    }
    std::unordered_map<int64_t, PlacedNest> rows;  // one nest for each block length, shared
    std::vector<PlacedNest> members;
    members.reserve(displacements.size());
    for (size_t i = 0; i < displacements.size(); ++i) {
      const auto [entry, is_new] = rows.try_emplace(lengths[i]);
      if (is_new) entry->second = row(child, lengths[i]);
      members.push_back(displaced(entry->second, displacements[i]));
    }
    return gather(std::move(members));
  }

  static void drop_empty(std::vector<int64_t>& displacements, std::vector<int64_t>& lengths) {
    if (std::find(lengths.begin(), lengths.end(), 0) == lengths.end()) return;
    size_t kept_count = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      displacements[kept_count] = displacements[i];
      lengths[kept_count] = lengths[i];
      kept_count += lengths[i] == 0 ? 0 : 1;
    }
    displacements.resize(kept_count);
    lengths.resize(kept_count);
  }

  PlacedNest struct_nest(const TypeNode& node) {
    std::vector<PlacedNest> members;
    members.reserve(node.children.size());
    PlacedNest last;  // members are often many of one kind
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool is_repeat = i > 0 && &node.children[i].node() == &node.children[i - 1].node() &&
                             node.block_lengths[i] == node.block_lengths[i - 1];
      if (!is_repeat) last = row(node.children[i], node.block_lengths[i]);
      members.push_back(displaced(last, node.displacements[static_cast<int64_t>(i)]));
    }
    return gather(std::move(members));
  }

  PlacedNest subarray_nest(const TypeNode& node) {
    const int64_t dimensions = node.sizes.size();
    PlacedNest placed = nest_of(node.children[0]);
    int64_t pitch = node.children[0].extent();
    for (int64_t step = 0; step < dimensions; ++step) {  // the fastest dimension is first, the slowest last
      const int64_t d = node.order == Order::c ? dimensions - 1 - step : step;
      placed = displaced(repeat(node.subsizes[d], pitch, placed), node.starts[d] * pitch);
      pitch *= node.sizes[d];
    }
    return placed;
  }

  // Each dimension has whole blocks, a round apart, and the last block, which the end of the array may cut.
  PlacedNest darray_nest(const TypeNode& node) {
    const int64_t dimensions = node.sizes.size();
    PlacedNest placed = nest_of(node.children[0]);
    int64_t pitch = node.children[0].extent();
    for (int64_t step = 0; step < dimensions; ++step) {  // the fastest dimension is first, the slowest last
      const int64_t d = node.order == Order::c ? dimensions - 1 - step : step;
      const DarrayDimension& dimension = node.dimensions[static_cast<size_t>(d)];
      const int64_t start = dimension.coordinate * dimension.block;
      const int64_t round = dimension.block * dimension.processes;
      const int64_t blocks = (node.sizes[d] - start - 1) / round + 1;
      const int64_t last_start = start + (blocks - 1) * round;
      const int64_t last_length = std::min(dimension.block, node.sizes[d] - last_start);
      const int64_t full_blocks = last_length == dimension.block ? blocks : blocks - 1;
      std::vector<PlacedNest> parts;
      if (full_blocks > 0) {
        const PlacedNest block = repeat(dimension.block, pitch, placed);
        parts.push_back(displaced(repeat(full_blocks, round * pitch, block), start * pitch));
      }
      if (full_blocks < blocks) parts.push_back(displaced(repeat(last_length, pitch, placed), last_start * pitch));
      placed = gather(std::move(parts));
      pitch *= node.sizes[d];
    }
    return placed;
  }

  std::unordered_map<const TypeNode*, PlacedNest> nests_;
};

}  // namespace

PlacedNest normalise(const Type& type) { return Normaliser().nest_of(type); }

}  // namespace spinloom::layout
