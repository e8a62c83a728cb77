// Draft pieces - tables of pieces of one layout, or of two.
//
// Contract: pieces_of_side() takes one element of a layout and adds a level of elements; pieces_of_both() takes a whole
//   message. Nothing comes back where the table would be larger than options.pieces_bytes_max or the period too long.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/gpu/draft.hpp"

namespace spinloom::gpu {

inline constexpr int64_t part_bytes_max = int64_t{1} << 30;
// A piece takes a start, up to two hints, and offsets: of 32 bits on two sides, or of 64 bits on one.
inline constexpr int64_t piece_bytes = 20;
// A piece with offsets of 64 bits on two sides; where one offset of a table needs them, all have them.
inline constexpr int64_t wide_piece_bytes = 28;

std::optional<Draft> pieces_of_side(const Side& side, bool is_from, const DraftOptions& options);
Result<std::optional<Draft>> pieces_of_both(const Message& message, const DraftOptions& options);

}  // namespace spinloom::gpu
