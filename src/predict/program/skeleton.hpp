// Skeleton - traces of programs that nobody ran: all ranks compute and exchange the same, step by step.
//
// Contract: make_skeleton() gives the trace of each rank. Calls take no time; between them lie the computations, so
//   that a prediction adds the whole of the communication. An exchange begins with all receives, then all sends, then
//   the computation beside them, then the wait for all. A grid is periodic, its ranks in row-major order; a dimension
//   of two ranks has two messages from each to the other, one of one rank has none.
// Invariants: (1) of one message both ends have the same bytes.
// Threads: pure. Time: of an imagined host, in ns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

// The datatypes in which a message lies at its two ends, each as a text form.
struct SkeletonTypes {
  std::string sent;
  std::string received;
};

struct SkeletonStep {
  enum class Kind : uint8_t {
    compute,  // `compute_ns`
    halo,  // exchange with both neighbours in each dimension of `grid`; one of `types` for each dimension
    alltoall,  // exchange with every rank; `types` has one, a block for each peer
    allreduce,  // a reduction of `bytes`
  };
  Kind kind = Kind::compute;
  uint64_t compute_ns = 0;  // a computation; a halo has it between its begin and its wait
  std::vector<uint32_t> grid;  // ranks in each dimension
  std::vector<SkeletonTypes> types;
  uint64_t bytes = 0;
};

[[nodiscard]] Result<std::vector<trace::RankTrace>> make_skeleton(uint32_t ranks, std::span<const SkeletonStep> steps,
                                                                  uint32_t repeats);

}  // namespace spinloom::predict
