// Info - the texts of spinloom-info: this machine, the environment, the limits of an interface, how ranks are
// reached.
//
// Contract: functions called ..._rows() return rows of a name and its description; ranges() and table() make text.
// Invariants: (1) nothing is changed.
// Threads: one. Time: machine_rows() starts a few processes and waits for them.
#pragma once

#include <string>
#include <vector>

#include "live/process/live_process.hpp"
#include "live/process/settings.hpp"
#include "portals4.h"

namespace spinloom::process {

struct Row {
  std::string name;
  std::string value;
};

// Call this before the process has threads.
[[nodiscard]] std::vector<Row> machine_rows(const Settings& settings);
[[nodiscard]] std::vector<Row> limit_rows(const ptl_ni_limits_t& limits);
// For every variable: its value, its legal values, and its meaning.
[[nodiscard]] std::vector<Row> variable_rows();
// All ranks, grouped by the way to them, or by the reason why there is none. A row is "1-3, 5" and the way.
[[nodiscard]] std::vector<Row> reach_rows(LiveProcess& process);
// Sorted numbers as text: "0-3, 5".
[[nodiscard]] std::string ranges(const std::vector<uint32_t>& numbers);
[[nodiscard]] std::string table(const std::vector<Row>& rows);

}  // namespace spinloom::process
