// spinloom._core - the engine as a Python module, whole; python/spinloom/common/core.py documents it.
#include <nanobind/nanobind.h>

#include "app/python/bindings_support.hpp"

NB_MODULE(_core, module) {
  using namespace spinloom::app;
  module.doc() = "The engine of Spinloom: datatypes and simulated sPIN NICs.";
  bind_cards(module);
  bind_bench(module);
  bind_collective(module);
  bind_frame(module);
  bind_goal(module);
  bind_gpu(module);
  bind_nic(module);
  bind_peers(module);
  bind_predict(module);
  bind_program(module);
  bind_study(module);
  bind_torture(module);
  bind_trace(module);
}
