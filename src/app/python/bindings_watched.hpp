// BindingsWatched - runs of schedules that report their progress to Python, and that Python can end.
//
// Contract: watched() calls a run with a Watch of predict/goal/model/watch.hpp, and returns its outcome or throws.
// Threads: with Python's lock, which it gives up meanwhile. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "app/python/bindings_support.hpp"
#include "predict/goal/model/watch.hpp"

namespace spinloom::app {

// Runs without the lock. Now and then it takes the lock and reports how many operations have begun. It ends if Python
// asks for that: by Ctrl-C, or by an exception of `progress`.
template <class Run>
auto watched(const nb::object& progress, const Run& run) {
  std::optional<nb::python_error> stopped;
  const goal::Watch watch = [&](uint64_t begun) {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) {
      stopped.emplace();
    } else if (!progress.is_none()) {
      try {
        progress(begun);
      } catch (nb::python_error& error) {
        stopped.emplace(std::move(error));
      }
    }
    return !stopped.has_value();
  };
  auto outcome = without_lock([&] { return run(watch); });
  if (stopped.has_value()) throw std::move(*stopped);
  return unwrap(std::move(outcome));
}

}  // namespace spinloom::app
