#include "portals/model/outcomes.hpp"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "portals/model/machine.hpp"

namespace spinloom::model {
namespace {

// Visits each state once and calls visit(end) for those without a next one, until it returns true. False: there were
// more than `most` states.
template <class Visit>
bool explore(const Machine& machine, size_t most, Visit visit) {
  std::unordered_set<std::string> seen;
  std::vector<State> open{machine.first()};
  std::vector<State> next;
  seen.insert(open.back().key());
  while (!open.empty()) {
    const State state = std::move(open.back());
    open.pop_back();
    next.clear();
    if (!machine.next(state, next) && visit(state)) return true;
    for (State& one : next) {
      if (seen.insert(one.key()).second) open.push_back(std::move(one));
    }
    if (seen.size() > most) return false;
  }
  return true;
}

}  // namespace

std::optional<std::set<Outcome>> outcomes(const Program& program, const Rules& rules, size_t most) {
  std::set<Outcome> found;
  const Machine machine(program, rules);
  const bool is_whole = explore(machine, most, [&](const State& end) {
    found.insert(Machine::outcome_of(end));
    return false;
  });
  if (!is_whole) return std::nullopt;
  return found;
}

std::optional<bool> is_allowed(const Program& program, const Outcome& observed, const Rules& rules, size_t most) {
  const Followed followed(program, observed);
  const Machine machine(program, rules, &followed);
  bool is_found = false;
  const bool is_whole = explore(machine, most, [&](const State& end) {
    is_found = machine.is_followed(end);
    return is_found;
  });
  if (!is_whole) return std::nullopt;
  return is_found;
}

}  // namespace spinloom::model
