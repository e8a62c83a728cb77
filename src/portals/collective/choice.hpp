// Choice - the choice of an algorithm for a collective operation, by its Form.
//
// Contract: candidates() returns all algorithms of the catalogue that have a Form, in its order, each with its time. An
//   algorithm that sends segments gets the segment with the least time: a power of two from segment_bytes_min on that
//   holds whole elements, or all data. choose() returns the fastest candidate, the first of equals. If the algorithms
//   of an operation have no Form, as those with lists, it returns the usual one. Both depend on the CallShape and on
//   the Model only: ranks with the same CallShape agree without a message. rounds_of() and graphs_of() make the
//   operations of one rank and of all ranks, in areas of memory that are never read.
// Threads: pure. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "portals/collective/catalogue.hpp"
#include "portals/collective/forms.hpp"
#include "portals/collective/graph.hpp"
#include "portals/collective/model.hpp"

namespace spinloom::collective {

inline constexpr uint64_t segment_bytes_min = 1024;

struct Candidate {
  const Algorithm* algorithm = nullptr;
  uint64_t segment_bytes = 0;  // 0: it sends none
  uint64_t time_ps = 0;  // including both o of the Model
  bool is_near = false;  // NamedForm::is_near
};

[[nodiscard]] std::vector<Candidate> candidates(Operation operation, const CallShape& shape, const Model& model);
[[nodiscard]] Candidate choose(Operation operation, const CallShape& shape, const Model& model);

// For algorithms that have a Form. Returns an Error for others, whose ranks may send blocks of different sizes, and for
// a root that is not one of the ranks.
[[nodiscard]] Result<std::vector<Round>> rounds_of(const Algorithm& algorithm, const CallShape& shape, uint32_t root,
                                                   uint32_t rank);
[[nodiscard]] Graph unread_graph_of(std::span<const Round> rounds);

// An Error, too, where there are more than operations_max of all ranks.
inline constexpr uint64_t operations_max = uint64_t{1} << 19;
[[nodiscard]] Result<std::vector<Graph>> graphs_of(const Algorithm& algorithm, const CallShape& shape, uint32_t root);

}  // namespace spinloom::collective
