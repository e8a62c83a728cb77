// Program part - one draft as a part: its kernel, word width, tiles, tables.
//
// Contract: make_part() chooses the kernel of a draft, or takes `forced` where the draft allows it, and adds its tables
//   to the arena. set_tile_bytes() sets tile_bytes, the bytes that a block of threads moves; kind tile has tiles of the
//   size that make_part() gave them. tiles_of() returns how many blocks of threads the part takes. bytes_touched_by()
//   and is_dense() are defined in program_sectors.cpp. bytes_touched_by() estimates the memory traffic of a part on
//   both sides, in bytes of whole sectors.
// Threads: one owner of the arena. Time: none.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/gpu/draft.hpp"
#include "memory/gpu/program_arena.hpp"

namespace spinloom::gpu {

kernel::Part make_part(const Draft& draft, const Message& message, std::optional<uint32_t> forced, ProgramArena& arena);
void set_tile_bytes(kernel::Part& part, int64_t tile_bytes);
int64_t tiles_of(const kernel::Part& part);
// True if consecutive packed bytes are consecutive in the memory of one side.
bool is_dense(const Draft& draft, bool is_from);
int64_t bytes_touched_by(const Draft& draft, const kernel::Part& part);

}  // namespace spinloom::gpu
