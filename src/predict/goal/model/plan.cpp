#include "predict/goal/model/plan.hpp"

#include <algorithm>

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;
using schedule::Schedule;

Plan plan_of(const Program& program) {
  Plan plan;
  const std::vector<uint32_t> waits = program.waits();
  const std::vector<bool> for_first = program.wait_for_first();
  for (uint32_t operation = 0; operation < program.size(); ++operation) {
    if (waits[operation] == 0) plan.roots.push_back(operation);
    if (waits[operation] < 2 && (for_first.empty() || !for_first[operation])) continue;
    plan.counter_of.resize(program.size(), UINT32_MAX);
    plan.counter_of[operation] = static_cast<uint32_t>(plan.counters.size());
    plan.counters.push_back(waits[operation]);
  }
  return plan;
}

void each_root(const Program& program, const std::function<void(uint32_t)>& take) {
  const auto size = static_cast<uint32_t>(program.operations.size());
  std::vector<bool> waits(size);  // for one of its own pass
  std::vector<bool> waits_again(program.times == 1 ? 0 : size);  // for one of the pass before
  for (const schedule::Edge edge : program.edges) {
    if (edge.to() < size) {
      waits[edge.to()] = true;
    } else {
      waits_again[edge.to() - size] = true;
    }
  }
  const uint32_t passes = size == 0 ? 0 : program.times;
  for (uint32_t pass = 0; pass < passes; ++pass) {
    for (uint32_t number = 0; number < size; ++number) {
      if (!waits[number] && (pass == 0 || !waits_again[number])) take(pass * size + number);
    }
  }
}

Status check_peers(const Schedule& schedule, const schedule::Watch& watch) {
  schedule::Looks looks(watch, "the run");
  std::vector<bool> checked(schedule.programs().size());  // ranks that share a Program have the same absolute peers
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (checked[schedule.number_of_program(rank)]) continue;
    checked[schedule.number_of_program(rank)] = true;
    SPL_TRY(looks.did(schedule.program(rank).operations.size()));
    const Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.operations.size(); ++number) {
      const schedule::Operation& operation = program.operations[number];
      const Kind kind = schedule.shape(operation).kind;
      if (!schedule::has_peer(kind)) continue;
      const uint32_t peer = schedule.peer(rank, operation);
      if (peer < schedule.ranks() || (kind == Kind::receive && peer == schedule::any)) continue;
      return fail(Code::invalid, "operation ", number, " of rank ", rank, " has the peer ", peer,
                  ", but ranks are 0 to ", schedule.ranks() - 1);
    }
  }
  return {};
}

Status check_plain(const Schedule& schedule, std::string_view why) {
  std::vector<bool> seen(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (seen[schedule.number_of_program(rank)]) continue;
    seen[schedule.number_of_program(rank)] = true;
    const auto& operations = schedule.program(rank).operations;
    const auto added =
        std::ranges::find_if(operations, [&](const auto& one) { return schedule.shape(one).kind > Kind::compute; });
    if (added != operations.end()) {
      return fail(Code::unsupported, "operation ", added - operations.begin(), " of rank ", rank, " is a ",
                  schedule.describe(rank, *added), ", ", why);
    }
    const std::vector<bool> for_first = schedule.program(rank).wait_for_first();
    const auto found = std::ranges::find(for_first, true);
    if (found == for_first.end()) continue;
    return fail(Code::unsupported, "operation ", found - for_first.begin(), " of rank ", rank,
                " waits for the first of several, ", why);
  }
  return {};
}

}  // namespace spinloom::goal
