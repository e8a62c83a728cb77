// Overlaps - bytes of memory that several blocks of one rank's calls have in common.
//
// Contract: common_bytes() counts the bytes of memory that lie in more than one of the blocks, or more than once in
//   one: each time but the first. It returns nothing if the blocks have more than limits::message_blocks_max pieces, or
//   a type or an address is not known.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

[[nodiscard]] std::optional<int64_t> common_bytes(const RankTrace& trace, std::span<const Block> blocks);

}  // namespace spinloom::trace
