// Pieces - memory that is a list of pieces, in any order and with gaps; or one piece, if there is no list.
//
// Contract: offsets count through the concatenation of the pieces. Bytes outside of it are not touched.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "portals/model/program.hpp"

namespace spinloom::model {

// The parts of memory that `length` bytes from `offset` on lie in, in their order; none is empty.
[[nodiscard]] std::vector<Region> parts_of(Region memory, const std::vector<Region>& pieces, uint16_t offset,
                                           uint16_t length);
[[nodiscard]] std::vector<uint8_t> gather(std::span<const uint8_t> memory, const std::vector<Region>& parts);
void scatter(std::span<const uint8_t> bytes, const std::vector<Region>& parts, std::span<uint8_t> memory);

}  // namespace spinloom::model
