// spinloom._core of the package spinloom-layout: layouts alone.
//
// Contract: a name that only the whole engine has raises spinloom.errors.Trouble('environment') with its cure.
#include <nanobind/nanobind.h>

#include "app/python/bindings_support.hpp"

NB_MODULE(_core, module) {
  using namespace spinloom::app;
  module.doc() = "Layouts: datatypes that move data between Python's buffers.";
  bind_errors(module);
  bind_layout(module);
  bind_type(module);
  refuse_other_names(module,
                     "this installation is spinloom-layout, which has layouts of arrays on the host only: the package "
                     "spinloom has the rest");
}
