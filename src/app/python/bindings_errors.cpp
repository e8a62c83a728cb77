// spinloom._core: what every form of the module has: its exception, limits, and text for terminals.
#include <nanobind/nanobind.h>

#include <string>

#include "app/python/bindings_support.hpp"
#include "app/python/python_text.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"

namespace spinloom::app {

void bind_errors(nb::module_& module) {
  nb::set_leak_warnings(false);  // objects that a program holds until its end are no fault of its own
  static nb::object error_type = nb::module_::import_("spinloom.errors").attr("Trouble");
  module.attr("SpinloomError") = error_type;
  nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
    try {
      std::rethrow_exception(raised);
    } catch (const Raised& trouble) {
      const nb::object instance = error_type(name_of(trouble.error.code), text_of(trouble.error.message));
      PyErr_SetObject(error_type.ptr(), instance.ptr());
    }
  });
  nb::dict known;
  known["hpu_count_max"] = limits::hpu_count_max;
  known["payload_bytes_max"] = limits::payload_bytes_max;
  known["rank_count_max"] = limits::rank_count_max;
  module.attr("limits") = known;
  module.def(
      "printable", [](const nb::bytes& text) { return printable({text.c_str(), text.size()}); }, nb::arg("text"),
      "What a terminal may show of it, as printable.py does it.");
}

void refuse_other_names(nb::module_& module, const char* cure) {
  module.def("__getattr__", [cure](const std::string& name) -> nb::object {
    if (name.starts_with("__")) throw nb::attribute_error(name.c_str());
    throw Raised{fail(Code::environment, cure)};
  });
}

}  // namespace spinloom::app
