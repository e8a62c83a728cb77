// spinloom._core.Layout, what python/spinloom/layout.py stands on: a committed datatype over Python's buffers.
//
// Contract: memory is touched only when every check has passed; the interpreter lock is released while a type is
//   committed and while bytes move.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <optional>

#include "app/bindings_support.hpp"
#include "app/python_buffer.hpp"
#include "layout/blocks.hpp"
#include "layout/committed.hpp"
#include "layout/text.hpp"

namespace spinloom::app {
namespace {

using layout::Committed;
using Access = PythonBuffer::Access;

template <class Work>
auto without_lock(Work&& work) {
  const nb::gil_scoped_release release;
  return work();
}

Committed commit(const std::string& text_form) {
  return unwrap(without_lock([&]() -> Result<Committed> {
    SPL_ASSIGN(const layout::Type type, layout::parse(text_form));
    return Committed::commit(type);
  }));
}

layout::PackedRange range_of(const Committed& layout, int64_t count, int64_t first, std::optional<int64_t> last) {
  const int64_t total = unwrap(layout.packed_bytes(count));
  const layout::PackedRange range{first, last.value_or(total)};
  if (range.first < 0 || range.first > range.last || range.last > total) {
    throw Raised{
        fail(Code::invalid, "packed bytes ", range.first, " to ", range.last, " of a message of ", total, " bytes")};
  }
  return range;
}

std::byte* base_of(const PythonBuffer& buffer, const Committed& layout, int64_t count, int64_t offset) {
  const layout::oracle::Reach reach = unwrap(layout.reach(count));
  return buffer.at(offset, reach.first, reach.last);
}

void check_apart(const std::span<std::byte> packed, const std::byte* base, const Committed& layout, int64_t count) {
  const layout::oracle::Reach reach = unwrap(layout.reach(count));
  const std::less<> before;
  if (!packed.empty() && before(packed.data(), base + reach.last) &&
      before(base + reach.first, packed.data() + packed.size())) {
    throw Raised{fail(Code::invalid, "the packed bytes and the array share memory; use another buffer")};
  }
}

// Into `packed`, or into a new bytearray when that is None; either is returned.
nb::object pack(const Committed& layout, nb::handle source, nb::object packed, int64_t count, int64_t first,
                std::optional<int64_t> last, int64_t offset) {
  const layout::PackedRange range = range_of(layout, count, first, last);
  const PythonBuffer from(source, Access::read, "the source");
  const std::byte* const base = base_of(from, layout, count, offset);
  if (packed.is_none()) packed = nb::steal(PyByteArray_FromStringAndSize(nullptr, range.last - range.first));
  if (!packed.is_valid()) throw nb::python_error();
  const PythonBuffer to(packed, Access::write, "the packed buffer");
  const std::span<std::byte> bytes = to.packed(range.last - range.first);
  check_apart(bytes, base, layout, count);
  unwrap(without_lock([&] { return layout.pack(count, base, range, bytes); }));
  return packed;
}

void unpack(const Committed& layout, nb::handle packed, nb::handle destination, int64_t count, int64_t first,
            std::optional<int64_t> last, int64_t offset) {
  const layout::PackedRange range = range_of(layout, count, first, last);
  const PythonBuffer from(packed, Access::read, "the packed buffer");
  const PythonBuffer to(destination, Access::write, "the destination");
  std::byte* const base = base_of(to, layout, count, offset);
  const std::span<std::byte> bytes = from.packed(range.last - range.first);
  check_apart(bytes, base, layout, count);
  unwrap(without_lock([&] { return layout.unpack(count, base, range, bytes); }));
}

void copy(const Committed& from_layout, nb::handle source, int64_t count, int64_t offset, const Committed& to_layout,
          nb::handle destination, int64_t to_count, int64_t to_offset) {
  const PythonBuffer from(source, Access::read, "the source");
  const PythonBuffer to(destination, Access::write, "the destination");
  const std::byte* const from_base = base_of(from, from_layout, count, offset);
  std::byte* const to_base = base_of(to, to_layout, to_count, to_offset);
  unwrap(without_lock([&] { return layout::copy({&from_layout, count, from_base}, {&to_layout, to_count, to_base}); }));
}

// The first `limit` contiguous blocks in packed order as (offset, bytes).
nb::list blocks(const Committed& layout, int64_t count, int64_t limit) {
  nb::list out;
  if (limit <= 0) return out;
  unwrap(layout::for_each_block(layout.blob(), count, [&](const layout::Piece& block) {
    out.append(nb::make_tuple(block.offset, block.bytes));
    return --limit > 0;
  }));
  return out;
}

}  // namespace

void bind_layout(nb::module_& module) {
  nb::class_<Committed>(module, "Layout", "A committed datatype; spinloom.layout.Layout is its public face.")
      .def_static("from_text", &commit, nb::arg("text"))
      .def_prop_ro("text", [](const Committed& self) { return layout::print(self.type()); })
      .def_prop_ro("size", [](const Committed& self) { return self.type().size(); })
      .def_prop_ro("lb", [](const Committed& self) { return self.type().lb(); })
      .def_prop_ro("ub", [](const Committed& self) { return self.type().ub(); })
      .def_prop_ro("extent", [](const Committed& self) { return self.type().extent(); })
      .def_prop_ro("true_lb", [](const Committed& self) { return self.type().true_lb(); })
      .def_prop_ro("true_extent", [](const Committed& self) { return self.type().true_extent(); })
      .def("packed_bytes", [](const Committed& self, int64_t count) { return unwrap(self.packed_bytes(count)); })
      .def("check_receive", [](const Committed& self,
                               int64_t count) { unwrap(without_lock([&] { return self.check_receive(count); })); })
      .def("blocks", &blocks, nb::arg("count"), nb::arg("limit"))
      .def("pack", &pack, nb::arg("source"), nb::arg("packed").none(), nb::arg("count"), nb::arg("first"),
           nb::arg("last").none(), nb::arg("offset"))
      .def("unpack", &unpack, nb::arg("packed"), nb::arg("destination"), nb::arg("count"), nb::arg("first"),
           nb::arg("last").none(), nb::arg("offset"))
      .def("copy", &copy, nb::arg("source"), nb::arg("count"), nb::arg("offset"), nb::arg("to"), nb::arg("destination"),
           nb::arg("to_count"), nb::arg("to_offset"));
}

}  // namespace spinloom::app
