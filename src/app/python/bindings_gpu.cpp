// spinloom._core: arrays of a GPU, under python/spinloom/layout/device.py, and what is known of a message's kernel
// without one.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/python/bindings_support.hpp"
#include "app/python/gpu_bound.hpp"
#include "app/python/gpu_pair.hpp"
#include "app/python/python_buffer.hpp"
#include "memory/gpu/naive.hpp"
#include "memory/gpu/program.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

// Returns the facts that a DLPack capsule gives about a tensor. `owner` keeps its memory.
nb::dict tensor(nb::object capsule) {
  nb::ndarray<> writable;
  nb::ndarray<nb::ro> readable;
  const bool is_writable = nb::try_cast(capsule, writable);
  if (!is_writable && !nb::try_cast(capsule, readable)) {
    throw Raised{fail(Code::invalid, "the tensor does not give its memory by DLPack")};
  }
  const auto describe = [&](const auto& array, nb::object owner) {
    const auto item_bytes = static_cast<int64_t>(array.itemsize());
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    for (size_t d = 0; d < array.ndim(); ++d) {
      shape.push_back(static_cast<int64_t>(array.shape(d)));
      strides.push_back(array.stride(d) * item_bytes);
    }
    nb::dict out;
    out["address"] = reinterpret_cast<uintptr_t>(array.data());
    out["shape"] = shape;
    out["strides"] = strides;
    out["item_bytes"] = item_bytes;
    out["code"] = static_cast<int>(array.dtype().code);
    out["writable"] = is_writable;
    out["owner"] = std::move(owner);
    return out;
  };
  if (is_writable) return describe(writable, nb::cast(writable, nb::rv_policy::reference));
  return describe(readable, nb::cast(readable, nb::rv_policy::reference));
}

using layout::Committed;

// Returns the bytes of a whole message; throws if only a part is asked for, because kernels move whole messages.
int64_t whole_message_bytes(const Committed& layout, int64_t count, int64_t first, std::optional<int64_t> last) {
  const int64_t bytes = unwrap(layout.packed_bytes(count));
  if (first != 0 || last.value_or(bytes) != bytes) {
    throw Raised{fail(Code::unsupported, "packed bytes ", first, " to ", last.value_or(bytes), " of ", bytes,
                      " were asked for; a GPU moves whole messages, so leave first= and last= out")};
  }
  return bytes;
}

void require_device(const GpuEnd& from, const GpuEnd& to) {
  if (from.on_device || to.on_device) return;
  throw Raised{fail(Code::invalid, "stream= is given, but both arrays lie in the memory of the host; leave it out")};
}

void move(const GpuEnd& from, const GpuEnd& to, uint64_t stream) {
  unwrap(without_lock([&]() -> Status {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's handle
    SPL_ASSIGN(const GpuMove gpu_move, GpuMove::find(from, to, reinterpret_cast<gpu::Stream>(stream)));
    return gpu_move.run();
  }));
}

void pack(const Committed& layout, nb::handle source, nb::handle packed, int64_t count, int64_t first,
          std::optional<int64_t> last, int64_t offset, bool as_memory, uint64_t stream) {
  const int64_t bytes = whole_message_bytes(layout, count, first, last);
  const GpuEnd from = layout_end(source, false, "the source", layout, count, offset, as_memory);
  const GpuEnd to = packed_end(packed, true, bytes);
  require_device(from, to);
  check_apart(to, from);
  if (bytes > 0) move(from, to, stream);
}

void unpack(const Committed& layout, nb::handle packed, nb::handle destination, int64_t count, int64_t first,
            std::optional<int64_t> last, int64_t offset, bool as_memory, uint64_t stream) {
  const int64_t bytes = whole_message_bytes(layout, count, first, last);
  const GpuEnd from = packed_end(packed, false, bytes);
  const GpuEnd to = layout_end(destination, true, "the destination", layout, count, offset, as_memory);
  require_device(from, to);
  check_apart(from, to);
  unwrap(without_lock([&] { return layout.check_receive(count); }));
  if (bytes > 0) move(from, to, stream);
}

void copy(const Committed& from_layout, nb::object source, int64_t count, int64_t offset, const Committed& to_layout,
          nb::object destination, int64_t to_count, int64_t to_offset, bool as_memory, uint64_t stream) {
  GpuCopyPlan(from_layout, std::move(source), count, offset, to_layout, std::move(destination), to_count, to_offset,
              as_memory, stream)
      .copy();
}

// True if a copy writes a byte that it reads, or writes a byte twice.
bool copies_overlap(const Committed& from_layout, nb::handle source, int64_t count, int64_t offset,
                    const Committed& to_layout, nb::handle destination, int64_t to_count, int64_t to_offset,
                    bool as_memory) {
  const GpuEnd read = layout_end(source, false, "the source", from_layout, count, offset, as_memory);
  const GpuEnd written = layout_end(destination, true, "the destination", to_layout, to_count, to_offset, as_memory);
  return bytes_overlap(from_layout, count, read, to_layout, to_count, written);
}

// Packs with one copy by the driver for each contiguous block, for comparison. Returns the number of copies.
int64_t naive_pack(const Committed& layout, nb::handle source, nb::handle packed, int64_t count, int64_t offset,
                   uint64_t stream, int64_t blocks_max) {
  const GpuEnd from = layout_end(source, false, "the source", layout, count, offset, false);
  const GpuEnd to = packed_end(packed, true, unwrap(layout.packed_bytes(count)));
  require_device(from, to);
  if (emulated()) throw Raised{fail(Code::unsupported, "SPINLOOM_GPU=shim has no copies of a driver")};
  return unwrap(without_lock([&]() -> Result<int64_t> {
    SPL_ASSIGN(const gpu::Device device, device_of(from, "the source"));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's handle
    return gpu::naive_move(device, {from.side, to.side}, {from.base, to.base}, reinterpret_cast<gpu::Stream>(stream),
                           blocks_max);
  }));
}

// Returns how a GPU would move a message: found on the host, by the program that a plan puts on a device.
nb::dict program(const std::string& text_form, int64_t count, bool unpacks) {
  const Committed layout = unwrap(Committed::commit(unwrap(layout::parse(text_form))));
  gpu::Message message{gpu::Side::of(layout.blob(), count), gpu::Side::packed()};
  if (unpacks) std::swap(message.from, message.to);
  const gpu::Program gpu_program = unwrap(without_lock([&] { return gpu::Program::make({&message, 1}); }));
  nb::dict out;
  out["kernel"] = gpu_program.kernel_name();
  out["launches"] = gpu_program.launches();
  out["bytes"] = gpu_program.bytes();
  out["bytes_touched"] = gpu_program.bytes_touched();
  out["memory_bytes"] = gpu_program.device_bytes();
  out["bound"] = gpu_program.bottleneck();
  return out;
}

nb::list devices() {
  nb::list out;
  for (int ordinal = 0; ordinal < gpu::Device::count(); ++ordinal) {
    const gpu::Device device = unwrap(gpu::Device::at(ordinal));
    nb::dict facts;
    facts["name"] = device.name();
    facts["compute"] = device.compute_capability();
    facts["processors"] = device.multiprocessors();
    facts["driver"] = device.driver_version();
    if (const auto kernels = without_lock([&] { return device.kernel_origin(); })) {
      facts["kernels"] = *kernels;
    } else {
      facts["kernels"] = "none: " + kernels.error().message;
    }
    out.append(facts);
  }
  return out;
}

}  // namespace

void bind_gpu(nb::module_& module) {
  module.def("tensor", &tensor, nb::arg("capsule"), "Address, shape and strides of a DLPack capsule.");
  nb::class_<DeviceMemory>(module, "DeviceMemory", "An array of a GPU: strides in bytes, an owner of its memory.")
      .def(
          "__init__",
          [](DeviceMemory* self, uint64_t address, std::vector<int64_t> shape, std::vector<int64_t> strides,
             int64_t item_bytes, bool writable, nb::object owner) {
            new (self)
                DeviceMemory{address, std::move(shape), std::move(strides), item_bytes, writable, std::move(owner)};
          },
          nb::arg("address"), nb::arg("shape"), nb::arg("strides"), nb::arg("item_bytes"), nb::arg("writable"),
          nb::arg("owner").none());
  nb::class_<GpuDone>(module, "GpuDone", "What was begun on a GPU; plans.Done.")
      .def("test", [](GpuDone& self) { return unwrap(without_lock([&] { return self.test(); })); })
      .def("wait", [](GpuDone& self) { unwrap(without_lock([&] { return self.wait(); })); })
      .def(
          "hold",
          [](const GpuDone& self, uint64_t stream) {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's handle
            unwrap(without_lock([&] { return self.hold(reinterpret_cast<gpu::Stream>(stream)); }));
          },
          nb::arg("stream"));
  nb::class_<GpuPackPlan>(module, "GpuPackPlan", "A layout, an array, a packed buffer and a stream; device.PackPlan.")
      .def(nb::init<const Committed&, nb::object, nb::object, int64_t, int64_t, bool, uint64_t>(), nb::arg("layout"),
           nb::arg("array").none(), nb::arg("packed").none(), nb::arg("count"), nb::arg("offset"), nb::arg("as_memory"),
           nb::arg("stream"))
      .def("pack", &GpuPackPlan::pack)
      .def("unpack", &GpuPackPlan::unpack)
      .def("begin_pack", &GpuPackPlan::begin_pack, nb::keep_alive<0, 1>())
      .def("begin_unpack", &GpuPackPlan::begin_unpack, nb::keep_alive<0, 1>())
      .def_prop_ro("kernel", &GpuPackPlan::kernel)
      .def("launch_ns", &GpuPackPlan::launch_ns, nb::arg("calls"));
  nb::class_<GpuCopyPlan>(module, "GpuCopyPlan", "Two layouts, their arrays and a stream; device.CopyPlan.")
      .def(nb::init<const Committed&, nb::object, int64_t, int64_t, const Committed&, nb::object, int64_t, int64_t,
                    bool, uint64_t>(),
           nb::arg("layout"), nb::arg("source").none(), nb::arg("count"), nb::arg("offset"), nb::arg("to"),
           nb::arg("destination").none(), nb::arg("to_count"), nb::arg("to_offset"), nb::arg("as_memory"),
           nb::arg("stream"))
      .def("copy", &GpuCopyPlan::copy)
      .def("begin_copy", &GpuCopyPlan::begin_copy, nb::keep_alive<0, 1>());
  nb::class_<GpuCopies>(module, "GpuCopies", "Copies between layouts, in one launch; layout.bind_copies.")
      .def(nb::init<nb::list, uint64_t>(), nb::arg("messages"), nb::arg("stream"))
      .def("copy", &GpuCopies::copy)
      .def("begin_copy", &GpuCopies::begin_copy, nb::keep_alive<0, 1>());
  nb::class_<GpuSet>(module, "GpuSet", "Messages of one launch; device.SetPlan.")
      .def(nb::init<nb::list, uint64_t>(), nb::arg("messages"), nb::arg("stream"))
      .def("pack", &GpuSet::pack)
      .def("unpack", &GpuSet::unpack)
      .def("begin_pack", &GpuSet::begin_pack, nb::keep_alive<0, 1>())
      .def("begin_unpack", &GpuSet::begin_unpack, nb::keep_alive<0, 1>())
      .def_prop_ro("launches", &GpuSet::launches)
      .def_prop_ro("kernel", &GpuSet::kernel);
  nb::class_<GpuPairMove>(module, "GpuPairMove", "A message between two processes; gpu.Move.")
      .def("test", &GpuPairMove::test)
      .def("wait", &GpuPairMove::wait)
      .def_prop_ro("way", &GpuPairMove::way);
  nb::class_<GpuPair>(module, "GpuPair", "Two processes and the way between their GPUs; gpu.Pair.")
      .def(nb::init<nb::object, int, std::string, int>(), nb::arg("channel"), nb::arg("device"), nb::arg("way"),
           nb::arg("patience_ms"))
      .def_prop_ro("way", &GpuPair::way)
      .def_prop_ro("reason", &GpuPair::reason)
      .def("begin", &GpuPair::begin, nb::arg("sends"), nb::arg("layout"), nb::arg("array").none(), nb::arg("count"),
           nb::arg("offset"), nb::arg("as_memory"), nb::arg("stream"));
  module.def("gpu_pack", &pack, nb::arg("layout"), nb::arg("source").none(), nb::arg("packed").none(), nb::arg("count"),
             nb::arg("first"), nb::arg("last").none(), nb::arg("offset"), nb::arg("as_memory"), nb::arg("stream"));
  module.def("gpu_unpack", &unpack, nb::arg("layout"), nb::arg("packed").none(), nb::arg("destination").none(),
             nb::arg("count"), nb::arg("first"), nb::arg("last").none(), nb::arg("offset"), nb::arg("as_memory"),
             nb::arg("stream"));
  module.def("gpu_copy", &copy, nb::arg("layout"), nb::arg("source").none(), nb::arg("count"), nb::arg("offset"),
             nb::arg("to"), nb::arg("destination").none(), nb::arg("to_count"), nb::arg("to_offset"),
             nb::arg("as_memory"), nb::arg("stream"));
  module.def("gpu_meet", &copies_overlap, nb::arg("layout"), nb::arg("source"), nb::arg("count"), nb::arg("offset"),
             nb::arg("to"), nb::arg("destination"), nb::arg("to_count"), nb::arg("to_offset"), nb::arg("as_memory"));
  module.def("gpu_naive_pack", &naive_pack, nb::arg("layout"), nb::arg("source").none(), nb::arg("packed").none(),
             nb::arg("count"), nb::arg("offset"), nb::arg("stream"), nb::arg("blocks_max"));
  module.def("gpu_program", &program, nb::arg("text"), nb::arg("count") = 1, nb::arg("unpacks") = false,
             "The kernel of a message on a GPU, its launches and the bytes that it touches; needs no GPU.");
  module.def("gpu_devices", &devices, "The GPUs of this machine.");
  module.def("gpu_why_not", &gpu::unavailable_reason, "Why there is no GPU; empty if there is one.");
  module.def("gpu_launches", &gpu::launch_count, "Kernels that this process has launched.");
}

}  // namespace spinloom::app
