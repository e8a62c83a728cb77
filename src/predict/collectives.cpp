#include "predict/collectives.hpp"

#include <algorithm>

namespace spinloom::predict {
namespace {

using trace::Call;
namespace algorithms = collective::algorithms;

struct Algorithm {
  std::string_view operation;
  std::string_view name;
  algorithms::Make* make;
};

// Of each operation the usual one first.
constexpr Algorithm known_algorithms[] = {
    {"barrier", "dissemination", algorithms::dissemination},
    {"barrier", "linear", algorithms::linear_barrier},
    {"bcast", "binomial", algorithms::binomial_bcast},
    {"bcast", "scatter-ring", algorithms::scatter_ring_bcast},
    {"bcast", "linear", algorithms::linear_bcast},
    {"gather", "binomial", algorithms::binomial_gather},
    {"gather", "linear", algorithms::linear_gather},
    {"gatherv", "linear", algorithms::linear_gather},
    {"scatter", "binomial", algorithms::binomial_scatter},
    {"scatter", "linear", algorithms::linear_scatter},
    {"scatterv", "linear", algorithms::linear_scatter},
    {"allgather", "ring", algorithms::ring_allgather},
    {"allgather", "bruck", algorithms::bruck_allgather},
    {"allgather", "linear", algorithms::linear_allgather},
    {"allgatherv", "ring", algorithms::ring_allgather},
    {"allgatherv", "linear", algorithms::linear_allgather},
    {"alltoall", "pairwise", algorithms::pairwise_alltoall},
    {"alltoall", "bruck", algorithms::bruck_alltoall},
    {"alltoall", "linear", algorithms::linear_alltoall},
    {"alltoallv", "pairwise", algorithms::pairwise_alltoall},
    {"alltoallv", "linear", algorithms::linear_alltoall},
    {"alltoallw", "pairwise", algorithms::pairwise_alltoall},
    {"alltoallw", "linear", algorithms::linear_alltoall},
    {"neighbor_allgather", "direct", algorithms::direct_neighbors},
    {"neighbor_allgatherv", "direct", algorithms::direct_neighbors},
    {"neighbor_alltoall", "direct", algorithms::direct_neighbors},
    {"neighbor_alltoallv", "direct", algorithms::direct_neighbors},
    {"neighbor_alltoallw", "direct", algorithms::direct_neighbors},
    {"reduce", "binomial", algorithms::binomial_reduce},
    {"reduce", "linear", algorithms::linear_reduce},
    {"allreduce", "recursive-doubling", algorithms::recursive_doubling_allreduce},
    {"allreduce", "ring", algorithms::ring_allreduce},
    {"allreduce", "tree", algorithms::tree_allreduce},
    {"allreduce", "rabenseifner", algorithms::rabenseifner_allreduce},
    {"reduce_scatter", "pairwise", algorithms::pairwise_reduce_scatter},
    {"reduce_scatter_block", "pairwise", algorithms::pairwise_reduce_scatter},
    {"scan", "binomial", algorithms::binomial_scan},
    {"scan", "linear", algorithms::linear_scan},
    {"exscan", "binomial", algorithms::binomial_scan},
    {"exscan", "linear", algorithms::linear_scan},
};

std::string_view operation_of(Call call) {
  switch (call) {
    case Call::Barrier:
    case Call::Comm_make: return "barrier";
    case Call::Bcast: return "bcast";
    case Call::Gather: return "gather";
    case Call::Gatherv: return "gatherv";
    case Call::Scatter: return "scatter";
    case Call::Scatterv: return "scatterv";
    case Call::Allgather: return "allgather";
    case Call::Allgatherv: return "allgatherv";
    case Call::Alltoall: return "alltoall";
    case Call::Alltoallv: return "alltoallv";
    case Call::Alltoallw: return "alltoallw";
    case Call::Neighbor_allgather: return "neighbor_allgather";
    case Call::Neighbor_allgatherv: return "neighbor_allgatherv";
    case Call::Neighbor_alltoall: return "neighbor_alltoall";
    case Call::Neighbor_alltoallv: return "neighbor_alltoallv";
    case Call::Neighbor_alltoallw: return "neighbor_alltoallw";
    case Call::Reduce: return "reduce";
    case Call::Allreduce: return "allreduce";
    case Call::Reduce_scatter: return "reduce_scatter";
    case Call::Reduce_scatter_block: return "reduce_scatter_block";
    case Call::Scan: return "scan";
    case Call::Exscan: return "exscan";
    default: return "";
  }
}

// As MPI libraries switch, by what all members of the communicator know.
constexpr uint64_t allreduce_ring_bytes = 10'000;
constexpr uint64_t bcast_scatter_bytes = 512U << 10;
constexpr uint64_t allgather_bruck_bytes = 80U << 10;
constexpr uint64_t alltoall_bruck_bytes = 256;
constexpr uint32_t small_communicator = 8;

std::string_view by_size(std::string_view operation, const CollectiveCall& call) {
  using algorithms::block;
  if (operation == "allreduce") {
    const bool goes_round = call.size > 2 && block(call.sends, 0).bytes >= allreduce_ring_bytes;
    return goes_round ? "ring" : "recursive-doubling";
  }
  if (operation == "bcast") {
    const Part part = block(call.rank == call.root ? call.sends : call.receives, 0);
    return call.size >= small_communicator && part.bytes >= bcast_scatter_bytes ? "scatter-ring" : "binomial";
  }
  if (operation == "allgather") {
    return block(call.receives, 0).bytes * call.size < allgather_bruck_bytes ? "bruck" : "ring";
  }
  if (operation == "alltoall") {
    const bool is_small = block(call.receives, 0).bytes <= alltoall_bruck_bytes;
    return call.size >= small_communicator && is_small ? "bruck" : "pairwise";
  }
  return algorithm_names(operation).front();
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string said;
  for (const std::string_view name : names) said += text(said.empty() ? "" : ", ", name);
  return said;
}

std::vector<std::string_view> operations() {
  std::vector<std::string_view> names;
  for (const Algorithm& one : known_algorithms) {
    if (names.empty() || names.back() != one.operation) names.push_back(one.operation);
  }
  return names;
}

bool fits(size_t parts, size_t peers) { return parts <= 1 || parts == peers; }

}  // namespace

std::vector<std::string_view> algorithm_names(std::string_view operation) {
  std::vector<std::string_view> names;
  for (const Algorithm& one : known_algorithms) {
    if (one.operation == operation) names.push_back(one.name);
  }
  return names;
}

Result<Algorithms> choose(const std::vector<std::string>& choices) {
  Algorithms made;
  for (const std::string& choice : choices) {
    const size_t sign = choice.find('=');
    if (sign == std::string::npos) {
      return fail(Code::invalid, "'", choice, "' is no choice of an algorithm; write OPERATION=ALGORITHM, ",
                  "such as allreduce=ring");
    }
    const std::string operation = choice.substr(0, sign);
    const std::string name = choice.substr(sign + 1);
    const auto names = algorithm_names(operation);
    if (names.empty()) {
      return fail(Code::invalid, "there is no collective operation '", operation,
                  "'; there are: ", listed(operations()));
    }
    if (std::ranges::find(names, name) == names.end()) {
      return fail(Code::invalid, operation, " has no algorithm '", name, "'; it has: ", listed(names));
    }
    made.chosen[operation] = name;
  }
  return made;
}

bool is_collective(Call call) { return !operation_of(call).empty(); }

std::string_view algorithm_of(const CollectiveCall& call, const Algorithms& algorithms) {
  const std::string_view operation = operation_of(call.call);
  const auto chosen = algorithms.chosen.find(operation);
  return chosen != algorithms.chosen.end() ? std::string_view(chosen->second) : by_size(operation, call);
}

Result<std::vector<Round>> rounds_of(const CollectiveCall& call, const Algorithms& algorithms) {
  const std::string_view operation = operation_of(call.call);
  SPL_ASSERT(!operation.empty(), "no collective operation: ", static_cast<int>(call.call));
  const bool has_neighbors = operation.starts_with("neighbor");
  const size_t senders = has_neighbors ? call.sources.size() : call.size;
  const size_t receivers = has_neighbors ? call.destinations.size() : call.size;
  if (!fits(call.sends.size(), receivers) || !fits(call.receives.size(), senders)) {
    return fail(Code::invalid, trace::name_of(call.call), " of ", receivers, " peers has ", call.sends.size(),
                " blocks to send and ", call.receives.size(), " to receive");
  }
  if (call.root >= call.size) {
    return fail(Code::invalid, trace::name_of(call.call), ": root ", call.root, " of ", call.size, " ranks");
  }
  const std::string_view name = algorithm_of(call, algorithms);
  const auto* const found = std::ranges::find_if(
      known_algorithms, [&](const Algorithm& one) { return one.operation == operation && one.name == name; });
  Rounds rounds;
  found->make(call, rounds);
  return rounds.take();
}

}  // namespace spinloom::predict
