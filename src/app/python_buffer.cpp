#include "app/python_buffer.hpp"

#include "base/checked.hpp"

namespace spinloom::app {
namespace {

bool through_pointers(const Py_buffer& view) {
  if (view.suboffsets == nullptr) return false;
  for (int d = 0; d < view.ndim; ++d) {
    if (view.suboffsets[d] >= 0) return true;
  }
  return false;
}

// Whether Python objects are among the items: 'O' in a format of the struct module (PEP 3118), whose field names stand
// between colons.
bool holds_objects(const Py_buffer& view) {
  if (view.format == nullptr) return false;
  bool in_name = false;
  for (const char* at = view.format; *at != '\0'; ++at) {
    if (*at == ':') in_name = !in_name;
    if (*at == 'O' && !in_name) return true;
  }
  return false;
}

}  // namespace

PythonBuffer::PythonBuffer(nb::handle object, Access access, const char* role) : role_(role) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) throw nb::python_error();
  const auto refuse = [&](const char* why) {
    PyBuffer_Release(&view_);  // the destructor does not run
    throw Raised{fail(Code::invalid, role, " ", why)};
  };
  if (access == Access::write && view_.readonly != 0) refuse("is read-only");
  if (through_pointers(view_)) refuse("is an array of pointers to rows (suboffsets); copy it first");
  if (holds_objects(view_)) refuse("holds references to Python objects, which are not data");
  if (view_.len == 0) return;
  if (view_.strides == nullptr) {
    after_ = view_.len;
    return;
  }
  after_ = view_.itemsize;
  for (int d = 0; d < view_.ndim; ++d) {
    const int64_t way = (view_.shape[d] - 1) * view_.strides[d];
    (way < 0 ? before_ : after_) += way < 0 ? -way : way;
  }
}

std::byte* PythonBuffer::at(int64_t offset, int64_t first, int64_t last) const {
  auto* const base = static_cast<std::byte*>(view_.buf);
  if (first == last) return base;
  const int64_t from = unwrap(checked::add(offset, first));
  const int64_t to = unwrap(checked::add(offset, last));
  if (from < -before_ || to > after_) {
    throw Raised{fail(Code::invalid, role_, " holds ", before_ + after_, " bytes, from ", -before_, " to ", after_,
                      " of its first item, but ", to - from, " bytes, from ", from, " to ", to, ", are needed")};
  }
  return base + offset;
}

std::span<std::byte> PythonBuffer::packed(int64_t bytes) const {
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) throw Raised{fail(Code::invalid, role_, " is not contiguous")};
  if (view_.len < bytes) {
    throw Raised{fail(Code::invalid, role_, " holds ", static_cast<int64_t>(view_.len), " bytes, but ", bytes,
                      " bytes are needed")};
  }
  return {static_cast<std::byte*>(view_.buf), static_cast<size_t>(bytes)};
}

}  // namespace spinloom::app
