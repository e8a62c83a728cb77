// PythonBuffer - the memory behind a Python object with the buffer protocol, while a call uses it.
//
// Contract: `base` is the first byte of item [0, 0, ...]; [base - before, base + after) is the memory that the object
//   spans, so a view with negative strides has memory before its base. A writable buffer is refused for a read-only
//   object, and one that is reached through pointers (suboffsets) or holds Python objects always.
// Invariants: the object cannot move or free its memory while this lives.
// Threads: made and destroyed with the interpreter lock; read without. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "app/bindings_support.hpp"

namespace spinloom::app {

class PythonBuffer {
 public:
  enum class Access : uint8_t { read, write };

  // `role` names it in errors: "the source".
  PythonBuffer(nb::handle object, Access access, const char* role);
  ~PythonBuffer() { PyBuffer_Release(&view_); }
  PythonBuffer(const PythonBuffer&) = delete;
  PythonBuffer& operator=(const PythonBuffer&) = delete;

  // base + offset, once [first, last) from there is known to lie in the object.
  [[nodiscard]] std::byte* at(int64_t offset, int64_t first, int64_t last) const;
  // The first `bytes` bytes of a contiguous object.
  [[nodiscard]] std::span<std::byte> packed(int64_t bytes) const;

 private:
  Py_buffer view_{};
  const char* role_;
  int64_t before_ = 0;
  int64_t after_ = 0;
};

}  // namespace spinloom::app
