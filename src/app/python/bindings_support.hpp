// BindingsSupport - errors as exceptions, and the functions that bind each file.
//
// Threads: with the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "app/python/python_string.hpp"
#include "base/result.hpp"

namespace spinloom::app {

namespace nb = nanobind;

// Carries an Error to Python.
struct Raised {
  Error error;
};

inline void unwrap(const Status& status) {
  if (!status) throw Raised{status.error()};
}

template <class T>
T unwrap(Result<T> result) {
  if (!result) throw Raised{result.error()};
  return std::move(result.value());
}

// Does work that touches no Python object, without the interpreter lock.
template <class Work>
auto without_lock(Work&& work) {
  const nb::gil_scoped_release release;
  return work();
}

void bind_bandwidth(nb::module_& module);   // bindings_bandwidth.cpp
void bind_bench(nb::module_& module);       // bindings_bench.cpp
void bind_cell(nb::module_& module);        // bindings_cell.cpp
void bind_collective(nb::module_& module);  // bindings_collective.cpp
void bind_errors(nb::module_& module);      // bindings_errors.cpp
void bind_explain(nb::module_& module);     // bindings_explain.cpp
void bind_frame(nb::module_& module);       // bindings_frame.cpp
void bind_goal(nb::module_& module);        // bindings_goal.cpp
void bind_gpu(nb::module_& module);         // bindings_gpu.cpp
void bind_handler(nb::module_& module);     // bindings_handler.cpp
void bind_host(nb::module_& module);        // bindings_host.cpp
void bind_layout(nb::module_& module);      // bindings_layout.cpp
void bind_nic(nb::module_& module);         // bindings_nic.cpp
void bind_peers(nb::module_& module);       // bindings_peers.cpp
void bind_predict(nb::module_& module);     // bindings_predict.cpp
void bind_program(nb::module_& module);     // bindings_program.cpp
void bind_send(nb::module_& module);        // bindings_send.cpp
void bind_share(nb::module_& module);       // bindings_share.cpp
void bind_study(nb::module_& module);       // bindings_study.cpp
void bind_torture(nb::module_& module);     // bindings_torture.cpp
void bind_trace(nb::module_& module);       // bindings_trace.cpp
void bind_type(nb::module_& module);        // bindings_type.cpp

// Makes every name that `module` lacks raise Trouble('environment') with the sentence `cure`, a literal.
void refuse_other_names(nb::module_& module, const char* cure);  // bindings_errors.cpp

}  // namespace spinloom::app
