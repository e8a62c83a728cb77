// Program part - one draft as a part: its kernel, word width, tiles, tables.
//
// Contract: lay_down() chooses the kernel of a draft, or takes `forced` where the draft allows it, and adds its tables
//   to the arena. cut() sets tile_bytes, the bytes that a block of threads moves; kind tile has tiles of the size that
//   lay_down() gave them. tiles_of() returns how many blocks of threads the part takes. touched_by() and is_dense() are
//   defined in program_sectors.cpp. touched_by() estimates the memory traffic of a part on both sides, in bytes of
//   whole sectors.
// Threads: one owner of the arena. Time: none.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/gpu/draft.hpp"
#include "memory/gpu/program_arena.hpp"

namespace spinloom::gpu {

kernel::Part lay_down(const Draft& draft, const Message& message, std::optional<uint32_t> forced, ProgramArena& arena);
void cut(kernel::Part& part, int64_t tile_bytes);
int64_t tiles_of(const kernel::Part& part);
// True if consecutive packed bytes are consecutive in the memory of one side.
bool is_dense(const Draft& draft, bool is_from);
int64_t touched_by(const Draft& draft, const kernel::Part& part);

}  // namespace spinloom::gpu
