#include "predict/program/collectives.hpp"

#include <optional>

#include "portals/collective/catalogue.hpp"

namespace spinloom::predict {
namespace {

using collective::Operation;
using trace::Call;
namespace algorithms = collective::algorithms;

std::optional<Operation> operation_of(Call call) {
  switch (call) {
    case Call::Barrier:
    case Call::Comm_make: return Operation::barrier;
    case Call::Bcast: return Operation::bcast;
    case Call::Gather: return Operation::gather;
    case Call::Gatherv: return Operation::gatherv;
    case Call::Scatter: return Operation::scatter;
    case Call::Scatterv: return Operation::scatterv;
    case Call::Allgather: return Operation::allgather;
    case Call::Allgatherv: return Operation::allgatherv;
    case Call::Alltoall: return Operation::alltoall;
    case Call::Alltoallv: return Operation::alltoallv;
    case Call::Alltoallw: return Operation::alltoallw;
    case Call::Neighbor_allgather: return Operation::neighbor_allgather;
    case Call::Neighbor_allgatherv: return Operation::neighbor_allgatherv;
    case Call::Neighbor_alltoall: return Operation::neighbor_alltoall;
    case Call::Neighbor_alltoallv: return Operation::neighbor_alltoallv;
    case Call::Neighbor_alltoallw: return Operation::neighbor_alltoallw;
    case Call::Reduce: return Operation::reduce;
    case Call::Allreduce: return Operation::allreduce;
    case Call::Reduce_scatter: return Operation::reduce_scatter;
    case Call::Reduce_scatter_block: return Operation::reduce_scatter_block;
    case Call::Scan: return Operation::scan;
    case Call::Exscan: return Operation::exscan;
    default: return {};
  }
}

// MPI libraries switch algorithms at these sizes, which all members of the communicator know.
constexpr uint64_t allreduce_ring_bytes = 10'000;
constexpr uint64_t bcast_scatter_bytes = 512U << 10;
constexpr uint64_t allgather_bruck_bytes = 80U << 10;
constexpr uint64_t alltoall_bruck_bytes = 256;
constexpr uint32_t small_communicator = 8;

std::string_view usual_algorithm(Operation operation, const CollectiveCall& call) {
  using algorithms::block;
  switch (operation) {
    case Operation::allreduce: {
      const bool is_ring = call.size > 2 && block(call.sends, 0).bytes >= allreduce_ring_bytes;
      return is_ring ? "ring" : "recursive-doubling";
    }
    case Operation::bcast: {
      const Part part = block(call.rank == call.root ? call.sends : call.receives, 0);
      return call.size >= small_communicator && part.bytes >= bcast_scatter_bytes ? "scatter-ring" : "binomial";
    }
    case Operation::allgather:
      return block(call.receives, 0).bytes * call.size < allgather_bruck_bytes ? "bruck" : "ring";
    case Operation::alltoall: {
      const bool is_small = block(call.receives, 0).bytes <= alltoall_bruck_bytes;
      return call.size >= small_communicator && is_small ? "bruck" : "pairwise";
    }
    default: return collective::algorithms_of(operation).front().name;
  }
}

// True for one block for all peers, or one for each.
bool has_block_each(size_t parts, size_t peers) { return parts <= 1 || parts == peers; }

}  // namespace

Result<Algorithms> parse_choices(const std::vector<std::string>& choices) {
  Algorithms algorithms;
  for (const std::string& choice : choices) {
    const size_t sign = choice.find('=');
    if (sign == std::string::npos) {
      return fail(Code::invalid, "'", choice, "' is no choice of an algorithm; write OPERATION=ALGORITHM, ",
                  "such as allreduce=ring");
    }
    const std::string operation = choice.substr(0, sign);
    const std::string name = choice.substr(sign + 1);
    const auto operation_id = collective::operation_named(operation);
    if (!operation_id) return operation_id.error();
    if (const auto found = collective::find(*operation_id, name); !found) return found.error();
    algorithms.by_operation[operation] = name;
  }
  return algorithms;
}

bool is_collective(Call call) { return operation_of(call).has_value(); }

std::string_view algorithm_of(const CollectiveCall& call, const Algorithms& algorithms) {
  const Operation operation = *operation_of(call.call);
  const auto chosen = algorithms.by_operation.find(name_of(operation));
  return chosen != algorithms.by_operation.end() ? std::string_view(chosen->second) : usual_algorithm(operation, call);
}

Result<std::vector<Round>> rounds_of(const CollectiveCall& call, const Algorithms& algorithms) {
  const std::optional<Operation> operation = operation_of(call.call);
  SPL_ASSERT(operation.has_value(), "no collective operation: ", static_cast<int>(call.call));
  const bool has_neighbors = name_of(*operation).starts_with("neighbor");
  const size_t senders = has_neighbors ? call.sources.size() : call.size;
  const size_t receivers = has_neighbors ? call.destinations.size() : call.size;
  if (!has_block_each(call.sends.size(), receivers) || !has_block_each(call.receives.size(), senders)) {
    return fail(Code::invalid, trace::name_of(call.call), " of ", receivers, " peers has ", call.sends.size(),
                " blocks to send and ", call.receives.size(), " to receive");
  }
  if (call.root >= call.size) {
    return fail(Code::invalid, trace::name_of(call.call), ": root ", call.root, " of ", call.size, " ranks");
  }
  const auto algorithm = collective::find(*operation, algorithm_of(call, algorithms));
  if (!algorithm) return algorithm.error();
  Rounds rounds;
  (*algorithm)->make(call, rounds);
  return rounds.take();
}

}  // namespace spinloom::predict
