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

constexpr uint32_t lengths = 1024;  // different computations, so that there are not as many shapes as operations

// Returns a Program of one pass and the computation behind it.
Program with_joint(const Program& program, uint32_t joint_shape, uint32_t times) {
  const uint32_t size = program.size();
  if (size == 0) return program;
  Builder builder;
  std::vector<bool> waits(size);
  for (const Operation& one : program.operations) (void)builder.add(one.shape, one.peer);
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

Status can_repeat(const Schedule& schedule, uint32_t times) {
  if (times == 0 || schedule.repeats()) {
    return fail(Code::invalid, "a schedule is repeated once at least, and only one that does not repeat already");
  }
  for (const Program& program : schedule.programs()) {
    if ((uint64_t{program.size()} + 1) * times <= Edge::operations_most) continue;
    return fail(Code::overflow, times, " times ", program.size(), " operations and one more are too many: a rank has ",
                Edge::operations_most, " at most");
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
  parts.ends = schedule.all_ends();
  parts.layouts = schedule.layouts();
  return parts;
}

}  // namespace

Result<Schedule> repeat(const Schedule& schedule, uint32_t times) {
  SPL_TRY(can_repeat(schedule, times));
  Schedule like(parts_of(schedule));
  const uint32_t joint = like.number_of(Shape{});
  Schedule::Parts parts = parts_of(like);
  for (const Program& program : schedule.programs()) parts.programs.push_back(with_joint(program, joint, times));
  return Schedule(std::move(parts));
}

Status repeat_apart(const Schedule& schedule, uint32_t times, const Between& between, const schedule::TakeBytes& take) {
  SPL_TRY(can_repeat(schedule, times));
  if (between.least > between.most) {
    return fail(Code::invalid, "computations of ", between.least, " to ", between.most,
                ": the first is the shorter one");
  }
  Schedule like(parts_of(schedule));
  std::vector<uint32_t> joints;
  for (uint32_t step = 0; step < lengths; ++step) {
    const auto more = static_cast<unsigned __int128>(between.most - between.least) * step / (lengths - 1);
    joints.push_back(like.number_of(Shape{.size = between.least + static_cast<uint64_t>(more)}));
  }
  const auto passes = [&](uint32_t rank) { return with_joint(schedule.program(rank), joints.front(), times); };
  schedule::Made made;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Program one = passes(rank);
    const auto to_next =
        std::ranges::count_if(one.edges, [&](Edge edge) { return edge.to() >= one.operations.size(); });
    const auto edges = one.edges.size() * one.times - static_cast<size_t>(one.times == 1 ? 0 : to_next);
    made.sizes.push_back({one.size(), static_cast<uint32_t>(edges)});
  }
  made.operations = [&](uint32_t rank) {
    Random random(between.seed, text("goal.repeat.", rank));
    const Program one = passes(rank);
    std::vector<Operation> operations = one.unrolled_operations();
    const size_t each = one.operations.size();
    for (size_t joint = each; joint <= operations.size() && each > 0; joint += each) {
      operations[joint - 1].shape = joints[random.below(lengths)];
    }
    return operations;
  };
  made.edges = [&](uint32_t rank) { return passes(rank).unrolled_edges(); };
  schedule::write_schedule(like, made, take);
  return {};
}

}  // namespace spinloom::goal
