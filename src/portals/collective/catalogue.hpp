// Catalogue - the algorithms of each collective operation, by name.
//
// Contract: algorithms_of() lists the algorithms of an operation, the usual one first. find() and operation_named()
//   return an Error that names the choices. Each algorithm takes any number of ranks, any root, any sizes and a call in
//   place; those of an operation with lists (gatherv, ..) take blocks of any sizes and places.
// Invariants: (1) names are unique within an operation; (2) an algorithm that is not `is_segmented` does not read
//   segment_bytes.
// Threads: constants. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "portals/collective/algorithms.hpp"

namespace spinloom::collective {

enum class Operation : uint8_t {
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan
};
inline constexpr uint32_t operation_count = 22;

[[nodiscard]] std::string_view name_of(Operation operation);
[[nodiscard]] Result<Operation> operation_named(std::string_view name);

// The order of operands that a reduction keeps: none, so that the operator must commute; the order of the ranks; or the
// order of the ranks from the root on, which is the same if the root is rank 0.
enum class OperandOrder : uint8_t { none, ranks, from_root };

struct Algorithm {
  Operation operation;
  std::string_view name;
  algorithms::MakeRounds* make;
  OperandOrder order = OperandOrder::none;
  bool is_segmented = false;  // data go on in segments of a chosen size
};

[[nodiscard]] std::span<const Algorithm> algorithms_of(Operation operation);
[[nodiscard]] Result<const Algorithm*> find(Operation operation, std::string_view name);
[[nodiscard]] inline bool takes_any_operator(const Algorithm& algorithm, uint32_t root) {
  return algorithm.order == OperandOrder::ranks || (algorithm.order == OperandOrder::from_root && root == 0);
}

}  // namespace spinloom::collective
