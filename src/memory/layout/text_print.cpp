#include <limits>

#include "memory/layout/text.hpp"

namespace spinloom::layout {
namespace {

void append_list(std::string& out, size_t limit, const IndexList& list, const char* unit) {
  switch (list.form()) {
    case IndexList::Form::range:
      out += text("range(", list.first(), unit, ", ", list.step(), unit, ", ", list.size(), ")");
      return;
    case IndexList::Form::random: out += text("rand(", list.seed(), ", ", list.bound(), ", ", list.size(), ")"); return;
    case IndexList::Form::values: break;
  }
  out += '[';
  for (int64_t i = 0; i < list.size() && out.size() < limit; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(list[i]);
    out += unit;
  }
  out += ']';
}

const char* name_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::none: return "none";
    case Distribution::block: return "block";
    case Distribution::cyclic: return "cyclic";
  }
  return "none";
}

void append_darray(std::string& out, size_t limit, const TypeNode& node) {
  std::string distributions;
  std::string arguments;
  std::string grid;
  for (const DarrayDimension& dimension : node.dimensions) {
    const char* comma = distributions.empty() ? "" : ", ";
    distributions += text(comma, name_of(dimension.distribution));
    arguments += dimension.argument == darray_default ? text(comma, "default") : text(comma, dimension.argument);
    grid += text(comma, dimension.processes);
  }
  out += text("darray(", node.processes, ", ", node.rank, ", ");
  append_list(out, limit, node.sizes, "");
  out += text(", [", distributions, "], [", arguments, "], [", grid, "], ", node.order == Order::c ? "C, " : "F, ");
}

// Appends the type; may leave out text beyond `limit` bytes.
void append_type(std::string& out, size_t limit, const Type& type) {
  const TypeNode& node = type.node();
  switch (node.combiner) {
    case Combiner::primitive: out += node.name; return;
    case Combiner::contiguous: out += text("contig(", node.count, ", "); break;
    case Combiner::vector: out += text("vector(", node.count, ", ", node.block_length, ", ", node.stride, ", "); break;
    case Combiner::hvector:
      out += text("hvector(", node.count, ", ", node.block_length, ", ", node.stride, "B, ");
      break;
    case Combiner::indexed:
    case Combiner::hindexed: {
      const bool in_bytes = node.combiner == Combiner::hindexed;
      out += in_bytes ? "hindexed([" : "indexed([";
      for (int64_t i = 0; i < node.displacements.size() && out.size() < limit; ++i) {
        out += text(i == 0 ? "" : ", ", node.displacements[i], in_bytes ? "B x " : " x ",
                    node.block_lengths[static_cast<size_t>(i)]);
      }
      out += "], ";
      break;
    }
    case Combiner::indexed_block:
    case Combiner::hindexed_block: {
      const bool in_bytes = node.combiner == Combiner::hindexed_block;
      out += text(in_bytes ? "hidxblock(" : "idxblock(", node.block_length, ", ");
      append_list(out, limit, node.displacements, in_bytes ? "B" : "");
      out += ", ";
      break;
    }
    case Combiner::structure:
      out += "struct([";
      for (size_t i = 0; i < node.children.size() && out.size() < limit; ++i) {
        out += text(i == 0 ? "(" : ", (", node.displacements[static_cast<int64_t>(i)], "B, ");
        if (node.block_lengths[i] != 1) out += text(node.block_lengths[i], ", ");
        append_type(out, limit, node.children[i]);
        out += ')';
      }
      out += "])";
      return;
    case Combiner::resized: out += text("resized(", node.lb, "B, ", node.extent, "B, "); break;
    case Combiner::subarray:
      out += "subarray(";
      for (const IndexList* list : {&node.sizes, &node.subsizes, &node.starts}) {
        append_list(out, limit, *list, "");
        out += ", ";
      }
      out += node.order == Order::c ? "C, " : "F, ";
      break;
    case Combiner::darray: append_darray(out, limit, node); break;
    case Combiner::dup: out += "dup("; break;
  }
  append_type(out, limit, node.children[0]);
  out += ')';
}

}  // namespace

std::string print(const Type& type) {
  std::string out;
  append_type(out, std::numeric_limits<size_t>::max(), type);
  return out;
}

std::string print_beginning(const Type& type, size_t bytes_max) {
  std::string out;
  append_type(out, bytes_max, type);
  if (out.size() > bytes_max) out.resize(bytes_max);
  return out;
}

}  // namespace spinloom::layout
