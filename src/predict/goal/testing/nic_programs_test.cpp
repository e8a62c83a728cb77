// NICs that process layouts: results by hand, at each fidelity.
#include "predict/goal/nics/nic_programs.hpp"

#include <gtest/gtest.h>

#include "predict/goal/model/model.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/goal/nics/fidelity.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal {
namespace {

using schedule::Kind;
using schedule::Schedule;

// Rank 0 sends k messages of 1000 B whose bytes lie apart to rank 1; shape 0 is the send, shape 1 the receive.
Schedule scattered(uint32_t k, Kind sends = Kind::send) {
  Schedule schedule(2);
  const auto layout = schedule.intern_layout(schedule::Layout{"every other", 250, 1000});
  schedule::Builder sender;
  schedule::Builder receiver;
  const uint32_t send = schedule.intern_shape({.size = 1000, .kind = sends}, {layout, schedule::contiguous});
  const uint32_t receive = schedule.intern_shape({.size = 1000, .kind = Kind::receive}, {layout, schedule::contiguous});
  for (uint32_t one = 0; one < k; ++one) {
    sender.add(send, 1);
    if (sends == Kind::send) receiver.add(receive, 0);
  }
  schedule.intern(0, sender.take());
  schedule.intern(1, receiver.take());
  return schedule;
}

uint64_t end_of(const Schedule& schedule, const std::vector<ProgramPrice>& prices, uint64_t o_ps = 1'500'000) {
  const auto made = with_nic_programs(schedule, prices, 1000);
  EXPECT_TRUE(made);
  const auto outcome = run(made->schedule, {.o_ps = o_ps, .unit_ps = 1});
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome->makespan_ps;
}

TEST(NicPrograms, AMessageWaitsForBothEnds) {
  // T = gather + c + L + n G + c + scatter, whatever of it is work.
  const uint64_t plain = end_of(scattered(1), {{}, {}});
  EXPECT_EQ(plain, run(scattered(1), {})->makespan_ps);
  EXPECT_EQ(end_of(scattered(1), {{0, 300, 100}, {0, 7000, 7000}}), plain + 300 + 7000);
  EXPECT_EQ(end_of(scattered(1), {{50, 0, 0}, {4, 0, 0}}), plain + 50 + 4) << "the CPU where the NIC does not";
  const auto made = with_nic_programs(scattered(1), {{50, 300, 100}, {0, 7000, 9000}}, 1000);
  EXPECT_EQ(made->nic_ps, std::vector<uint64_t>({300, 9000}));
}

TEST(NicPrograms, ANicMovesOneLayoutAfterTheOther) {
  // k messages are there at once with o = 0 and g, G far below: the last one has been moved k busy later.
  const uint64_t busy = 1'000'000'000;
  const uint64_t one = end_of(scattered(1), {{}, {0, busy, busy}}, 0);
  EXPECT_EQ(end_of(scattered(5), {{}, {0, busy, busy}}, 0), one + 4 * busy);
  // Layouts that keep the NIC busy for no time delay nobody: the messages end as far apart as they came.
  const uint64_t apart = end_of(scattered(5), {{}, {}}, 0) - end_of(scattered(1), {{}, {}}, 0);
  EXPECT_EQ(end_of(scattered(5), {{}, {0, busy, 0}}, 0), one + apart);
}

TEST(NicPrograms, WhatWaitsForABeginDoesNotWaitForTheNic) {
  // c waits for the send's begin, d for its end.
  Schedule schedule = scattered(1);
  schedule::Builder builder;
  builder.add(0, 1);
  builder.add(schedule.intern_shape({.size = 1}), 0);
  builder.add(schedule.intern_shape({.size = 2}), 0);
  builder.require(1, 0, schedule::Awaits::start);
  builder.require(2, 0, schedule::Awaits::end);
  schedule.intern(0, builder.take());
  const uint64_t gather = 500'000'000;
  const auto made = with_nic_programs(schedule, {{0, gather, gather}, {}, {}, {}}, 1000);
  ASSERT_TRUE(made);
  Record record;
  const uint64_t o = 1'500'000;
  ASSERT_TRUE(run(made->schedule, {.o_ps = o, .unit_ps = 1}, &record));
  // The gather, the send, c and d.
  EXPECT_EQ(record.of(0, 2).begin_ps, 0);
  EXPECT_EQ(record.of(0, 2).end_ps, 1000);
  EXPECT_EQ(record.of(0, 3).begin_ps, gather + o);
}

TEST(NicPrograms, EachFidelityPaysTheSame) {
  const simulated::Profile profile = simulated::test_profile();
  for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
    const auto plain = run_on(fidelity, profile, scattered(1), {});
    const auto made = with_nic_programs(scattered(1), {{0, 300, 100}, {0, 7000, 7000}}, 1000);
    const auto with = run_on(fidelity, profile, made->schedule, {.unit_ps = 1});
    ASSERT_TRUE(plain && with);
    EXPECT_EQ(with->makespan_ps, plain->makespan_ps + 7300);
  }
}

TEST(NicPrograms, OneSidedOnesGatherToo) {
  const uint64_t plain = end_of(scattered(1, Kind::put), {{}, {}});
  EXPECT_EQ(end_of(scattered(1, Kind::put), {{0, 300, 300}, {}}), plain + 300);
}

}  // namespace
}  // namespace spinloom::goal
