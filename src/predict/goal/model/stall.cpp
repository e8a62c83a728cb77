#include "predict/goal/model/stall.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;

namespace {

std::string name_of(uint32_t number) { return number == schedule::any ? "any" : text(number); }

std::string describe(const schedule::Schedule& schedule, uint32_t rank, uint32_t number) {
  const schedule::Operation& operation = schedule.program(rank).operation(number);
  const schedule::Shape& shape = schedule.shape(operation);
  const std::string peer = name_of(schedule.peer(rank, operation));
  std::string what = text("computation of ", shape.size);
  if (shape.kind == Kind::send) what = text("send of ", shape.size, " B to rank ", peer, ", tag ", name_of(shape.tag));
  if (shape.kind == Kind::receive) {
    what = text("receive of ", shape.size, " B from rank ", peer, ", tag ", name_of(shape.tag));
  }
  if (shape.kind > Kind::compute) what = schedule.describe(rank, operation);
  return text("operation ", number, " of rank ", rank, " (", what, ")");
}

// Describes the first operation that has not begun, and one that it waits for: one that has not begun either, if there
// is one.
std::string first_wait(const schedule::Schedule& schedule, uint32_t rank, const std::vector<bool>& begun) {
  const auto first = static_cast<uint32_t>(std::ranges::find(begun, false) - begun.begin());
  const Program& program = schedule.program(rank);
  uint32_t cause = UINT32_MAX;
  bool is_one_of_several = false;
  for (uint32_t before = 0; before < program.size(); ++before) {
    if (cause != UINT32_MAX && begun[before]) continue;
    std::optional<schedule::Edge> edge_to_first;
    program.for_each_edge(before, [&](schedule::Edge edge) {
      if (edge.to() == first && !edge_to_first) edge_to_first = edge;
    });
    if (!edge_to_first) continue;
    cause = before;
    is_one_of_several = edge_to_first->join() == schedule::Join::first;
    if (!begun[before]) break;
  }
  return text(describe(schedule, rank, first), " never begins: it waits for operation ", cause,
              is_one_of_several ? " or another one, and " : ", which ", "never ",
              cause != UINT32_MAX && begun[cause] ? "ends" : "begins");
}

}  // namespace

Error stall_error(const schedule::Schedule& schedule, const Begun& begun, const Stall& stall) {
  if (schedule.operations() == 0) {
    return fail(Code::stalled, "the schedule has no operations in its ", schedule.ranks(),
                " ranks, so nothing can begin");
  }
  std::string sentence = "the schedule stalls";
  if (stall.events == 0) sentence = "no operation of the schedule is free at the start";
  std::string separator = ": ";
  const auto add = [&](const std::string& part) {
    sentence += std::exchange(separator, "; ");
    sentence += part;
  };
  for (const StalledRank& stalled : stall.ranks) {
    if (stalled.receive != nullptr) {
      add(text(describe(schedule, stalled.rank, stalled.receive->operation), " waits for a message"));
    }
    if (stalled.message != nullptr) {
      add(text("the message of ", describe(schedule, stalled.message->source, stalled.message->operation),
               " waits for a receive"));
    }
    if (stalled.arrival.has_value()) {
      add(text(describe(schedule, stalled.rank, stalled.arrival->operation), " waits, but only ",
               stalled.arrival->arrived, " have come"));
    }
    if (stalled.has_waiting) add(first_wait(schedule, stalled.rank, begun.at(stalled.rank)));
  }
  if (!stall.remark.empty()) add(stall.remark);
  add(text("in all ", stall.unmatched, " receives and messages are without a partner and ", stall.not_begun,
           " operations never begin"));
  return fail(Code::stalled, sentence);
}

}  // namespace spinloom::goal
