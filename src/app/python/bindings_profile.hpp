// BindingsProfile - a NIC profile from the dictionary that Python's profiles make.
//
// Contract: profile_of() throws an Error that names the field if it is of the wrong type, unknown, missing or out of
//   range.
// Threads: with the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include "app/python/bindings_support.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::app {

[[nodiscard]] simulated::Profile profile_of(const nb::dict& profile);

}  // namespace spinloom::app
