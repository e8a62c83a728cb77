// Program brief - the short form of a part that one thread a word moves in one go.
//
// Contract: brief_of() gives the Brief of a part, or nothing: more words than threads run at once, another kernel than
//   word, strides or tables beyond 32 bits, streaming. prefers_brief(): a short part that tiles would take goes as
//   words, because the cache holds it.
// Threads: pure. Time: none.
#pragma once

#include <optional>

#include "memory/gpu/kernel_parts.h"

namespace spinloom::gpu {

std::optional<kernel::Brief> brief_of(const kernel::Part& part);
bool prefers_brief(const kernel::Part& part);

}  // namespace spinloom::gpu
