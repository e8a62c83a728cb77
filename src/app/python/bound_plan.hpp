// Bound plans - a layout, a count and Python's buffers, checked once: what is left of a call is the copy.
//
// Contract: a constructor checks what Layout.pack(), unpack() and copy() check and keeps the buffers, which can
//   neither move nor shrink while the plan lives. pack() and unpack() move the whole message; what a read-only buffer
//   or a layout that writes a byte twice forbids is refused by the one call, not by the constructor.
// Invariants: messages below `held_bytes_max` are moved under the interpreter lock, as handing it over would cost more.
// Threads: with the interpreter lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "app/python/python_buffer.hpp"
#include "memory/layout/committed.hpp"

namespace spinloom::app {

inline constexpr int64_t held_bytes_max = int64_t{64} << 10;

class PackPlan {
 public:
  PackPlan(const layout::Committed& layout, nb::handle array, nb::object packed, int64_t count, int64_t offset,
           bool as_memory);

  void pack() const;
  void unpack() const;

 private:
  layout::Committed layout_;
  int64_t count_;
  int64_t bytes_;
  PythonBuffer array_;
  PythonBuffer packed_;
  std::byte* base_;
  std::span<std::byte> bytes_packed_;
};

class CopyPlan {
 public:
  CopyPlan(const layout::Committed& from, nb::handle source, int64_t count, int64_t offset, const layout::Committed& to,
           nb::handle destination, int64_t to_count, int64_t to_offset, bool as_memory);

  void copy() const;

 private:
  layout::Committed from_;
  layout::Committed to_;
  PythonBuffer source_;
  PythonBuffer destination_;
  layout::Message<const std::byte> read_;
  layout::Message<std::byte> written_;
  int64_t bytes_;
};

}  // namespace spinloom::app
