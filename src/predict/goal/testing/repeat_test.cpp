// Schedules again and again: the same as written out, from memory, from a file, and by the naive engine.
#include "predict/goal/model/repeat.hpp"

#include <gtest/gtest.h>

#include "predict/goal/model/critical_path.hpp"
#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/testing/model.hpp"
#include "predict/schedule/check.hpp"
#include "predict/schedule/schedule_file.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Schedule;

Schedule made(const char* pattern, uint32_t ranks, uint32_t times) {
  auto found = repeat(*make_pattern(pattern, ranks, 8), times);
  EXPECT_TRUE(found) << found.error().message;
  return std::move(*found);
}

void expect_equal(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(one.finish_ps, other.finish_ps);
  EXPECT_EQ(one.compute_ps, other.compute_ps);
  EXPECT_EQ(one.overhead_ps, other.overhead_ps);
  EXPECT_EQ(one.events, other.events);
}

TEST(Repeat, ADisseminationTakesSoManyTimesItsTime) {
  // A round takes 2 c + L + n G, all ranks alike: T(times) = times k (2 c + L + n G).
  constexpr uint64_t round = 2 * o + L + 7 * G;
  for (const uint32_t times : {1U, 2U, 1000U}) {
    const auto outcome = run(made("dissemination", 16, times), {});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->makespan_ps, times * 4 * round);
  }
}

TEST(Repeat, CostsMemoryOnce) {
  const Schedule often = made("halo_3d", 64, 1'000'000);
  EXPECT_EQ(often.memory_bytes(), made("halo_3d", 64, 2).memory_bytes());
  // 12 messages' ends and the computation of each rank, a million times.
  EXPECT_EQ(often.operations(), uint64_t{64} * 13 * 1'000'000);
  EXPECT_EQ(schedule::count(often).sends, uint64_t{64} * 6 * 1'000'000);
  // edges(N) = N b + (N - 1) c, where c = 64 * 12 lead to the next time: edges(N) = N / 2 edges(2) + (N / 2 - 1) c.
  EXPECT_EQ(schedule::count(often).edges,
            schedule::count(made("halo_3d", 64, 2).unrolled()).edges * 500'000 + uint64_t{64} * 12 * 499'999);
  EXPECT_TRUE(schedule::check(often));
}

TEST(Repeat, IsWhatIsWrittenOut) {
  for (const schedule::Schedule& one :
       {made("halo_3d", 27, 5), made("binomial_broadcast", 13, 4), made("ring_allreduce", 5, 3)}) {
    const Schedule all = one.unrolled();
    EXPECT_EQ(all.operations(), one.operations());
    EXPECT_EQ(schedule::count(all).edges, schedule::count(one).edges);
    const auto outcome = run(one, {});
    ASSERT_TRUE(outcome);
    expect_equal(*outcome, *run(all, {}));
    compare_with_naive(all, {});
    EXPECT_EQ(*schedule::print_goal(one), *schedule::print_goal(all));
    Record record;
    ASSERT_TRUE(run(one, {}, &record));
    Record other;
    ASSERT_TRUE(run(all, {}, &other));
    EXPECT_EQ(critical_path(one, {}, record).size(), critical_path(all, {}, other).size());
    const auto read = schedule::read_schedule(schedule::write_schedule(one));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->programs(), one.programs());
  }
}

// Random graphs with edges to the next pass of every kind, beside the naive engine on what is written out.
TEST(Repeat, RandomPassesAreWhatIsWrittenOut) {
  for_seeds(1500, [](Random& random) {
    Schedule schedule(3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      schedule::Builder builder;
      const auto size = static_cast<uint32_t>(2 + random.below(6));
      for (uint32_t one = 0; one < size; ++one) {
        schedule::Shape shape;
        shape.kind = random.chance(1, 3)   ? schedule::Kind::compute
                     : random.chance(1, 2) ? schedule::Kind::send
                                           : schedule::Kind::receive;
        shape.size = random.below(20) * 1000;
        if (shape.kind != schedule::Kind::compute) shape.tag = static_cast<uint32_t>(random.below(2));
        const auto peer = static_cast<uint32_t>(random.below(3));
        (void)builder.add(schedule.intern_shape(shape), shape.kind == schedule::Kind::compute ? 0 : peer);
      }
      for (uint64_t left = random.below(2 * size); left > 0; --left) {
        const auto before = static_cast<uint32_t>(random.below(size));
        const auto after = static_cast<uint32_t>(before + 1 + random.below(size));
        builder.require(after, before, random.chance(1, 3) ? schedule::Awaits::start : schedule::Awaits::end,
                        random.chance(1, 4) ? schedule::Join::first : schedule::Join::all);
      }
      schedule.intern(rank, builder.take(static_cast<uint32_t>(1 + random.below(4))));
    }
    const Model model = random_model(random);
    const Schedule all = schedule.unrolled();
    compare_with_naive(all, model);
    Engine engine(schedule, model);
    ASSERT_TRUE(engine.run());
    Engine written_out(all, model);
    ASSERT_TRUE(written_out.run());
    EXPECT_EQ(engine.has_stalled(), written_out.has_stalled());
    expect_equal(engine.outcome(), written_out.outcome());
    const Status checked = schedule::check(schedule);
    const Status checked_all = schedule::check(all);
    EXPECT_EQ(checked.ok(), checked_all.ok());
    if (checked.ok() || checked_all.ok()) return;
    EXPECT_EQ(checked.error().message, checked_all.error().message);
  });
}

TEST(Repeat, ApartWithoutComputationIsTheSame) {
  const auto pattern = make_pattern("halo_2d", 12, 100);
  std::string bytes;
  ASSERT_TRUE(repeat_with_pauses(*pattern, 7, {}, [&](std::string_view part) { bytes += part; }));
  const auto apart = schedule::read_schedule(bytes);
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_EQ(apart->programs().size(), 12U);
  expect_equal(*run(*apart, {}), *run(*repeat(*pattern, 7), {}));
  // Each pass ends with a computation of 1 us, so it takes at least 1 us more, and all ranks compute.
  bytes.clear();
  ASSERT_TRUE(repeat_with_pauses(*pattern, 7, {1000, 1000, 3}, [&](std::string_view part) { bytes += part; }));
  const auto outcome = run(*schedule::read_schedule(bytes), {});
  ASSERT_TRUE(outcome);
  for (const uint64_t ps : outcome->compute_ps) EXPECT_EQ(ps, uint64_t{7} * 1'000'000);
}

TEST(Repeat, RefusesWhatCannotBe) {
  const auto pattern = make_pattern("ring_allreduce", 64, 8);
  EXPECT_FALSE(repeat(*pattern, 0));
  EXPECT_FALSE(repeat(*repeat(*pattern, 2), 2));
  EXPECT_EQ(repeat(*pattern, 1U << 24).error().message,
            "16777216 times 252 operations and one more are too many: a rank has 1073741823 at most");
  EXPECT_FALSE(repeat_with_pauses(*pattern, 2, {3, 2, 1}, [](std::string_view) {}));
}

}  // namespace
}  // namespace spinloom::goal
