// PythonString - texts of the engine as Python's str, and the other way round, in place of <nanobind/stl/string.h>.
//
// Contract: a std::string always becomes a str: names in files may be any bytes, and bytes that are no UTF-8 are
//   written \xNN. A str becomes a std::string in UTF-8. A file's name that is no UTF-8, as Python holds it
//   (surrogateescape), becomes its bytes again. Other lone surrogates are refused, and so is another type.
// Threads: with the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace spinloom::app {

[[nodiscard]] inline nanobind::str python_string(std::string_view text) {
  PyObject* const object = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (object == nullptr) nanobind::raise_python_error();
  return nanobind::steal<nanobind::str>(object);
}

}  // namespace spinloom::app

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t bytes = 0;
    if (const char* const text = PyUnicode_AsUTF8AndSize(source.ptr(), &bytes); text != nullptr) {
      value.assign(text, static_cast<size_t>(bytes));
      return true;
    }
    PyErr_Clear();
    PyObject* const encoded = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
    if (encoded == nullptr) {
      PyErr_Clear();
      return false;
    }
    value.assign(PyBytes_AsString(encoded), static_cast<size_t>(PyBytes_Size(encoded)));
    Py_DECREF(encoded);
    return true;
  }

  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  }
};

}  // namespace nanobind::detail
