// PrintedLine - a line that a handler has printed (spl_debug), as people read it, and the core that printed it.
//
// Threads: plain values. Time: none.
#pragma once

#include <string>

#include "nic/frames/action.hpp"

namespace spinloom::ethernet {

struct PrintedLine {
  static constexpr uint32_t cores = 8;  // cores of a cluster, as on the board

  explicit PrintedLine(const frames::DebugLine& line)
      : cluster(line.hpu.value / cores),
        core(line.hpu.value % cores),
        text(spinloom::text(line.text, ' ', line.value)) {}

  uint32_t cluster;
  uint32_t core;
  std::string text;
};

}  // namespace spinloom::ethernet
