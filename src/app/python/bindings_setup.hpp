// BindingsSetup - a Setup and its parts from a dictionary of settings, for the bindings that simulate messages.
//
// Contract: get() and get_as() throw an Error that names the key if it is missing or its value has the wrong type.
// Threads: with the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "app/python/bindings_support.hpp"
#include "app/studies/setup.hpp"
#include "simulated/node/trace.hpp"

namespace spinloom::app {

[[nodiscard]] nb::object get(const nb::dict& config, const char* key);

template <class T>
T get_as(const nb::dict& config, const char* key) {
  T value{};
  if (!nb::try_cast<T>(get(config, key), value)) {
    throw Raised{fail(Code::invalid, "config: \"", key, "\" has the wrong type or range")};
  }
  return value;
}

// Reads "profile", "images", "hpus", "mtu", "order", "seed", "inject", and "slice_cycles" if it is given.
[[nodiscard]] Setup setup_of(const nb::dict& config);

[[nodiscard]] inline nb::bytes bytes_of(const std::vector<uint8_t>& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

[[nodiscard]] inline double ratio(uint64_t value, uint64_t by) {
  return by == 0 ? 0.0 : static_cast<double>(value) / static_cast<double>(by);
}

// Adds "trace" and "trace_dropped"; times count from origin_ps.
void add_trace(nb::dict& row, const simulated::Trace& trace, int64_t origin_ps);

}  // namespace spinloom::app
