// spinloom._core: datatypes: their text node by node, sizes and bounds, and the oracle's bytes.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>

#include "app/python/bindings_support.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

using layout::Combiner;
using layout::Type;
using layout::TypeNode;

const char* name_of(Combiner combiner) {
  switch (combiner) {
    case Combiner::primitive: return "primitive";
    case Combiner::contiguous: return "contig";
    case Combiner::vector: return "vector";
    case Combiner::hvector: return "hvector";
    case Combiner::indexed: return "indexed";
    case Combiner::hindexed: return "hindexed";
    case Combiner::indexed_block: return "idxblock";
    case Combiner::hindexed_block: return "hidxblock";
    case Combiner::structure: return "struct";
    case Combiner::resized: return "resized";
    case Combiner::subarray: return "subarray";
    case Combiner::darray: return "darray";
    case Combiner::dup: return "dup";
  }
  return "";
}

template <class List>
nb::list list_of(const List& values) {
  nb::list out;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) out.append(values[i]);
  return out;
}

void add_dimensions(const TypeNode& node, nb::dict& out) {
  static constexpr const char* names[] = {"none", "block", "cyclic"};
  nb::list distributions;
  nb::list arguments;
  nb::list grid;
  for (const layout::DarrayDimension& dimension : node.dimensions) {
    distributions.append(names[static_cast<size_t>(dimension.distribution)]);
    if (dimension.argument == layout::darray_default) {
      arguments.append(nb::none());
    } else {
      arguments.append(dimension.argument);
    }
    grid.append(dimension.processes);
  }
  out["processes"] = node.processes;
  out["rank"] = node.rank;
  out["distributions"] = distributions;
  out["arguments"] = arguments;
  out["grid"] = grid;
}

nb::dict tree_of(const Type& type) {
  const TypeNode& node = type.node();
  nb::dict out;
  out["constructor"] = name_of(node.combiner);
  out["size"] = type.size();
  out["lb"] = type.lb();
  out["extent"] = type.extent();
  out["true_lb"] = type.true_lb();
  out["true_extent"] = type.true_extent();
  switch (node.combiner) {
    case Combiner::primitive: out["name"] = node.name; return out;
    case Combiner::contiguous: out["count"] = node.count; break;
    case Combiner::vector:
    case Combiner::hvector:
      out["count"] = node.count;
      out["block_length"] = node.block_length;
      out["stride"] = node.stride;
      break;
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
      out["block_length"] = node.block_length;
      out["displacements"] = list_of(node.displacements);
      break;
    case Combiner::indexed:
    case Combiner::hindexed:
    case Combiner::structure:
      out["displacements"] = list_of(node.displacements);
      out["block_lengths"] = list_of(std::span(node.block_lengths));
      break;
    case Combiner::subarray:
    case Combiner::darray:
      out["sizes"] = list_of(node.sizes);
      out["order"] = node.order == layout::Order::c ? "C" : "F";
      if (node.combiner == Combiner::darray) {
        add_dimensions(node, out);
      } else {
        out["subsizes"] = list_of(node.subsizes);
        out["starts"] = list_of(node.starts);
      }
      break;
    case Combiner::resized:
    case Combiner::dup: break;
  }
  nb::list children;
  for (const Type& child : node.children) children.append(tree_of(child));
  out["children"] = children;
  return out;
}

nb::dict type_tree(const std::string& source) { return tree_of(unwrap(layout::parse(source))); }

nb::tuple type_bounds(const std::string& source) {
  const Type type = unwrap(layout::parse(source));
  return nb::make_tuple(type.lb(), type.extent());
}

// Packs by the oracle, which follows the type map, instead of a fast path.
nb::bytes oracle_pack(const std::string& source, int64_t count, const nb::bytes& memory, int64_t base) {
  const Type type = unwrap(layout::parse(source));
  const Status fits = layout::oracle::check_count(type, count);
  if (!fits) throw Raised{fits.error()};
  const layout::oracle::Reach reach = layout::oracle::reach(type, count);
  const auto memory_bytes = static_cast<int64_t>(memory.size());
  if (base < 0 || base > memory_bytes || reach.first < -base || reach.last > memory_bytes - base) {
    throw Raised{fail(Code::invalid, count, " elements touch offsets ", reach.first, " to ", reach.last,
                      " from their base, the memory holds ", -base, " to ", memory_bytes - base)};
  }
  std::vector<std::byte> packed(static_cast<size_t>(count * type.size()));
  const Status status =
      layout::oracle::pack(type, count, reinterpret_cast<const std::byte*>(memory.c_str()) + base, packed);
  if (!status) throw Raised{status.error()};
  return nb::bytes(packed.data(), packed.size());
}

nb::dict describe(const std::string& text_form) {
  const layout::Type type = unwrap(layout::parse(text_form));
  const layout::oracle::BlockSummary blocks = layout::oracle::summarise(type, 1);
  const layout::Blob blob = unwrap(layout::Blob::build(type));
  nb::dict out;
  out["text"] = layout::print(type);
  out["size_bytes"] = type.size();
  out["lb_bytes"] = type.lb();
  out["extent_bytes"] = type.extent();
  out["true_lb_bytes"] = type.true_lb();
  out["true_extent_bytes"] = type.true_extent();
  out["blocks"] = blocks.blocks;
  out["block_bytes_min"] = blocks.bytes_min;
  out["block_bytes_max"] = blocks.bytes_max;
  out["blob_bytes"] = blob.bytes().size();
  return out;
}

void check_type(const std::string& text_form) { (void)unwrap(layout::parse(text_form)); }

}  // namespace

void bind_type(nb::module_& module) {
  module.def("check_type", &check_type, nb::arg("text"), "Raises SpinloomError unless the text is a datatype.");
  module.def("describe", &describe, nb::arg("text"), "Sizes, bounds and blocks of a datatype in text form.");
  module.def("type_tree", &type_tree, nb::arg("text"),
             "A datatype as nested dictionaries: constructor, its arguments, children, size and bounds in bytes.");
  module.def("type_bounds", &type_bounds, nb::arg("text"), "Lower bound and extent of a datatype in bytes.");
  module.def("oracle_pack", &oracle_pack, nb::arg("text"), nb::arg("count"), nb::arg("memory"), nb::arg("base"),
             "The packed bytes of elements whose buffer address lies at memory[base], by the plain type map.");
}

}  // namespace spinloom::app
