// Programs exported as GOAL: under LogGOPSim's rules their ranks end when they do under ours, and nothing begins too
// early.
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/program/testing/trace_recorder.hpp"
#include "predict/schedule/goal.hpp"
#include "predict/schedule/misread.hpp"

namespace spinloom::predict {
namespace {

using namespace test;

Costs exported() {
  Costs costs;
  costs.compute_unit_ps = 1000;
  costs.uses_one_cpu = true;
  return costs;
}

// Messages between random ranks, blocking or not, and collective operations; `beside`: some go on beside computations.
Script random_program(Random& random, bool beside) {
  const auto ranks = static_cast<uint32_t>(random.between(2, 6));
  std::vector<Recorder> recorders;
  std::vector<std::vector<uint32_t>> pending(ranks);
  std::vector<uint32_t> requests(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) recorders.emplace_back(rank, ranks);
  const auto gap = [&] { return random.chance(1, 3) ? 0 : random.below(random.chance(1, 2) ? 40 : 9000); };
  const auto request = [&](uint32_t rank) { return pending[rank].emplace_back(requests[rank]++); };
  const auto wait = [&](uint32_t rank) {
    if (pending[rank].empty()) return;
    recorders[rank].wait(gap(), pending[rank]);
    pending[rank].clear();
  };
  for (int64_t steps = random.between(1, 40); steps > 0; --steps) {
    const auto bytes = static_cast<int64_t>(random.chance(1, 5) ? 0 : random.below(random.chance(1, 2) ? 9 : 90'000));
    if (random.chance(1, 4)) {
      const bool blocks = !beside || random.chance(1, 2);
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        if (blocks) {
          recorders[rank].call(
              gap(), {.call = Call::Allreduce, .sends = {{0, bytes, type_byte}}, .receives = {{0, bytes, type_byte}}});
        } else {
          recorders[rank].iallreduce(gap(), bytes, request(rank));
        }
      }
      continue;
    }
    const auto from = static_cast<uint32_t>(random.below(ranks));
    const auto to = static_cast<uint32_t>((from + random.between(1, ranks - 1)) % ranks);
    const auto tag = static_cast<int32_t>(random.below(3));
    if (random.chance(1, 2)) {
      recorders[from].send(gap(), static_cast<int32_t>(to), bytes, tag);
    } else {
      recorders[from].isend(gap(), static_cast<int32_t>(to), bytes, request(from), tag);
    }
    if (random.chance(1, 2)) {
      recorders[to].receive(gap(), static_cast<int32_t>(from), bytes, tag);
    } else {
      recorders[to].ireceive(gap(), static_cast<int32_t>(from), bytes, request(to), tag);
    }
    if (random.chance(1, 3)) wait(random.chance(1, 2) ? from : to);
  }
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    wait(rank);
    traces.push_back(recorders[rank].end(gap()));
  }
  return script(traces);
}

// When ranks end by latency alone, in ns.
std::vector<uint64_t> ours(const schedule::Schedule& schedule, uint64_t L) {
  auto outcome =
      goal::run(schedule, {.L_ps = L, .o_ps = 0, .g_ps = 0, .G = Rate(0, 1), .S_bytes = UINT64_MAX, .unit_ps = 1});
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome.ok() ? outcome->finish_ps : std::vector<uint64_t>();
}

std::vector<uint64_t> loggopsims(const schedule::Schedule& schedule, uint64_t L) {
  auto outcome = goal::run_loggopsim(schedule, {.L = L, .o = 0, .g = 0, .G = 0, .O = 0, .S = UINT64_MAX});
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome.ok() ? outcome->host_times : std::vector<uint64_t>();
}

// Returns the same schedule with a CPU for each operation, so that only dependencies and messages are left.
schedule::Schedule with_many_cpus(const schedule::Schedule& given) {
  schedule::Schedule made(given.ranks());
  for (uint32_t rank = 0; rank < given.ranks(); ++rank) {
    const schedule::Program& program = given.program(rank);
    schedule::Builder builder;
    for (uint32_t number = 0; number < program.size(); ++number) {
      schedule::Shape shape = given.shape(program.operation(number));
      const uint32_t peer = given.peer(rank, program.operation(number));
      shape.peer = schedule::Peer::absolute;
      shape.cpu = number;
      builder.add(made.intern_shape(shape), peer);
    }
    for (uint32_t number = 0; number < program.size(); ++number) {
      program.for_each_edge(number, [&](schedule::Edge edge) { builder.require(edge.to(), number, edge.awaits()); });
    }
    made.intern(rank, builder.take());
  }
  return made;
}

// check(schedule, L) of a random program in both forms.
template <class Check>
void each_form(Random& random, bool beside, const Check& check) {
  const PricedSchedule made = priced(random_program(random, beside), exported());
  const auto text = schedule::print_goal(made.schedule);
  const auto binary = schedule::write_goal_binary(made.schedule);
  ASSERT_TRUE(text.ok() && binary.ok());
  for (const std::string& form : {*text, *binary}) {
    const auto again = schedule::read_goal(form);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(schedule::misread(*again), schedule::Misread());
    EXPECT_LE(schedule::count(*again).cpus, 1U);
    check(*again, random.chance(1, 4) ? 0 : random.below(5000));
  }
}

TEST(Export, RandomProgramsEndAtTheSameTimesUnderLogGopSimsRules) {
  for_seeds(400, [](Random& random) {
    each_form(random, false, [](const schedule::Schedule& schedule, uint64_t L) {
      EXPECT_EQ(loggopsims(schedule, L), ours(schedule, L));
    });
  });
}

// A collective operation beside computations goes on later under these rules, because the next computation takes its
// place at the CPU before a message that comes meanwhile; but it never begins before its dependencies.
TEST(Export, NothingBeginsBeforeWhatItWaitsForUnderLogGopSimsRules) {
  for_seeds(400, [](Random& random) {
    each_form(random, true, [](const schedule::Schedule& schedule, uint64_t L) {
      const std::vector<uint64_t> least = ours(with_many_cpus(schedule), L);
      const std::vector<uint64_t> found = loggopsims(schedule, L);
      ASSERT_EQ(found.size(), least.size());
      for (size_t rank = 0; rank < least.size(); ++rank) EXPECT_GE(found[rank], least[rank]) << "rank " << rank;
    });
  });
}

}  // namespace
}  // namespace spinloom::predict
