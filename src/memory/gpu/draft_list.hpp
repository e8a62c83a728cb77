// Draft list - a short message of several parts, or of pieces, as one list of blocks of one length.
//
// Contract: list_of() joins the drafts of a message of at most list_bytes_max into one: their blocks are cut to the
//   greatest length that divides all of them, and listed in the order of one side. Nothing comes back where the message
//   is longer, is one draft of blocks already, or has a walk, where blocks would be shorter than a word of 4 bytes, or
//   where offsets need more than 32 bits. A list takes one read before each block; parts and tables of pieces take
//   several, one behind the other, which a short message has no other work to hide.
// Invariants: (1) the list moves the bytes that the drafts move; (2) the draft owns its tables.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "memory/gpu/draft.hpp"

namespace spinloom::gpu {

inline constexpr int64_t list_bytes_max = int64_t{1} << 18;

// The list follows the order of `from` if `packed_is_from` is true, else that of `to`. A packed side becomes contiguous
// if it is that side.
std::optional<Draft> list_of(std::span<const Draft> drafts, bool packed_is_from);

}  // namespace spinloom::gpu
