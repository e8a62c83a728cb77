// Bound plans of a GPU - layouts, arrays and a stream, checked once, so that a call only launches.
//
// Contract: constructors check what the calls of bindings_gpu.cpp check, and keep the arrays. GpuPackPlan moves one
//   message, GpuCopyPlan one from layout to layout, GpuSet any number of messages together, and GpuCopies any number
//   from layouts to layouts. A layout that writes a byte twice, or a read-only array, is refused by unpack() of the
//   first and of GpuSet, and by the constructors of the others. begin_pack() and its like do not wait for the bytes,
//   whatever the ends are; under SPINLOOM_GPU=shim they move them.
// Threads: with the interpreter lock, which is released while a kernel is launched. Time: host time.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>

#include "app/measure/gpu_move.hpp"
#include "memory/layout/committed.hpp"

namespace spinloom::app {

namespace nb = nanobind;

// Return one side of a call: a layout in an array, or packed bytes. `written` refuses a read-only object.
GpuEnd layout_end(nb::handle array, bool written, const char* role, const layout::Committed& layout, int64_t count,
                  int64_t offset, bool as_memory);
GpuEnd packed_end(nb::handle packed, bool written, int64_t bytes);
// Refuses packed bytes that overlap the memory that the message spans in the array, gaps included.
void check_apart(const GpuEnd& packed, const GpuEnd& array);

class GpuPackPlan {
 public:
  GpuPackPlan(const layout::Committed& layout, nb::object array, nb::object packed, int64_t count, int64_t offset,
              bool as_memory, uint64_t stream);

  void pack() const;
  void unpack() const;
  [[nodiscard]] GpuDone begin_pack() const;
  [[nodiscard]] GpuDone begin_unpack() const;
  // Returns the name of the kernel of pack(); empty where bytes are staged or the message has none.
  [[nodiscard]] std::string kernel() const {
    return pack_ && pack_->program() != nullptr ? pack_->program()->kernel_name() : "";
  }
  // Returns the host time of `calls` calls of pack() together, in ns. They wait for the bytes only where one end is the
  // host's.
  [[nodiscard]] int64_t launch_ns(int64_t calls) const;

 private:
  void check_pack() const;
  void check_unpack() const;

  layout::Committed layout_;
  int64_t count_;
  nb::object array_;
  nb::object packed_;
  bool array_writable_;
  bool packed_writable_;
  std::optional<GpuMove> pack_;
  std::optional<GpuMove> unpack_;
};

class GpuCopyPlan {
 public:
  GpuCopyPlan(const layout::Committed& from, nb::object source, int64_t count, int64_t offset,
              const layout::Committed& to, nb::object destination, int64_t to_count, int64_t to_offset, bool as_memory,
              uint64_t stream);

  void copy() const;
  [[nodiscard]] GpuDone begin_copy() const;

 private:
  nb::object source_;
  nb::object destination_;
  std::optional<GpuMove> move_;
};

// True if a message of `to` at `written` writes a byte that one of `from` at `read` reads, or writes a byte twice.
// Looks at all blocks.
bool bytes_overlap(const layout::Committed& from, int64_t count, const GpuEnd& read, const layout::Committed& to,
                   int64_t to_count, const GpuEnd& written);

// Copies between layouts on one device. No copy may write bytes that any copy reads or another one writes.
class GpuCopies {
 public:
  GpuCopies(nb::list messages, uint64_t stream);  // entries: (layout, source, layout, destination)

  void copy() const;
  [[nodiscard]] GpuDone begin_copy() const;

 private:
  nb::list messages_;
  std::optional<GpuMove> move_;
};

// Messages of one device, each between a layout in an array and a packed buffer.
class GpuSet {
 public:
  GpuSet(nb::list messages, uint64_t stream);  // entries: (layout, array, packed, count, offset)

  void pack() const;
  void unpack() const;
  [[nodiscard]] GpuDone begin_pack() const;
  [[nodiscard]] GpuDone begin_unpack() const;
  [[nodiscard]] int launches() const { return pack_ ? pack_->program()->launches() : 0; }
  [[nodiscard]] std::string kernel() const { return pack_ ? pack_->program()->kernel_name() : ""; }

 private:
  void check_unpack() const;

  nb::list messages_;
  nb::object read_only_;  // an array that unpack() must not write
  std::optional<GpuMove> pack_;
  std::optional<GpuMove> unpack_;
  std::optional<Error> unpack_error_;
};

}  // namespace spinloom::app
