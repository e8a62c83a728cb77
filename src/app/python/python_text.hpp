// Python text - strings between Python and the core that need not be UTF-8: what files hold, and how files are named.
//
// Contract: text_of() makes a str of any bytes; bytes that are no UTF-8 are written \xNN. path_of() returns a path's
//   bytes as the system has them, and raises what Python raises for an object that is no path.
// Threads: the caller holds the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace spinloom::app {

inline nanobind::str text_of(std::string_view bytes) {
  return nanobind::steal<nanobind::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
}

inline std::string path_of(nanobind::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nanobind::python_error();
  const auto owner = nanobind::steal<nanobind::object>(bytes);
  return {PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
}

}  // namespace spinloom::app
