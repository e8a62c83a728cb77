#include "predict/goal/model/repeat.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Builder;
using schedule::Edge;
using schedule::Operation;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;

namespace {

constexpr uint32_t pause_lengths = 1024;  // different ones, so that there are not as many shapes as operations

// Returns a Program whose passes are one of `program`, each with the computation behind it (the joint).
Program with_joint(const Program& program, uint32_t joint_shape, uint32_t times) {
  const uint32_t size = program.size();
  if (size == 0) return program;
  Builder builder;
  std::vector<bool> waits(size);
  for (const Operation& operation : program.operations) (void)builder.add(operation.shape, operation.peer);
  const uint32_t joint = builder.add(joint_shape, 0);
  for (uint32_t number = 0; number < size; ++number) {
    bool is_awaited = false;
    for (const Edge edge : program.edges_of(number)) {
      builder.require(edge.to(), number, edge.awaits(), edge.join());
      waits[edge.to()] = true;
      is_awaited = is_awaited || edge.is(Awaits::end, schedule::Join::all);
    }
    if (!is_awaited) builder.require(joint, number, Awaits::end);
  }
  for (uint32_t number = 0; number < size; ++number) {
    if (!waits[number]) builder.require(joint + 1 + number, joint, Awaits::end);
  }
  return builder.take(times);
}

Status check_repeat(const Schedule& schedule, uint32_t times) {
  if (times == 0 || schedule.repeats()) {
    return fail(Code::invalid, "a schedule is repeated once at least, and only one that does not repeat already");
  }
  for (const Program& program : schedule.programs()) {
    if ((uint64_t{program.size()} + 1) * times <= Edge::operations_max) continue;
    return fail(Code::overflow, times, " times ", program.size(), " operations and one more are too many: a rank has ",
                Edge::operations_max, " at most");
  }
  return {};
}

// Returns the parts of a Schedule without its Programs.
Schedule::Parts parts_of(const Schedule& schedule) {
  Schedule::Parts parts;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    parts.program_of.push_back(schedule.number_of_program(rank));
  }
  parts.shapes = schedule.shapes();
  parts.transfer_layouts = schedule.all_transfer_layouts();
  parts.layouts = schedule.layouts();
  return parts;
}

}  // namespace

Result<Schedule> repeat(const Schedule& schedule, uint32_t times) {
  SPL_TRY(check_repeat(schedule, times));
  Schedule prototype(parts_of(schedule));
  const uint32_t joint = prototype.intern_shape(Shape{});
  Schedule::Parts parts = parts_of(prototype);
  for (const Program& program : schedule.programs()) parts.programs.push_back(with_joint(program, joint, times));
  return Schedule(std::move(parts));
}

Status repeat_with_pauses(const Schedule& schedule, uint32_t times, const PauseRange& pauses,
                          const schedule::ByteSink& sink) {
  SPL_TRY(check_repeat(schedule, times));
  if (pauses.least > pauses.most) {
    return fail(Code::invalid, "computations of ", pauses.least, " to ", pauses.most, ": the first is the shorter one");
  }
  Schedule prototype(parts_of(schedule));
  std::vector<uint32_t> joints;
  for (uint32_t step = 0; step < pause_lengths; ++step) {
    const auto more = static_cast<unsigned __int128>(pauses.most - pauses.least) * step / (pause_lengths - 1);
    joints.push_back(prototype.intern_shape(Shape{.size = pauses.least + static_cast<uint64_t>(more)}));
  }
  const auto program_of = [&](uint32_t rank) { return with_joint(schedule.program(rank), joints.front(), times); };
  schedule::GeneratedSchedule generated;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Program program = program_of(rank);
    const auto to_next =
        std::ranges::count_if(program.edges, [&](Edge edge) { return edge.to() >= program.operations.size(); });
    const auto edges = program.edges.size() * program.passes - static_cast<size_t>(program.passes == 1 ? 0 : to_next);
    generated.sizes.push_back({program.size(), static_cast<uint32_t>(edges)});
  }
  generated.operations = [&](uint32_t rank) {
    Random random(pauses.seed, text("goal.repeat.", rank));
    const Program program = program_of(rank);
    std::vector<Operation> operations = program.unrolled_operations();
    const size_t each = program.operations.size();
    for (size_t joint = each; joint <= operations.size() && each > 0; joint += each) {
      operations[joint - 1].shape = joints[random.below(pause_lengths)];
    }
    return operations;
  };
  generated.edges = [&](uint32_t rank) { return program_of(rank).unrolled_edges(); };
  schedule::write_schedule(prototype, generated, sink);
  return {};
}

}  // namespace spinloom::goal
