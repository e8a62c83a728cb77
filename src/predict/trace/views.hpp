// Views - tables over the traces of all ranks.
//
// Contract: matrix() tells how much each rank sent to each other one: by point-to-point calls, and by neighbourhood and
//   all-to-all calls, whose receivers are known; the data that a call sends to one peer are a message. types() lists
//   the datatypes of the calls' buffers, equal ones once.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

struct PairTraffic {
  uint32_t from = 0;  // ranks of MPI_COMM_WORLD
  uint32_t to = 0;
  uint64_t messages = 0;
  int64_t bytes = 0;
};
[[nodiscard]] std::vector<PairTraffic> matrix(std::span<const RankTrace* const> traces);

struct TypeUse {
  TypeEntry type;
  int64_t blocks = 0;  // contiguous blocks of an element; 0: not known
  bool is_contiguous = false;
  uint64_t sends = 0;  // buffers that calls send from
  uint64_t receives = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
  int64_t count_min = 0;  // elements of a buffer
  int64_t count_max = 0;
};
[[nodiscard]] std::vector<TypeUse> types(std::span<const RankTrace* const> traces);

// True if a trace gives the memory addresses of the calls' buffers, and so their types.
[[nodiscard]] bool tells_buffers(const RankTrace& trace);

}  // namespace spinloom::trace
