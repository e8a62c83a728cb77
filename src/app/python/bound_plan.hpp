// Bound plans - layouts, counts and Python's buffers, checked once, so that a call only copies.
//
// Contract: a constructor checks what Layout.pack(), unpack() and copy() check and keeps the buffers, which can
//   neither move nor shrink while the plan lives. pack() and unpack() move the whole message. A PackPlan may have a
//   read-only buffer or a layout that writes a byte twice: then the call that would write it throws. CopyPlan's
//   constructor refuses both.
// Invariants: messages of `held_bytes_max` bytes or more move without the interpreter lock. Smaller ones move under it,
//   because handing it over would cost more, but for those that pack_at_once() or unpack_at_once() does not take.
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
  layout::MessageBuffer<const std::byte> read_;
  layout::MessageBuffer<std::byte> written_;
  int64_t bytes_;
};

}  // namespace spinloom::app
