// Who waits for whom, when nothing happens any more.
#include <algorithm>

#include "goal/loggopsim_engine.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;

namespace {

std::string name_of(uint32_t number) { return number == schedule::any ? "any" : text(number); }

std::string describe(const schedule::Schedule& schedule, uint32_t rank, uint32_t number) {
  const schedule::Operation& operation = schedule.program(rank).operations[number];
  const schedule::Shape& shape = schedule.shape(operation);
  const std::string peer = name_of(schedule.peer(rank, operation));
  std::string what = text("computation of ", shape.size);
  if (shape.kind == Kind::send) what = text("send of ", shape.size, " B to rank ", peer, ", tag ", name_of(shape.tag));
  if (shape.kind == Kind::receive) {
    what = text("receive of ", shape.size, " B from rank ", peer, ", tag ", name_of(shape.tag));
  }
  return text("operation ", number, " of rank ", rank, " (", what, ")");
}

// The first operation that has not begun, and what it waits for: one that has not begun either, if there is one.
std::string first_wait(const schedule::Schedule& schedule, uint32_t rank, const std::vector<bool>& begun) {
  const auto first = static_cast<uint32_t>(std::ranges::find(begun, false) - begun.begin());
  const Program& program = schedule.program(rank);
  uint32_t cause = none;
  for (uint32_t before = 0; before < program.size(); ++before) {
    if (cause != none && begun[before]) continue;
    const auto leads = [&](const schedule::Edge& edge) { return edge.to() == first; };
    if (!std::ranges::any_of(program.edges_of(before), leads)) continue;
    cause = before;
    if (!begun[before]) break;
  }
  return text(describe(schedule, rank, first), " never begins: it waits for operation ", cause, ", which never ",
              cause != none && begun[cause] ? "ends" : "begins");
}

}  // namespace

std::vector<uint32_t> LogGopSimEngine::stalled_ranks(uint32_t most) const {
  std::vector<uint32_t> found;
  for (uint32_t rank = 0; rank < ranks_.size() && found.size() < most; ++rank) {
    const Rank& state = ranks_[rank];
    if (state.left + state.posted.size + state.arrived.size > 0) found.push_back(rank);
  }
  return found;
}

Error LogGopSimEngine::stall() const {
  if (schedule_.operations() == 0) {
    return fail(Code::stalled, "the schedule has no operations in its ", ranks_.size(), " ranks, so nothing can begin");
  }
  std::string sentence = "the schedule stalls";
  if (events_ == 0) sentence = "no operation of the schedule is free at the start";
  std::string separator = ": ";
  const auto add = [&](const std::string& part) {
    sentence += std::exchange(separator, "; ");
    sentence += part;
  };
  for (const uint32_t rank : stalled_ranks(static_cast<uint32_t>(begun_->size()))) {
    const Rank& state = ranks_[rank];
    if (state.posted.size > 0) {
      add(text(describe(schedule_, rank, matching_.first(state.posted).operation), " waits for a message"));
    }
    if (state.arrived.size > 0) {
      const Matching::Item& message = matching_.first(state.arrived);
      add(text("the message of ", describe(schedule_, message.source, message.operation), " waits for a receive"));
    }
    if (state.left > 0) add(first_wait(schedule_, rank, begun_->at(rank)));
  }
  if (never_ended_ > 0) {
    add(text(never_ended_, " sends of more than S = ", parameters_.S,
             " B met later receives of no more than S, so they never end"));
  }
  add(text("in all ", unmatched_, " receives and messages are without a partner and ", left_,
           " operations never begin"));
  return fail(Code::stalled, sentence);
}

}  // namespace spinloom::goal
