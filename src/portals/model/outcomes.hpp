// Outcomes - all outcomes of a program, and whether an observed one is among them.
//
// Contract: outcomes() visits every state that the machine reaches. is_allowed() follows the observed outcome only,
//   in several orders. Both give up (nothing) when a search has visited `most` states.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"
#include "portals/model/rules.hpp"

namespace spinloom::model {

inline constexpr size_t states_max = 2'000'000;

[[nodiscard]] std::optional<std::set<Outcome>> outcomes(const Program& program, const Rules& rules = {},
                                                        size_t most = states_max);
[[nodiscard]] std::optional<bool> is_allowed(const Program& program, const Outcome& observed, const Rules& rules = {},
                                             size_t most = states_max);

}  // namespace spinloom::model
