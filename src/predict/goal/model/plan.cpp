#include "predict/goal/model/plan.hpp"

#include <algorithm>

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;
using schedule::Schedule;

Plan plan_of(const Program& program) {
  Plan plan;
  const std::vector<uint32_t> dependency_counts = program.dependency_counts();
  const std::vector<bool> for_first = program.have_any_edges();
  for (uint32_t operation = 0; operation < program.size(); ++operation) {
    if (dependency_counts[operation] == 0) plan.roots.push_back(operation);
    if (dependency_counts[operation] < 2 && (for_first.empty() || !for_first[operation])) continue;
    plan.counter_of.resize(program.size(), UINT32_MAX);
    plan.counter_of[operation] = static_cast<uint32_t>(plan.dependency_counts.size());
    plan.dependency_counts.push_back(dependency_counts[operation]);
  }
  return plan;
}

void for_each_root(const Program& program, const std::function<void(uint32_t)>& visit) {
  const auto size = static_cast<uint32_t>(program.operations.size());
  std::vector<bool> waits(size);  // true for one that waits for an operation of its own pass
  std::vector<bool> waits_for_pass_before(program.passes == 1 ? 0 : size);
  for (const schedule::Edge edge : program.edges) {
    if (edge.to() < size) {
      waits[edge.to()] = true;
    } else {
      waits_for_pass_before[edge.to() - size] = true;
    }
  }
  const uint32_t passes = size == 0 ? 0 : program.passes;
  for (uint32_t pass = 0; pass < passes; ++pass) {
    for (uint32_t number = 0; number < size; ++number) {
      if (!waits[number] && (pass == 0 || !waits_for_pass_before[number])) visit(pass * size + number);
    }
  }
}

Status check_peers(const Schedule& schedule, const schedule::Watch& watch) {
  schedule::Progress progress(watch, "the run");
  std::vector<bool> checked(schedule.programs().size());  // ranks that share a Program have the same absolute peers
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (checked[schedule.number_of_program(rank)]) continue;
    checked[schedule.number_of_program(rank)] = true;
    SPL_TRY(progress.advance(schedule.program(rank).operations.size()));
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
  std::vector<bool> checked(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (checked[schedule.number_of_program(rank)]) continue;
    checked[schedule.number_of_program(rank)] = true;
    const auto& operations = schedule.program(rank).operations;
    const auto extension =
        std::ranges::find_if(operations, [&](const auto& one) { return schedule.shape(one).kind > Kind::compute; });
    if (extension != operations.end()) {
      return fail(Code::unsupported, "operation ", extension - operations.begin(), " of rank ", rank, " is a ",
                  schedule.describe(rank, *extension), ", ", why);
    }
    const std::vector<bool> for_first = schedule.program(rank).have_any_edges();
    const auto first = std::ranges::find(for_first, true);
    if (first == for_first.end()) continue;
    return fail(Code::unsupported, "operation ", first - for_first.begin(), " of rank ", rank,
                " waits for the first of several, ", why);
  }
  return {};
}

}  // namespace spinloom::goal
