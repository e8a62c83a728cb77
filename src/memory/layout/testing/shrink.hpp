// Test shrink - from a type that fails a check to a small one that fails it, too.
//
// Contract: smaller(type) lists types that are simpler by one step: a child in place of its parent, fewer elements,
//   shorter lists, rounder numbers, anywhere in the tree. shrink() takes such steps while fails(type) stays true.
// Invariants: each step lowers a weight (nodes, entries, magnitudes), so shrink() ends.
// Threads: pure. Time: none.
#pragma once

#include <functional>
#include <vector>

#include "memory/layout/type.hpp"

namespace spinloom::layout::test {

std::vector<Type> smaller(const Type& type);

Type shrink(Type type, const std::function<bool(const Type&)>& fails);

}  // namespace spinloom::layout::test
