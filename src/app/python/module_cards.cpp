// spinloom._core of `make demo`: layouts and messages to one simulated card, so that it need not build the rest.
//
// Contract: a name that only the whole engine has raises spinloom.errors.Trouble('environment') with its cure.
#include <nanobind/nanobind.h>

#include "app/python/bindings_support.hpp"

NB_MODULE(_core, module) {
  using namespace spinloom::app;
  module.doc() = "Layouts and simulated sPIN NICs: the part of Spinloom's engine that make demo builds.";
  bind_errors(module);
  bind_layout(module);
  bind_type(module);
  bind_cell(module);
  refuse_other_names(module,
                     "this installation has layouts and cards only, which make demo builds: 'make setup' in the "
                     "checkout builds the rest");
}
