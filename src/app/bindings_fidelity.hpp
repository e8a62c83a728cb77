// Schedules on the NICs of a profile, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include "network/topology.hpp"

namespace spinloom::app {

void bind_fidelity(nanobind::module_& module);
// A network of the fields that goal_network.parse() gives.
[[nodiscard]] network::Config network_of(const nanobind::dict& fields);

}  // namespace spinloom::app
