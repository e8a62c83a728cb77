// Info - what spinloom-info tells people: this machine, the environment, an interface's limits, how ranks are reached.
//
// Contract: each function is a list of rows, a name and what there is to say.
// Invariants: (1) nothing is changed. Threads: one. Time: that of a few processes for machine_rows().
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

// Before the process has threads.
[[nodiscard]] std::vector<Row> machine_rows(const Settings& settings);
[[nodiscard]] std::vector<Row> limit_rows(const ptl_ni_limits_t& limits);
// Every variable: what it is set to, what it takes, what it means.
[[nodiscard]] std::vector<Row> variable_rows();
// The ranks that this one reaches, by how it does so: "1-3, 5" and the way.
[[nodiscard]] std::vector<Row> reach_rows(LiveProcess& process);
// "0-3, 5" of sorted numbers.
[[nodiscard]] std::string ranges(const std::vector<uint32_t>& numbers);
[[nodiscard]] std::string table(const std::vector<Row>& rows);

}  // namespace spinloom::process
