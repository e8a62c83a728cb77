#include "portals/collective/catalogue.hpp"

#include <algorithm>
#include <string>

namespace spinloom::collective {
namespace {

using enum Operation;

constexpr std::string_view operation_names[operation_count] = {
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
};

constexpr bool in_segments = true;

// Algorithms are grouped by operation; the usual one of each comes first.
constexpr Algorithm catalogue[] = {
    {barrier, "dissemination", algorithms::dissemination},
    {barrier, "linear", algorithms::linear_barrier},
    {bcast, "binomial", algorithms::binomial_bcast},
    {bcast, "scatter-ring", algorithms::scatter_ring_bcast},
    {bcast, "linear", algorithms::linear_bcast},
    {bcast, "chain", algorithms::chain_bcast, OperandOrder::none, in_segments},
    {bcast, "binary", algorithms::binary_bcast, OperandOrder::none, in_segments},
    {bcast, "double-tree", algorithms::double_tree_bcast, OperandOrder::none, in_segments},
    {gather, "binomial", algorithms::binomial_gather},
    {gather, "linear", algorithms::linear_gather},
    {gatherv, "linear", algorithms::linear_gather},
    {scatter, "binomial", algorithms::binomial_scatter},
    {scatter, "linear", algorithms::linear_scatter},
    {scatterv, "linear", algorithms::linear_scatter},
    {allgather, "ring", algorithms::ring_allgather},
    {allgather, "bruck", algorithms::bruck_allgather},
    {allgather, "linear", algorithms::linear_allgather},
    {allgather, "recursive-doubling", algorithms::recursive_doubling_allgather},
    {allgatherv, "ring", algorithms::ring_allgather},
    {allgatherv, "linear", algorithms::linear_allgather},
    {alltoall, "pairwise", algorithms::pairwise_alltoall},
    {alltoall, "bruck", algorithms::bruck_alltoall},
    {alltoall, "linear", algorithms::linear_alltoall},
    {alltoallv, "pairwise", algorithms::pairwise_alltoall},
    {alltoallv, "linear", algorithms::linear_alltoall},
    {alltoallw, "pairwise", algorithms::pairwise_alltoall},
    {alltoallw, "linear", algorithms::linear_alltoall},
    {neighbor_allgather, "direct", algorithms::neighbor_allgather},
    {neighbor_allgatherv, "direct", algorithms::neighbor_allgatherv},
    {neighbor_alltoall, "direct", algorithms::neighbor_alltoall},
    {neighbor_alltoallv, "direct", algorithms::neighbor_alltoallv},
    {neighbor_alltoallw, "direct", algorithms::neighbor_alltoallv},
    {reduce, "binomial", algorithms::binomial_reduce, OperandOrder::from_root},
    {reduce, "linear", algorithms::linear_reduce, OperandOrder::from_root},
    {reduce, "chain", algorithms::chain_reduce, OperandOrder::from_root, in_segments},
    {reduce, "binary", algorithms::binary_reduce, OperandOrder::none, in_segments},
    {allreduce, "recursive-doubling", algorithms::recursive_doubling_allreduce, OperandOrder::ranks},
    {allreduce, "ring", algorithms::ring_allreduce},
    {allreduce, "tree", algorithms::tree_allreduce, OperandOrder::ranks},
    {allreduce, "rabenseifner", algorithms::rabenseifner_allreduce},
    {allreduce, "chain", algorithms::chain_allreduce, OperandOrder::ranks, in_segments},
    {allreduce, "binary", algorithms::binary_allreduce, OperandOrder::none, in_segments},
    {allreduce, "double-tree", algorithms::double_tree_allreduce, OperandOrder::none, in_segments},
    {reduce_scatter, "pairwise", algorithms::pairwise_reduce_scatter},
    {reduce_scatter, "recursive-halving", algorithms::recursive_halving_reduce_scatter},
    {reduce_scatter_block, "pairwise", algorithms::pairwise_reduce_scatter},
    {reduce_scatter_block, "recursive-halving", algorithms::recursive_halving_reduce_scatter},
    {scan, "binomial", algorithms::binomial_scan, OperandOrder::ranks},
    {scan, "linear", algorithms::linear_scan, OperandOrder::ranks},
    {exscan, "binomial", algorithms::binomial_exscan, OperandOrder::ranks},
    {exscan, "linear", algorithms::linear_exscan, OperandOrder::ranks},
};
static_assert(std::ranges::is_sorted(catalogue, {}, &Algorithm::operation));

template <class Names>
std::string joined(const Names& names) {
  std::string list;
  for (const std::string_view name : names) list += text(list.empty() ? "" : ", ", name);
  return list;
}

}  // namespace

std::string_view name_of(Operation operation) { return operation_names[static_cast<size_t>(operation)]; }

Result<Operation> operation_named(std::string_view name) {
  const auto* const named = std::ranges::find(operation_names, name);
  if (named != std::end(operation_names)) return static_cast<Operation>(named - std::begin(operation_names));
  return fail(Code::invalid, "there is no collective operation '", name, "'; there are: ", joined(operation_names));
}

std::span<const Algorithm> algorithms_of(Operation operation) {
  const auto found = std::ranges::equal_range(catalogue, operation, {}, &Algorithm::operation);
  return {found.begin(), found.end()};
}

Result<const Algorithm*> find(Operation operation, std::string_view name) {
  const std::span<const Algorithm> algorithms = algorithms_of(operation);
  const auto found = std::ranges::find(algorithms, name, &Algorithm::name);
  if (found != algorithms.end()) return &*found;
  std::vector<std::string_view> names;
  for (const Algorithm& one : algorithms) names.push_back(one.name);
  return fail(Code::invalid, name_of(operation), " has no algorithm '", name, "'; it has: ", joined(names));
}

}  // namespace spinloom::collective
