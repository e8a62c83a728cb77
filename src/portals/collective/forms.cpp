#include "portals/collective/forms.hpp"

#include <algorithm>

#include "portals/collective/form_parts.hpp"

namespace spinloom::collective {
namespace {

using namespace forms;
using enum Operation;

constexpr NamedForm all_forms[] = {
    {barrier, "dissemination", dissemination},
    {barrier, "linear", linear_barrier},
    {bcast, "linear", linear_bcast},
    {bcast, "binomial", binomial_bcast},
    {bcast, "scatter-ring", scatter_ring_bcast, true},
    {bcast, "chain", chain_bcast},
    {bcast, "binary", binary_bcast},
    {bcast, "double-tree", double_tree_bcast, true},
    {gather, "linear", all_at_once},
    {gather, "binomial", binomial_gather},
    {scatter, "linear", linear_scatter},
    {scatter, "binomial", binomial_scatter},
    {allgather, "linear", all_at_once},
    {allgather, "ring", ring_allgather},
    {allgather, "bruck", doubling_allgather, true},
    {allgather, "recursive-doubling", recursive_doubling_allgather, true},
    {alltoall, "linear", all_at_once},
    {alltoall, "pairwise", all_at_once},
    {alltoall, "bruck", bruck_alltoall, true},
    {reduce, "linear", linear_reduce},
    {reduce, "binomial", binomial_reduce},
    {reduce, "chain", chain_reduce},
    {reduce, "binary", binary_reduce, true},
    {allreduce, "tree", tree_allreduce},
    {allreduce, "recursive-doubling", recursive_doubling_allreduce, true},
    {allreduce, "ring", ring_allreduce},
    {allreduce, "rabenseifner", rabenseifner_allreduce, true},
    {allreduce, "chain", chain_allreduce, true},
    {allreduce, "binary", binary_allreduce, true},
    {allreduce, "double-tree", double_tree_allreduce, true},
    {reduce_scatter_block, "pairwise", pairwise_reduce_scatter},
    {reduce_scatter_block, "recursive-halving", recursive_halving_reduce_scatter, true},
    {scan, "linear", linear_scan},
    {scan, "binomial", binomial_scan, true},
    {exscan, "linear", linear_exscan, true},
    {exscan, "binomial", binomial_exscan, true},
};

}  // namespace

const NamedForm* form_of(Operation operation, std::string_view algorithm) {
  const auto* const found = std::ranges::find_if(
      all_forms, [&](const NamedForm& one) { return one.operation == operation && one.algorithm == algorithm; });
  return found == std::end(all_forms) ? nullptr : found;
}

}  // namespace spinloom::collective
