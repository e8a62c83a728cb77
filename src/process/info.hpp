// Info - the texts of spinloom-info: this machine, the environment, the limits of an interface, how ranks are
// reached.
//
// Contract: each function returns rows: a name, and what there is to say about it.
// Invariants: (1) nothing is changed. Threads: one. Time: machine_rows() starts a few processes and waits for them.
#pragma once

#include <string>
#include <vector>

#include "portals4.h"
#include "process/live_process.hpp"
#include "process/settings.hpp"

namespace spinloom::process {

struct Row {
  std::string name;
  std::string value;
};

// To be called before the process has threads.
[[nodiscard]] std::vector<Row> machine_rows(const Settings& settings);
[[nodiscard]] std::vector<Row> limit_rows(const ptl_ni_limits_t& limits);
// For every variable: its value, the values that it takes, and what it means.
[[nodiscard]] std::vector<Row> variable_rows();
// The ranks that this one reaches, grouped by the way there. A row is "1-3, 5" and the way.
[[nodiscard]] std::vector<Row> reach_rows(LiveProcess& process);
// Sorted numbers as text: "0-3, 5".
[[nodiscard]] std::string ranges(const std::vector<uint32_t>& numbers);
[[nodiscard]] std::string table(const std::vector<Row>& rows);

}  // namespace spinloom::process
