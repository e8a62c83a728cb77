// Test place - where one packed byte lies, by the definition of each constructor, without walking there.
//
// Contract: place_of(type, position) is the offset of packed byte `position` of a message that is one element of
//   `type`; the count of a message is contiguous(count, type). It is the oracle for messages that are too long to be
//   walked, and is itself compared with the walked type map (differential_test.cpp).
// Threads: pure. Time: O(depth * (entries + dimensions)).
#pragma once

#include <cstdint>

#include "memory/layout/type.hpp"

namespace spinloom::layout::test {

int64_t place_of(const Type& type, int64_t position);

}  // namespace spinloom::layout::test
