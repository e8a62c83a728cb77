// Test support - times of schedules that are written down, random models, and the comparison with the naive engine.
//
// Contract: outcome_of() and finish_of() run a schedule's text under our own model. compare_with_naive() compares all
//   that an Outcome has, of schedules that stall too.
// Threads: tests run in one thread. Time: modelled.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "predict/goal/model/engine.hpp"
#include "predict/goal/testing/naive_engine.hpp"
#include "predict/goal/testing/random_schedules.hpp"
#include "predict/schedule/goal.hpp"

namespace spinloom::goal::test {

using schedule::Schedule;

inline constexpr uint64_t L = 2'500'000, o = 1'500'000, g = 1'000'000, G = 6000;  // ps, those of a Model

inline Outcome outcome_of(const std::string& goal, const Model& model = {}) {
  const auto read = schedule::read_goal(goal);
  EXPECT_TRUE(read) << read.error().message;
  auto outcome = run(*read, model);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? *outcome : Outcome();
}

inline std::vector<uint64_t> finish_of(const std::string& goal, const Model& model = {}) {
  return outcome_of(goal, model).finish_ps;
}

using Times = std::vector<uint64_t>;

inline network::Config random_network(Random& random, uint32_t ranks) {
  network::Config config;
  if (random.chance(1, 3)) {
    config.topology = network::FatTree{.radix = 4, .oversubscription = random.chance(1, 2) ? 1U : 2U};
  } else if (random.chance(1, 2)) {
    config.topology = network::Torus{.sizes = {3, (ranks + 2) / 3}};
  } else {
    config.topology = network::Dragonfly{.hosts = 1, .routers = 2, .globals = 1, .groups = 3};
  }
  config.hop_ps = random.chance(1, 2) ? 0 : random.below(3000);
  const uint64_t packets[] = {0, 1, 4, 4096};
  config.packet_bytes = packets[random.below(4)];
  if (random.chance(1, 3)) config.shuffle_seed = random.next();
  using enum network::Routing;
  const bool detours = !std::holds_alternative<network::FatTree>(config.topology);
  const network::Routing ways[] = {fixed, adaptive, detours ? valiant : adaptive, detours ? ugal : fixed};
  config.routing = ways[random.below(4)];
  config.detour_seed = random.next();
  return config;
}

inline Model random_model(Random& random) {
  Model model;
  const uint64_t times[] = {0, 1, 5, 1000, 40'000, random.below(3'000'000)};
  for (uint64_t* const one : {&model.L_ps, &model.o_ps, &model.g_ps}) *one = times[random.below(6)];
  model.G = {random.between(0, 3) * random.between(0, 4000), random.between(1, 3)};
  model.O = {random.between(0, 1) * random.between(0, 4000), random.between(1, 3)};
  const uint64_t sizes[] = {0, 1, 4, 65535, UINT64_MAX, 10};
  model.S_bytes = sizes[random.below(6)];
  model.unit_ps = random.chance(1, 2) ? 1000 : random.below(3);
  if (random.chance(1, 4)) model.tags_apart = {1, static_cast<uint32_t>(random.between(1, 3))};
  if (random.chance(1, 2)) model.layout = Rate(random.between(0, 4000), random.between(1, 3));
  if (random.chance(1, 4)) {
    const uint64_t period_ps = 1 + random.below(5'000'000);
    model.noise = Noise{period_ps, period_ps / (1 + random.below(50)), random.next(), random.chance(1, 3)};
    if (model.noise->length_ps == period_ps) --model.noise->length_ps;
    if (period_ps < 100'000 || model.noise->length_ps > period_ps / 2) model.noise.reset();
  }
  return model;
}

inline void compare_with_naive(const Schedule& schedule, const Model& model) {
  SCOPED_TRACE(text("L = ", model.L_ps, ", o = ", model.o_ps, ", g = ", model.g_ps, ", G = ", model.G.ps_numerator(),
                    "/", model.G.denominator(), ", O = ", model.O.ps_numerator(), "/", model.O.denominator(),
                    ", S = ", model.S_bytes, ", unit = ", model.unit_ps));
  if (model.network.has_value()) {
    SCOPED_TRACE(text("form ", model.network->topology.index(), ", hop = ", model.network->hop_ps, ", packets of ",
                      model.network->packet_bytes));
  }
  NaiveEngine naive(schedule, model);
  naive.run();
  Engine engine(schedule, model);
  ASSERT_TRUE(engine.run());
  EXPECT_EQ(engine.has_stalled(), naive.left + naive.unmatched > 0);
  const Outcome outcome = engine.outcome();
  EXPECT_EQ(outcome.finish_ps, naive.outcome.finish_ps);
  EXPECT_EQ(outcome.compute_ps, naive.outcome.compute_ps);
  EXPECT_EQ(outcome.overhead_ps, naive.outcome.overhead_ps);
  EXPECT_EQ(outcome.makespan_ps, naive.outcome.makespan_ps);
  EXPECT_EQ(outcome.events, naive.outcome.events);
  if (naive.left + naive.unmatched == 0) return;
  const auto failed = run(schedule, model);
  ASSERT_FALSE(failed);
  const std::string end = text("in all ", naive.unmatched, " receives and messages are without a partner and ",
                               naive.left, " operations never begin");
  EXPECT_TRUE(failed.error().message.ends_with(end)) << failed.error().message << "\n" << end;
}

}  // namespace spinloom::goal::test
