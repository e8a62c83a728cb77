// Width - the two forms of a blob's body as types, for code that is written once for both.
//
// Contract: names the structs of include/spinloom/layout_walk.h. Threads: types only. Time: none.
#pragma once

#include <cstdint>

#include "spinloom/layout_walk.h"

namespace spinloom::layout {

struct Narrow {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  using Node = spl_node_narrow;
  using Run = spl_run_narrow;
  using Member = spl_member_narrow;
  using Level = spl_level_narrow;
  static constexpr uint32_t bits = 32;
};

struct Wide {
  using Unsigned = uint64_t;
  using Signed = int64_t;
  using Node = spl_node_wide;
  using Run = spl_run_wide;
  using Member = spl_member_wide;
  using Level = spl_level_wide;
  static constexpr uint32_t bits = 64;
};

}  // namespace spinloom::layout
