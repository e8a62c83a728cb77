// spinloom._core - the engine as a Python module, whole; python/spinloom/common/core.py documents it.
#include <nanobind/nanobind.h>

#include "app/python/bindings_support.hpp"

NB_MODULE(_core, module) {
  using namespace spinloom::app;
  module.doc() = "The engine of Spinloom: datatypes and simulated sPIN NICs.";
  bind_errors(module);
  bind_layout(module);
  bind_type(module);
  bind_cell(module);
  bind_bandwidth(module);
  bind_bench(module);
  bind_collective(module);
  bind_explain(module);
  bind_frame(module);
  bind_goal(module);
  bind_gpu(module);
  bind_handler(module);
  bind_host(module);
  bind_nic(module);
  bind_peers(module);
  bind_predict(module);
  bind_program(module);
  bind_send(module);
  bind_share(module);
  bind_study(module);
  bind_torture(module);
  bind_trace(module);
}
