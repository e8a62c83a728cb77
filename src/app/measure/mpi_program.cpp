#include "app/measure/mpi_program.hpp"

namespace spinloom::app {
namespace {

using layout::Combiner;
using layout::TypeNode;

template <class List>
void add_list(std::vector<int64_t>& out, const List& list) {
  for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) out.push_back(list[i]);
}

Status add(std::vector<int64_t>& out, const layout::Type& type) {
  const TypeNode& node = type.node();
  for (const layout::Type& child : node.children) SPL_TRY(add(out, child));
  switch (node.combiner) {
    case Combiner::primitive: out.insert(out.end(), {0, node.size}); break;
    case Combiner::contiguous: out.insert(out.end(), {1, node.count}); break;
    case Combiner::vector: out.insert(out.end(), {2, node.count, node.block_length, node.stride}); break;
    case Combiner::hvector: out.insert(out.end(), {3, node.count, node.block_length, node.stride}); break;
    case Combiner::indexed:
    case Combiner::hindexed:
      out.insert(out.end(), {node.combiner == Combiner::indexed ? 4 : 5, node.displacements.size()});
      add_list(out, node.displacements);
      for (const int64_t length : node.block_lengths) out.push_back(length);
      break;
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
      out.insert(out.end(),
                 {node.combiner == Combiner::indexed_block ? 6 : 7, node.displacements.size(), node.block_length});
      add_list(out, node.displacements);
      break;
    case Combiner::structure:
      out.insert(out.end(), {8, node.displacements.size()});
      add_list(out, node.displacements);
      for (const int64_t length : node.block_lengths) out.push_back(length);
      break;
    case Combiner::resized: out.insert(out.end(), {9, node.lb, node.extent}); break;
    case Combiner::subarray:
      out.insert(out.end(), {10, node.sizes.size(), node.order == layout::Order::c ? 0 : 1});
      add_list(out, node.sizes);
      add_list(out, node.subsizes);
      add_list(out, node.starts);
      break;
    case Combiner::dup: break;
    case Combiner::darray: return fail(Code::unsupported, "the bench does not hand darray types to an MPI");
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> mpi_program(const layout::Type& type) {
  std::vector<int64_t> out;
  SPL_TRY(add(out, type));
  return out;
}

}  // namespace spinloom::app
