#include "portals/model/outcomes.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "portals/model/machine.hpp"

namespace spinloom::model {
namespace {

constexpr size_t first_search_states = 1'000;

// Visits each state once and calls visit(end) for those without a next one, until it returns true. False: there were
// more than `most` states. `arrange(states)` puts those that follow one state into an order; the last is visited first.
template <class Visit, class Arrange>
bool explore(const Machine& machine, size_t most, Visit visit, Arrange arrange) {
  std::unordered_set<std::string> seen;
  std::vector<State> open{machine.first()};
  std::vector<State> next;
  seen.insert(open.back().key());
  while (!open.empty()) {
    const State state = std::move(open.back());
    open.pop_back();
    next.clear();
    if (!machine.next(state, next) && visit(state)) return true;
    arrange(next);
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
  const auto visit = [&](const State& end) {
    found.insert(Machine::outcome_of(end));
    return false;
  };
  const bool is_whole = explore(machine, most, visit, [](std::vector<State>&) {});
  if (!is_whole) return std::nullopt;
  return found;
}

std::optional<bool> is_allowed(const Program& program, const Outcome& observed, const Rules& rules, size_t most) {
  const Followed followed(program, observed);
  const Machine machine(program, rules, &followed);
  bool is_found = false;
  const auto visit = [&](const State& end) {
    is_found = machine.is_followed(end);
    return is_found;
  };
  // A search that goes wrong early looks through all states behind its mistake before it turns back: one in another
  // order often finds the way at once. So searches begin anew, and each may visit twice as many states as the one
  // before. The last one may visit `most`: an outcome that is not allowed is known only when all states are.
  Random random(1, "is_allowed");
  bool is_first = true;  // the first search takes states as they come
  const auto arrange = [&](std::vector<State>& states) {
    if (!is_first) random.shuffle(states);
  };
  for (size_t limit = first_search_states; limit < most; limit *= 2) {
    if (explore(machine, limit, visit, arrange)) return is_found;
    is_first = false;
  }
  if (explore(machine, most, visit, arrange)) return is_found;
  return std::nullopt;
}

}  // namespace spinloom::model
