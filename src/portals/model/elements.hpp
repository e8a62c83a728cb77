// Elements - atomic operations on elements of 8 bytes, as Portals 4 defines them.
//
// Contract: apply() changes as many whole elements of `target` as `source` has. For the swap family `operand` stands
//   on the left of the relation.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "portals/model/program.hpp"

namespace spinloom::model {

inline constexpr uint16_t element_bytes = 8;

void apply(const Movement& movement, std::span<const uint8_t> source, std::span<uint8_t> target);

}  // namespace spinloom::model
