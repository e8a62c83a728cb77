#include "memory/layout/testing/shrink.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace spinloom::layout::test {
namespace {

std::vector<int64_t> values_of(const IndexList& list) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < list.size(); ++i) values.push_back(list[i]);
  return values;
}

// Calls the constructor with the node's arguments.
Result<Type> rebuilt(const TypeNode& node) {
  switch (node.combiner) {
    case Combiner::primitive: return primitive(node.name);
    case Combiner::contiguous: return contiguous(node.count, node.children[0]);
    case Combiner::vector: return vector(node.count, node.block_length, node.stride, node.children[0]);
    case Combiner::hvector: return hvector(node.count, node.block_length, node.stride, node.children[0]);
    case Combiner::indexed: return indexed(node.displacements, node.block_lengths, node.children[0]);
    case Combiner::hindexed: return hindexed(node.displacements, node.block_lengths, node.children[0]);
    case Combiner::indexed_block: return indexed_block(node.block_length, node.displacements, node.children[0]);
    case Combiner::hindexed_block: return hindexed_block(node.block_length, node.displacements, node.children[0]);
    case Combiner::structure: return structure(node.displacements, node.block_lengths, node.children);
    case Combiner::resized: return resized(node.lb, node.extent, node.children[0]);
    case Combiner::subarray: return subarray(node.sizes, node.subsizes, node.starts, node.order, node.children[0]);
    case Combiner::dup: return dup(node.children[0]);
    case Combiner::darray: {
      DarrayArguments arguments;
      arguments.processes = node.processes;
      arguments.rank = node.rank;
      arguments.sizes = node.sizes;
      arguments.order = node.order;
      std::vector<int64_t> grid;
      for (const DarrayDimension& dimension : node.dimensions) {
        arguments.distributions.push_back(dimension.distribution);
        arguments.distribution_arguments.push_back(dimension.argument);
        grid.push_back(dimension.processes);
      }
      arguments.grid = std::move(grid);
      return darray(arguments, node.children[0]);
    }
  }
  return primitive("byte");
}

class SmallerTypes {
 public:
  explicit SmallerTypes(const TypeNode& node) : node_(node) {}

  std::vector<Type> list() {
    for (const Type& child : node_.children) candidates_.push_back(child);
    if (node_.combiner == Combiner::primitive && node_.size > 1) candidates_.push_back(*primitive("byte"));
    if (node_.combiner == Combiner::primitive && node_.size > 2) candidates_.push_back(*primitive("short"));
    shorten_lists();
    shrink_field(&TypeNode::count, 1);
    shrink_field(&TypeNode::block_length, 1);
    shrink_field(&TypeNode::stride, 1);
    if (node_.combiner == Combiner::resized) {
      shrink_field(&TypeNode::lb, 0);
      shrink_field(&TypeNode::extent, 0);
    }
    shrink_arrays();
    for (size_t i = 0; i < node_.children.size(); ++i) {
      for (const Type& child : smaller(node_.children[i])) {
        TypeNode copy = node_;
        copy.children[i] = child;
        add(copy);
      }
    }
    return std::move(candidates_);
  }

 private:
  void add(const TypeNode& node) {
    if (auto type = rebuilt(node)) candidates_.push_back(*type);
  }

  // Values between `value` and `round`: `round` itself, half of the way, one step.
  static std::vector<int64_t> nearer_values(int64_t value, int64_t round) {
    std::vector<int64_t> steps;
    if (value == round) return steps;
    for (const int64_t step : {round, round + (value - round) / 2, value - (value > round ? 1 : -1)}) {
      if (step != value && (steps.empty() || steps.back() != step)) steps.push_back(step);
    }
    return steps;
  }

  void shrink_field(int64_t TypeNode::* field, int64_t round) {
    for (const int64_t value : nearer_values(node_.*field, round)) {
      TypeNode copy = node_;
      copy.*field = value;
      add(copy);
    }
  }

  // Lists with one entry less, and lists with one entry nearer to zero.
  void shorten_lists() {
    if (node_.displacements.size() == 0) return;
    const std::vector<int64_t> displacements = values_of(node_.displacements);
    for (size_t i = 0; i < displacements.size(); ++i) {
      TypeNode copy = node_;
      std::vector<int64_t> kept = displacements;
      kept.erase(kept.begin() + static_cast<int64_t>(i));
      copy.displacements = std::move(kept);
      if (!copy.block_lengths.empty()) copy.block_lengths.erase(copy.block_lengths.begin() + static_cast<int64_t>(i));
      if (node_.combiner == Combiner::structure) copy.children.erase(copy.children.begin() + static_cast<int64_t>(i));
      add(copy);
      for (const int64_t value : nearer_values(displacements[i], 0)) {
        std::vector<int64_t> moved = displacements;
        moved[i] = value;
        copy = node_;
        copy.displacements = std::move(moved);
        add(copy);
      }
      if (node_.block_lengths.empty()) continue;
      for (const int64_t value : nearer_values(node_.block_lengths[i], 1)) {
        copy = node_;
        copy.block_lengths[i] = value;
        add(copy);
      }
    }
  }

  void shrink_arrays() {
    for (const auto list : {&TypeNode::starts, &TypeNode::subsizes, &TypeNode::sizes}) {
      const std::vector<int64_t> values = values_of(node_.*list);
      for (size_t d = 0; d < values.size(); ++d) {
        for (const int64_t value : nearer_values(values[d], list == &TypeNode::starts ? 0 : 1)) {
          std::vector<int64_t> changed = values;
          changed[d] = value;
          TypeNode copy = node_;
          copy.*list = std::move(changed);
          add(copy);
        }
      }
    }
    if (node_.combiner == Combiner::subarray && node_.sizes.size() > 1) {
      for (size_t d = 0; d < static_cast<size_t>(node_.sizes.size()); ++d) {
        TypeNode copy = node_;
        for (const auto list : {&TypeNode::starts, &TypeNode::subsizes, &TypeNode::sizes}) {
          std::vector<int64_t> values = values_of(node_.*list);
          values.erase(values.begin() + static_cast<int64_t>(d));
          copy.*list = std::move(values);
        }
        add(copy);
      }
    }
  }

  const TypeNode& node_;
  std::vector<Type> candidates_;
};

double weight_of(const Type& type) {
  const TypeNode& node = type.node();
  const auto log_distance = [](int64_t value, int64_t round) {
    return std::log2(1.0 + std::abs(static_cast<double>(value - round)));
  };
  double weight = 8 + log_distance(node.count, 1) + log_distance(node.block_length, 1) + log_distance(node.stride, 1);
  if (node.combiner == Combiner::primitive) weight = 1 + log_distance(node.size, 1);
  if (node.combiner == Combiner::resized) weight += log_distance(node.lb, 0) + log_distance(node.extent, 0);
  for (const IndexList* list : {&node.displacements, &node.starts}) {
    for (int64_t i = 0; i < list->size(); ++i) weight += 2 + log_distance((*list)[i], 0);
  }
  for (const IndexList* list : {&node.sizes, &node.subsizes}) {
    for (int64_t i = 0; i < list->size(); ++i) weight += 2 + log_distance((*list)[i], 1);
  }
  for (const int64_t length : node.block_lengths) weight += log_distance(length, 1);
  for (const Type& child : node.children) weight += weight_of(child);
  return weight;
}

}  // namespace

std::vector<Type> smaller(const Type& type) { return SmallerTypes(type.node()).list(); }

Type shrink(Type type, const std::function<bool(const Type&)>& fails) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const Type& candidate : smaller(type)) {
      if (weight_of(candidate) < weight_of(type) && fails(candidate)) {
        type = candidate;
        moved = true;
        break;
      }
    }
  }
  return type;
}

}  // namespace spinloom::layout::test
