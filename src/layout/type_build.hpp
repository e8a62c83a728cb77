// What the type constructors share: bounds of placed children, limits, the finished node. For their files only.
//
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "layout/type.hpp"

namespace spinloom::layout {

// Collects the bounds of placed children.
class Bounds {
 public:
  // A child at a displacement, in bytes.
  Status add(const TypeNode& child, int64_t displacement) {
    if (child.size > 0) {
      SPL_ASSIGN(const int64_t first, checked::add(displacement, child.true_lb));
      SPL_ASSIGN(const int64_t last, checked::add(displacement, child.true_ub));
      widen(data_, first, last);
    }
    if (child.marked) {
      SPL_ASSIGN(const int64_t first, checked::add(displacement, child.lb));
      SPL_ASSIGN(const int64_t last, checked::add(displacement, child.ub));
      widen(markers_, first, last);
    }
    return {};
  }

  // `length` children, one extent apart: the extremes are at the ends.
  Status add_block(const TypeNode& child, int64_t displacement, int64_t length) {
    if (length == 0 || add_quickly(child, displacement, length)) return {};
    SPL_TRY(add(child, displacement));
    SPL_ASSIGN(const int64_t span, checked::mul(length - 1, child.extent));
    SPL_ASSIGN(const int64_t last, checked::add(displacement, span));
    return add(child, last);
  }

  Status finish(TypeNode& node) const {
    if (data_.any) {
      node.true_lb = data_.first;
      node.true_ub = data_.last;
      SPL_ASSIGN([[maybe_unused]] const int64_t true_extent, checked::sub(data_.last, data_.first));
    }
    const Span& outer = markers_.any ? markers_ : data_;
    node.marked = markers_.any;
    if (outer.any) {
      node.lb = outer.first;
      node.ub = outer.last;
    }
    SPL_ASSIGN(node.extent, checked::sub(node.ub, node.lb));
    return {};
  }

 private:
  // What a list of millions of blocks needs; false, and nothing added, where it is not that simple.
  bool add_quickly(const TypeNode& child, int64_t displacement, int64_t length) {
    int64_t span = 0;
    int64_t first = 0;
    int64_t last = 0;
    if (child.marked || child.size == 0 || child.extent < 0 ||
        __builtin_mul_overflow(length - 1, child.extent, &span) ||
        __builtin_add_overflow(displacement, child.true_lb, &first) ||
        __builtin_add_overflow(displacement, child.true_ub, &last) || __builtin_add_overflow(last, span, &last)) {
      return false;
    }
    widen(data_, first, last);
    return true;
  }

  struct Span {
    bool any = false;
    int64_t first = 0;
    int64_t last = 0;
  };

  static void widen(Span& span, int64_t first, int64_t last) {
    span.first = span.any ? std::min(span.first, first) : first;
    span.last = span.any ? std::max(span.last, last) : last;
    span.any = true;
  }

  Span data_;
  Span markers_;
};

inline Status adopt(TypeNode& node, std::vector<Type> children, int64_t own_entries) {
  node.entries = own_entries;
  for (const Type& child : children) {
    node.depth = std::max(node.depth, child.node().depth + 1);
    SPL_ASSIGN(node.entries, checked::add(node.entries, child.node().entries));
  }
  if (node.depth > limits::type_depth_max) {
    return fail(Code::overflow, "a type nested ", node.depth,
                " deep exceeds type_depth_max = ", limits::type_depth_max);
  }
  if (node.entries > limits::type_list_max) {
    return fail(Code::overflow, "a type with ", node.entries,
                " list entries exceeds type_list_max = ", limits::type_list_max);
  }
  node.children = std::move(children);
  return {};
}

inline Result<Type> finished(TypeNode node, const Bounds& bounds) {
  SPL_TRY(bounds.finish(node));
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

}  // namespace spinloom::layout
