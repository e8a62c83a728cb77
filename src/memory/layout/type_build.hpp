// Type build - what the type constructors share: bounds of placed children, limits, the finished node. For type.cpp and
// type_darray.cpp only.
//
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

// Collects the bounds of placed children.
class Bounds {
 public:
  // Adds a child at a displacement in bytes.
  Status add(const TypeNode& child, int64_t displacement) {
    if (child.size > 0) {
      SPL_ASSIGN(const int64_t first, checked::add(displacement, child.true_lb));
      SPL_ASSIGN(const int64_t last, checked::add(displacement, child.true_ub));
      widen(data_, first, last);
    }
    if (child.has_markers) {
      SPL_ASSIGN(const int64_t first, checked::add(displacement, child.lb));
      SPL_ASSIGN(const int64_t last, checked::add(displacement, child.ub));
      widen(markers_, first, last);
    }
    return {};
  }

  // Adds `length` children, one extent apart. The first and the last child have the extreme bounds.
  Status add_block(const TypeNode& child, int64_t displacement, int64_t length) {
    if (length == 0 || add_quickly(child, displacement, length)) return {};
    SPL_TRY(add(child, displacement));
    SPL_ASSIGN(const int64_t span, checked::mul(length - 1, child.extent));
    SPL_ASSIGN(const int64_t last, checked::add(displacement, span));
    return add(child, last);
  }

  Status finish(TypeNode& node) const {
    if (data_.is_set) {
      node.true_lb = data_.first;
      node.true_ub = data_.last;
      SPL_ASSIGN([[maybe_unused]] const int64_t true_extent, checked::sub(data_.last, data_.first));
    }
    const Span& outer = markers_.is_set ? markers_ : data_;
    node.has_markers = markers_.is_set;
    if (outer.is_set) {
      node.lb = outer.first;
      node.ub = outer.last;
    }
    SPL_ASSIGN(node.extent, checked::sub(node.ub, node.lb));
    return {};
  }

 private:
  // The common case of add_block(), kept fast for lists of millions of blocks. False: nothing was added.
  bool add_quickly(const TypeNode& child, int64_t displacement, int64_t length) {
    int64_t span = 0;
    int64_t first = 0;
    int64_t last = 0;
    if (child.has_markers || child.size == 0 || child.extent < 0 ||
        __builtin_mul_overflow(length - 1, child.extent, &span) ||
        __builtin_add_overflow(displacement, child.true_lb, &first) ||
        __builtin_add_overflow(displacement, child.true_ub, &last) || __builtin_add_overflow(last, span, &last)) {
      return false;
    }
    widen(data_, first, last);
    return true;
  }

  struct Span {
    bool is_set = false;
    int64_t first = 0;
    int64_t last = 0;
  };

  static void widen(Span& span, int64_t first, int64_t last) {
    span.first = span.is_set ? std::min(span.first, first) : first;
    span.last = span.is_set ? std::max(span.last, last) : last;
    span.is_set = true;
  }

  Span data_;
  Span markers_;
};

// A rectangle of an array, built from the fastest dimension to the slowest, for subarray and darray.
class Rectangle {
 public:
  // Adds a dimension of `size` places, `count` of which belong to the rectangle, from `first` to `last`.
  Status add(TypeNode& node, int64_t size, int64_t count, int64_t first, int64_t last) {
    SPL_ASSIGN(const int64_t first_step, checked::mul(first, elements_));
    SPL_ASSIGN(const int64_t last_step, checked::mul(last, elements_));
    SPL_ASSIGN(first_, checked::add(first_, first_step));
    SPL_ASSIGN(last_, checked::add(last_, last_step));
    SPL_ASSIGN(elements_, checked::mul(elements_, size));
    SPL_ASSIGN(node.size, checked::mul(node.size, count));
    return {};
  }

  // Sets the bounds of the node: the first and the last element give the true bounds; the markers span the whole array.
  Status finish(TypeNode& node, const Type& child) const {
    if (node.size > 0) {
      Bounds bounds;
      SPL_ASSIGN(const int64_t first_byte, checked::mul(first_, child.extent()));
      SPL_ASSIGN(const int64_t last_byte, checked::mul(last_, child.extent()));
      SPL_TRY(bounds.add(child.node(), first_byte));
      SPL_TRY(bounds.add(child.node(), last_byte));
      SPL_TRY(bounds.finish(node));
    }
    SPL_ASSIGN(node.extent, checked::mul(elements_, child.extent()));
    node.lb = 0;
    node.ub = node.extent;
    node.has_markers = true;
    return {};
  }

 private:
  int64_t elements_ = 1;  // elements of the array in the dimensions added so far
  int64_t first_ = 0;  // index of the first element of the rectangle
  int64_t last_ = 0;
};

// Gives the node its children. Returns an Error if it is nested too deep, or has too many list entries.
inline Status set_children(TypeNode& node, std::vector<Type> children, int64_t own_entries) {
  node.list_entries = own_entries;
  for (const Type& child : children) {
    node.depth = std::max(node.depth, child.node().depth + 1);
    SPL_ASSIGN(node.list_entries, checked::add(node.list_entries, child.node().list_entries));
  }
  if (node.depth > limits::type_depth_max) {
    return fail(Code::overflow, "a type nested ", node.depth,
                " deep exceeds type_depth_max = ", limits::type_depth_max);
  }
  if (node.list_entries > limits::type_list_max) {
    return fail(Code::overflow, "a type with ", node.list_entries,
                " list entries exceeds type_list_max = ", limits::type_list_max);
  }
  node.children = std::move(children);
  return {};
}

inline Result<Type> make_type(TypeNode node, const Bounds& bounds) {
  SPL_TRY(bounds.finish(node));
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

}  // namespace spinloom::layout
