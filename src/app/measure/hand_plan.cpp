#include "app/measure/hand_plan.hpp"

#include <limits>
#include <numeric>

#include "memory/layout/width.hpp"

namespace spinloom::app {
namespace {

constexpr int64_t parts_max = 1 << 16;
// If there are at most 3 blocks of one length for 2 runs, the application has a list of blocks.
constexpr int64_t list_blocks_max = 3;
constexpr int64_t list_runs = 2;

// Returns the size of the largest element that divides all of these numbers.
int64_t element_of(std::initializer_list<int64_t> bytes, int64_t block) {
  int64_t common = 0;
  for (const int64_t number : bytes) common = std::gcd(common, number);
  if (block == 16 && common % 16 == 0) return 16;
  return std::gcd<int64_t>(common, 8);
}

template <class W>
class Planner {
 public:
  explicit Planner(const layout::Blob& blob) : blob_(blob) {}

  Result<HandPlan> run() {
    SPL_TRY(visit(node_at(sizeof(spl_layout_header)), blob_.true_lb() + blob_.header().origin));
    return std::move(plan_);
  }

 private:
  using Node = typename W::Node;

  const Node& node_at(int64_t place) const { return *reinterpret_cast<const Node*>(blob_.data() + place); }

  Status visit(const Node& node, int64_t offset) {
    if (static_cast<int64_t>(plan_.parts.size()) >= parts_max) {
      return fail(Code::unsupported, "more than ", parts_max, " loops: nobody writes that by hand");
    }
    switch (node.kind) {
      case SPL_LEAF_VECTOR: vector(node, 1, 0, offset); return {};
      case SPL_LEAF_LIST: return list(node, offset);
      case SPL_LEAF_RUNS: return runs(node, offset);
      case SPL_NODE_LOOP: {
        const Node& child = node_at(node.child);
        if (child.kind == SPL_LEAF_VECTOR) {
          vector(child, static_cast<int64_t>(node.count), node.stride, offset);
          return {};
        }
        for (int64_t i = 0; i < static_cast<int64_t>(node.count); ++i) SPL_TRY(visit(child, offset + i * node.stride));
        return {};
      }
      case SPL_NODE_LIST: {
        const auto* const at = reinterpret_cast<const typename W::Signed*>(&node + 1);
        for (int64_t i = 0; i < static_cast<int64_t>(node.count); ++i) {
          SPL_TRY(visit(node_at(node.child), offset + at[i]));
        }
        return {};
      }
      default: {
        const auto* const member = reinterpret_cast<const typename W::Member*>(&node + 1);
        for (int64_t i = 0; i < static_cast<int64_t>(node.count); ++i) {
          SPL_TRY(visit(node_at(static_cast<int64_t>(member[i].child)), offset + member[i].offset));
        }
        return {};
      }
    }
  }

  void vector(const Node& node, int64_t rows, int64_t row_stride, int64_t offset) {
    const auto block = static_cast<int64_t>(node.block);
    HandPart part;
    part.element = element_of({block, node.stride, row_stride, offset}, block);
    part.offset = offset;
    part.rows = rows;
    part.blocks = static_cast<int64_t>(node.count);
    part.block = block / part.element;
    part.row_stride = row_stride / part.element;
    part.block_stride = node.stride / part.element;
    plan_.parts.push_back(part);
  }

  Status list(const Node& node, int64_t offset) {
    const auto* const at = reinterpret_cast<const typename W::Signed*>(&node + 1);
    const auto count = static_cast<int64_t>(node.count);
    const auto block = static_cast<int64_t>(node.block);
    HandPart part;
    part.element = element_of({block, offset}, block);
    for (int64_t i = 0; i < count; ++i) part.element = std::gcd<int64_t>(part.element, at[i]);
    part.offset = offset;
    part.blocks = count;
    part.block = block / part.element;
    SPL_ASSIGN(part.places, table(count, [&](int64_t i) { return at[i] / part.element; }));
    plan_.parts.push_back(part);
    return {};
  }

  // Adds runs as a list of blocks of one length. A run may be several blocks that happen to touch, so the list may be a
  // little longer than the runs.
  Status runs(const Node& node, int64_t offset) {
    const auto* const run = reinterpret_cast<const typename W::Run*>(&node + 1);
    const auto count = static_cast<int64_t>(node.count);
    const auto length = [&](int64_t i) { return static_cast<int64_t>(run[i + 1].start - run[i].start); };
    int64_t block = 0;
    HandPart part;
    part.element = std::gcd<int64_t>(8, offset);
    for (int64_t i = 0; i < count; ++i) {
      block = std::gcd(block, length(i));
      part.element = std::gcd(part.element, std::gcd<int64_t>(run[i].offset, length(i)));
    }
    part.offset = offset;
    part.blocks = static_cast<int64_t>(node.size) / block;
    if (part.blocks * list_runs <= count * list_blocks_max) {
      part.block = block / part.element;
      int64_t i = 0;
      int64_t within = 0;
      SPL_ASSIGN(part.places, table(part.blocks, [&](int64_t) {
                   if (within == length(i)) {
                     ++i;
                     within = 0;
                   }
                   within += block;
                   return (run[i].offset + within - block) / part.element;
                 }));
      plan_.parts.push_back(part);
      return {};
    }
    part.blocks = count;
    SPL_ASSIGN(part.places, table(count, [&](int64_t i) { return run[i].offset / part.element; }));
    SPL_ASSIGN(part.lengths, table(count, [&](int64_t i) { return length(i) / part.element; }));
    plan_.parts.push_back(part);
    return {};
  }

  template <class Entry>
  Result<const int32_t*> table(int64_t count, Entry&& entry) {
    auto values = std::make_shared<std::vector<int32_t>>();
    values->reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<int64_t>(entry(i));
      if (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min()) {
        return fail(Code::unsupported, "an index of ", value, " does not fit in an int");
      }
      values->push_back(static_cast<int32_t>(value));
    }
    plan_.tables.push_back(values);
    return values->data();
  }

  const layout::Blob& blob_;
  HandPlan plan_;
};

HandPart in_elements(HandPart part, int64_t element) {
  const int64_t factor = part.element / element;
  part.block *= factor;
  part.row_stride *= factor;
  part.block_stride *= factor;
  part.element = element;
  return part;
}

bool is_strided(const HandPart& part) { return part.places == nullptr; }

// Splits each block of `big` into blocks of `small`, and the one row of `small` into as many rows. False if they do not
// fit.
bool split(HandPart& big, HandPart& small) {
  if (!is_strided(big) || !is_strided(small) || big.block % small.block != 0) return false;
  const int64_t times = big.block / small.block;
  if (big.rows != 1) return false;
  if (small.rows == 1 && small.blocks == big.blocks * times) {
    small.rows = big.blocks;
    small.row_stride = times * small.block_stride;
    small.blocks = times;
  } else if (small.rows != big.blocks || small.blocks != times) {
    return false;
  }
  big.rows = big.blocks;
  big.row_stride = big.block_stride;
  big.blocks = times;
  big.block = small.block;
  big.block_stride = small.block;
  return true;
}

// Replaces runs by a list of their elements.
void split_runs(HandPart& part, HandPlan& plan) {
  if (part.lengths == nullptr) return;
  auto places = std::make_shared<std::vector<int32_t>>();
  for (int64_t i = 0; i < part.blocks; ++i) {
    for (int32_t k = 0; k < part.lengths[i]; ++k) places->push_back(part.places[i] + k);
  }
  plan.tables.push_back(places);
  part.blocks = static_cast<int64_t>(places->size());
  part.block = 1;
  part.places = places->data();
  part.lengths = nullptr;
}

bool equal_tables(const HandPart& a, const HandPart& b) {
  if ((a.places == nullptr) != (b.places == nullptr) || (a.lengths == nullptr) != (b.lengths == nullptr)) return false;
  for (int64_t i = 0; a.lengths != nullptr && i < a.blocks; ++i) {
    if (a.lengths[i] != b.lengths[i]) return false;
  }
  return true;
}

}  // namespace

Result<HandPlan> plan_of(const layout::Blob& blob) {
  if (blob.size() == 0) return fail(Code::unsupported, "a type without bytes needs no loop");
  return blob.is_narrow() ? Planner<layout::Narrow>(blob).run() : Planner<layout::Wide>(blob).run();
}

Result<std::pair<HandPlan, HandPlan>> match(const HandPlan& a, const HandPlan& b) {
  const Error none = fail(Code::unsupported, "no single nest of loops copies from one to the other");
  if (a.parts.size() != b.parts.size()) return none;
  std::pair<HandPlan, HandPlan> plans{a, b};
  for (size_t i = 0; i < a.parts.size(); ++i) {
    HandPart& left = plans.first.parts[i];
    HandPart& right = plans.second.parts[i];
    if (left.element != right.element) {
      if (!is_strided(left) || !is_strided(right)) return none;
      const int64_t element = std::min(left.element, right.element);
      left = in_elements(left, element);
      right = in_elements(right, element);
    }
    if (!equal_tables(left, right)) {
      split_runs(left, plans.first);
      split_runs(right, plans.second);
    }
    if (left.block > right.block && !split(left, right)) return none;
    if (right.block > left.block && !split(right, left)) return none;
    if (left.rows != right.rows || left.blocks != right.blocks || left.block != right.block ||
        !equal_tables(left, right))
      return none;
  }
  return plans;
}

}  // namespace spinloom::app
