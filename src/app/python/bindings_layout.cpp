// spinloom._core.Layout: a committed datatype over Python's buffers, under python/spinloom/layout/__init__.py.
//
// Contract: memory is touched only after every check has passed. The interpreter lock is released while a type is
//   committed and while bytes move.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/python/bindings_support.hpp"
#include "app/python/bound_plan.hpp"
#include "app/python/python_buffer.hpp"
#include "memory/layout/blocks.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

using layout::Committed;
using Access = PythonBuffer::Access;

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

// Packs into `packed`, or into a new bytearray if that is None. Returns the object that it has filled.
nb::object pack(const Committed& layout, nb::handle source, nb::object packed, int64_t count, int64_t first,
                std::optional<int64_t> last, int64_t offset, bool as_memory) {
  const layout::PackedRange range = range_of(layout, count, first, last);
  const PythonBuffer from(source, Access::read, "the source");
  const std::byte* const base = from.address_of(layout, count, offset, as_memory);
  if (packed.is_none()) packed = nb::steal(PyByteArray_FromStringAndSize(nullptr, range.last - range.first));
  if (!packed.is_valid()) throw nb::python_error();
  const PythonBuffer to(packed, Access::write, "the packed buffer");
  const std::span<std::byte> bytes = to.packed(range.last - range.first);
  check_apart(bytes, base, layout, count);
  unwrap(without_lock([&] { return layout.pack(count, base, range, bytes); }));
  return packed;
}

void unpack(const Committed& layout, nb::handle packed, nb::handle destination, int64_t count, int64_t first,
            std::optional<int64_t> last, int64_t offset, bool as_memory) {
  const layout::PackedRange range = range_of(layout, count, first, last);
  const PythonBuffer from(packed, Access::read, "the packed buffer");
  const PythonBuffer to(destination, Access::write, "the destination");
  std::byte* const base = to.address_of(layout, count, offset, as_memory);
  const std::span<std::byte> bytes = from.packed(range.last - range.first);
  check_apart(bytes, base, layout, count);
  unwrap(without_lock([&] { return layout.unpack(count, base, range, bytes); }));
}

void copy(const Committed& from_layout, nb::handle source, int64_t count, int64_t offset, const Committed& to_layout,
          nb::handle destination, int64_t to_count, int64_t to_offset, bool as_memory) {
  const PythonBuffer from(source, Access::read, "the source");
  const PythonBuffer to(destination, Access::write, "the destination");
  const std::byte* const from_base = from.address_of(from_layout, count, offset, as_memory);
  std::byte* const to_base = to.address_of(to_layout, to_count, to_offset, as_memory);
  unwrap(without_lock([&] { return layout::copy({&from_layout, count, from_base}, {&to_layout, to_count, to_base}); }));
}

// Returns the first `limit` contiguous blocks in packed order as (offset, bytes). Other threads run meanwhile, and
// Ctrl-C ends the search.
nb::list blocks(const Committed& layout, int64_t count, int64_t limit) {
  constexpr size_t batch = size_t{1} << 14;
  nb::list out;
  if (limit <= 0) return out;
  std::vector<layout::Piece> block_batch;
  bool is_interrupted = false;
  const auto hand_over = [&] {
    const nb::gil_scoped_acquire lock;
    for (const layout::Piece& block : block_batch) out.append(nb::make_tuple(block.offset, block.bytes));
    block_batch.clear();
    is_interrupted = PyErr_CheckSignals() != 0;
    return !is_interrupted;
  };
  unwrap(without_lock([&] {
    const auto visit = [&](const layout::Piece& block) {
      block_batch.push_back(block);
      return --limit > 0 && (block_batch.size() < batch || hand_over());
    };
    return layout::for_each_block(layout.blob(), count, visit, hand_over);
  }));
  if (is_interrupted || !hand_over()) throw nb::python_error();
  return out;
}

// Commits a type of blocks of `child` at the displacements, which count extents of the child or bytes. Each block has
// `block_length` elements, or as many as its entry of `block_lengths` says.
Committed listed(const Committed& child, int64_t entries, nb::handle displacements, int64_t block_length,
                 nb::handle block_lengths, bool in_bytes) {
  const auto read_list = [entries](nb::handle object, const char* role) {
    const PythonBuffer buffer(object, Access::read, role);
    std::vector<int64_t> list(static_cast<size_t>(entries));
    const std::span<std::byte> bytes = buffer.packed(entries * static_cast<int64_t>(sizeof(int64_t)));
    if (entries > 0) std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  };
  std::vector<int64_t> places = read_list(displacements, "the list of indices");
  std::vector<int64_t> lengths;
  if (!block_lengths.is_none()) lengths = read_list(block_lengths, "the list of blocks");
  return unwrap(without_lock([&]() -> Result<Committed> {
    const bool has_equal_blocks = block_lengths.is_none();
    const auto type = [&]() -> Result<layout::Type> {
      if (has_equal_blocks && in_bytes) return layout::hindexed_block(block_length, std::move(places), child.type());
      if (has_equal_blocks) return layout::indexed_block(block_length, std::move(places), child.type());
      if (in_bytes) return layout::hindexed(std::move(places), std::move(lengths), child.type());
      return layout::indexed(std::move(places), std::move(lengths), child.type());
    }();
    if (!type) return type.error();
    return Committed::commit(*type);
  }));
}

// Returns the name of the primitive of which all leaves of a type are; empty if leaves differ or there are none.
std::string only_primitive(const layout::Type& type) {
  const layout::TypeNode& node = type.node();
  if (node.combiner == layout::Combiner::primitive) return node.name;
  std::string primitive;
  for (const layout::Type& child : node.children) {
    const std::string name = only_primitive(child);
    if (name.empty() || (!primitive.empty() && name != primitive)) return {};
    primitive = name;
  }
  return primitive;
}

}  // namespace

void bind_layout(nb::module_& module) {
  nb::class_<Committed>(module, "Layout", "A committed datatype; spinloom.layout.Layout is its public face.")
      .def_static("from_text", &commit, nb::arg("text"))
      .def_static("listed", &listed, nb::arg("child"), nb::arg("entries"), nb::arg("displacements"),
                  nb::arg("block_length"), nb::arg("block_lengths").none(), nb::arg("in_bytes"))
      .def_prop_ro("text", [](const Committed& self) { return layout::print(self.type()); })
      .def("text_beginning",
           [](const Committed& self, size_t bytes_max) { return layout::print_beginning(self.type(), bytes_max); })
      .def_prop_ro("primitive", [](const Committed& self) { return only_primitive(self.type()); })
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
      .def("pack", &pack, nb::arg("source").none(), nb::arg("packed").none(), nb::arg("count"), nb::arg("first"),
           nb::arg("last").none(), nb::arg("offset"), nb::arg("as_memory"))
      .def("unpack", &unpack, nb::arg("packed").none(), nb::arg("destination").none(), nb::arg("count"),
           nb::arg("first"), nb::arg("last").none(), nb::arg("offset"), nb::arg("as_memory"))
      .def("copy", &copy, nb::arg("source").none(), nb::arg("count"), nb::arg("offset"), nb::arg("to"),
           nb::arg("destination").none(), nb::arg("to_count"), nb::arg("to_offset"), nb::arg("as_memory"));
  nb::class_<PackPlan>(module, "PackPlan", "A layout, an array and a packed buffer; spinloom.layout.PackPlan.")
      .def(nb::init<const Committed&, nb::handle, nb::object, int64_t, int64_t, bool>(), nb::arg("layout"),
           nb::arg("array").none(), nb::arg("packed").none(), nb::arg("count"), nb::arg("offset"), nb::arg("as_memory"))
      .def("pack", &PackPlan::pack)
      .def("unpack", &PackPlan::unpack);
  nb::class_<CopyPlan>(module, "CopyPlan", "Two layouts and their arrays; spinloom.layout.CopyPlan.")
      .def(nb::init<const Committed&, nb::handle, int64_t, int64_t, const Committed&, nb::handle, int64_t, int64_t,
                    bool>(),
           nb::arg("layout"), nb::arg("source").none(), nb::arg("count"), nb::arg("offset"), nb::arg("to"),
           nb::arg("destination").none(), nb::arg("to_count"), nb::arg("to_offset"), nb::arg("as_memory"))
      .def("copy", &CopyPlan::copy);
}

}  // namespace spinloom::app
