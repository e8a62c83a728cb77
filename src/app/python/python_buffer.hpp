// PythonBuffer - the memory behind a Python object, while a call uses it.
//
// Contract: `base` is the first byte of item [0, 0, ...]; [base - bytes_before_, base + bytes_after_) is the memory
//   that the object spans, so a view with negative strides has memory before its base. Objects without the buffer
//   protocol are taken by DLPack when a host processor reaches their memory. Memory of a GPU comes as a DeviceMemory,
//   which python/spinloom/layout/device.py makes; it is refused unless the caller passes Place::anywhere. These are
//   refused with a sentence: masked arrays, Python objects, rows behind pointers (suboffsets), and read-only memory for
//   writing.
// Invariants: the object cannot move or free its memory while this lives.
// Threads: made and destroyed with the interpreter lock; read without. Time: none.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/python/bindings_support.hpp"
#include "memory/layout/committed.hpp"

namespace spinloom::app {

// An array of a GPU, as its library describes it. Strides are in bytes. `owner` keeps the memory.
struct DeviceMemory {
  uint64_t address = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t item_bytes = 0;
  bool writable = false;
  nb::object owner;
};

class PythonBuffer {
 public:
  enum class Access : uint8_t { read, write };
  enum class Place : uint8_t { host, anywhere };

  // `role` names the buffer in errors, for example "the source". Only a caller that passes `anywhere` gets a GPU's
  // memory; it must not touch the bytes itself.
  PythonBuffer(nb::handle object, Access access, const char* role, Place place = Place::host);
  ~PythonBuffer();
  PythonBuffer(const PythonBuffer&) = delete;
  PythonBuffer& operator=(const PythonBuffer&) = delete;

  [[nodiscard]] bool on_device() const { return on_device_; }
  [[nodiscard]] bool writable() const { return writable_; }
  // Refuses a read-only object.
  void require_writable() const {
    if (!writable_) refuse_writing();
  }
  // Returns base + offset if the bytes of `count` elements of a layout there lie in the object, and throws otherwise. A
  // message without bytes gets base. A view with gaps is refused where the layout would plainly touch bytes in the
  // gaps, unless it is taken `as_memory`.
  [[nodiscard]] std::byte* address_of(const layout::Committed& layout, int64_t count, int64_t offset,
                                      bool as_memory) const;
  // Returns the first `bytes` bytes of an object whose items follow each other in row-major order; throws for others.
  [[nodiscard]] std::span<std::byte> packed(int64_t bytes) const;

 private:
  // A dimension of a view that cannot be joined with the dimensions inside it; strides are positive.
  struct Axis {
    int64_t length;
    int64_t stride;
  };

  [[noreturn]] void refuse_writing() const;
  void take_buffer(nb::handle object);
  void take_tensor(nb::handle object);
  void take_device(const DeviceMemory& memory);
  [[nodiscard]] static bool is_contiguous(const std::vector<Axis>& axes, int64_t item_bytes);
  void measure(std::vector<Axis> axes, int64_t item_bytes);
  [[nodiscard]] bool is_in_one_run(int64_t first, int64_t last) const;
  // Throws if the layout would plainly touch bytes in the gaps of the view; of other layouts nothing is known.
  void check_gaps(const layout::Committed& layout, int64_t count, int64_t first, int64_t last) const;

  Py_buffer view_{};
  nb::ndarray<nb::ro> tensor_;  // instead of view_
  const char* role_;
  std::byte* base_ = nullptr;
  bool writable_ = false;
  bool on_device_ = false;
  bool contiguous_ = true;
  int64_t bytes_before_ = 0;  // bytes of the object before the base
  int64_t bytes_after_ = 0;  // bytes of the object from the base on
  int64_t bytes_ = 0;  // bytes of its items
  int64_t run_bytes_ = 0;  // bytes that follow each other in memory, from each item that begins a run
  std::vector<Axis> axes_;  // the largest stride is first; none: all is one run, or runs overlap and nothing is known
};

// Refuses packed bytes that overlap the memory that `count` elements at `base` span, gaps included.
void check_apart(std::span<const std::byte> packed, const std::byte* base, const layout::Committed& layout,
                 int64_t count);

}  // namespace spinloom::app
