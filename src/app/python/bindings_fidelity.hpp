// BindingsFidelity - schedules on the NICs of a profile, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace spinloom::app {

void bind_fidelity(nanobind::module_& module);

}  // namespace spinloom::app
