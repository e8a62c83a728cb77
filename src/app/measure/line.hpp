// Lines - the unit in which a CPU's caches take memory.
#pragma once

#include <cstdint>

namespace spinloom::app {

inline constexpr int64_t line_bytes = 64;

}  // namespace spinloom::app
