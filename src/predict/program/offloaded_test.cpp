// Collective operations that NICs execute, against those that CPUs carry on in their calls.
#include <gtest/gtest.h>

#include "predict/goal/model/model.hpp"
#include "predict/program/schedule_of.hpp"
#include "predict/program/testing/trace_recorder.hpp"

namespace spinloom::predict::offloads {
namespace {

using namespace test;

constexpr uint64_t ns = 1000;
constexpr uint64_t L = 1000 * ns;
constexpr uint64_t G = 2;  // the time for each byte
constexpr uint64_t bytes = 101;
constexpr uint64_t send = 200 * ns;  // the time of a CPU
constexpr uint64_t receive = 300 * ns;
constexpr uint64_t create = 10 * ns;
constexpr uint64_t match = 30 * ns;
constexpr uint64_t combine = 50 * ns + bytes * 4;  // the time of a NIC
constexpr uint64_t test_ = 7 * ns;
constexpr uint64_t hop = L + (bytes - 1) * G + match + combine;

Costs host_costs() {
  Costs costs;
  costs.message_costs = {{0, send, receive, 0}};
  costs.handshake = Handshake::nic;
  costs.handshake_bytes = 1000;
  costs.late_receives = LateReceiveCosts{.find_ps = 600 * ns, .answer_ps = 800 * ns};
  costs.copy_rate = Rate(1000, 1);
  return costs;
}

Costs nic_costs(bool is_cached = false) {
  Costs costs = host_costs();
  costs.offload = OffloadCosts{.create_ps = create,
                               .is_cached = is_cached,
                               .match_ps = match,
                               .own_block_rate = Rate(2, 1),
                               .combine_latency_ps = 50 * ns,
                               .combine_rate = Rate(4, 1),
                               .test_ps = test_};
  return costs;
}

struct Ran {
  std::vector<uint64_t> ends;
  std::vector<uint64_t> waits;
  LateReceives late;
};

Ran run(const Script& script, const Costs& costs, const LateReceives& late = {}) {
  auto made = schedule_of(script, costs, late);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  const Status found = schedule::check(made->schedule);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  goal::Record record;
  const auto outcome = goal::run(
      made->schedule, {.L_ps = L, .o_ps = 0, .g_ps = 0, .G = Rate(G, 1), .S_bytes = UINT64_MAX, .unit_ps = 1}, &record);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
  Ran ran{outcome->finish_ps, waited_ps(made->schedule, made->waits, record), {}};
  for (uint32_t rank = 0; rank < script.ranks.size(); ++rank) {
    std::vector<bool>& of_rank = ran.late.emplace_back();
    for (const uint32_t one : made->receives[rank])
      of_rank.push_back(one != no_operation && record.of(rank, one).is_late);
  }
  return ran;
}

// All ranks begin an all-reduce (recursive doubling), compute and wait for it, `times` times.
Script reduces(uint32_t ranks, uint64_t computing_ns, int times = 1) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Recorder one(rank, ranks);
    for (int time = 0; time < times; ++time) {
      one.iallreduce(0, bytes, 0);
      one.wait(computing_ns, {0});
    }
    traces.push_back(one.end());
  }
  return script(traces);
}

// Each of 4 ranks sends, receives and combines twice.
//   by the host: its second round begins when it has computed: T = o_s + w + o_r + (o_s + L + n G + o_r)
//   by the NIC: T = 6 create + w + test, if 2 hops are shorter than w
TEST(Offloaded, RoundsGoOnWhileTheCpuComputes) {
  const Script made = reduces(4, 10'000);
  const Ran host = run(made, host_costs());
  EXPECT_EQ(host.ends, std::vector<uint64_t>(4, send + 10'000 * ns + receive + send + L + (bytes - 1) * G + receive));
  EXPECT_EQ(host.waits, std::vector<uint64_t>(4, host.ends[0] - send - 10'000 * ns));
  const Ran nic = run(made, nic_costs());
  EXPECT_EQ(nic.ends, std::vector<uint64_t>(4, 6 * create + 10'000 * ns + test_));
  EXPECT_EQ(nic.waits, std::vector<uint64_t>(4, test_));
}

// Nobody computes: T = 6 create + 2 (L + n G + m + combine) + test.
TEST(Offloaded, ARoundTakesLAndMatching) {
  const Ran nic = run(reduces(4, 0), nic_costs());
  EXPECT_EQ(nic.ends, std::vector<uint64_t>(4, 6 * create + 2 * hop + test_));
  EXPECT_EQ(nic.waits, std::vector<uint64_t>(4, 2 * hop + test_));
}

// The second start of a cached schedule costs its frontier: 2 receives and the first send.
TEST(Offloaded, ACachedScheduleIsMadeOnce) {
  const uint64_t rest = 10'000 * ns + test_;
  EXPECT_EQ(run(reduces(4, 10'000, 2), nic_costs(false)).ends, std::vector<uint64_t>(4, 2 * (6 * create + rest)));
  EXPECT_EQ(run(reduces(4, 10'000, 2), nic_costs(true)).ends, std::vector<uint64_t>(4, (6 + 3) * create + 2 * rest));
}

// A persistent operation is one at each start: T = create, w and test, twice.
TEST(Offloaded, PersistentOperationsAreExecutedToo) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Recorder one(rank, 2);
    one.call(0, {.call = Call::Allreduce,
                 .form = CallForm::persistent,
                 .sends = {{0, bytes, type_byte}},
                 .receives = {{0, bytes, type_byte}},
                 .requests = {0}});
    for (int time = 0; time < 2; ++time) one.call(0, {.call = Call::Start, .requests = {0}}).wait(10'000, {0});
    traces.push_back(one.end());
  }
  EXPECT_EQ(run(script(traces), nic_costs()).ends, std::vector<uint64_t>(2, 2 * (3 * create + 10'000 * ns + test_)));
}

// Rank 1 begins 5 us late, and its partner's message is there: it finds and copies it before the call returns.
//   T(1) = 5000 + 3 create + find + copy, then the computation, and its NIC has all by then
TEST(Offloaded, WhatCameBeforeIsCopiedWhenTheScheduleIsMade) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Recorder one(rank, 2);
    one.iallreduce(rank == 0 ? 0 : 5000, bytes, 0);
    traces.push_back(one.wait(10'000, {0}).end());
  }
  const Script made = script(traces);
  const Ran first = run(made, nic_costs());
  EXPECT_EQ(first.late, (LateReceives{{false, false}, {false, true}}));
  const Ran second = run(made, nic_costs(), first.late);
  EXPECT_EQ(second.ends[1], 5000 * ns + 3 * create + 600 * ns + bytes * 1000 + 10'000 * ns + test_);
}

// A message that asks is answered by the NIC: T = 3 create + request L + answer L + data L + (s - 1) G + m + combine +
// test.
TEST(Offloaded, LongMessagesAskWithoutTheCpu) {
  Costs costs = nic_costs();
  costs.handshake_bytes = 100;
  const Script made = reduces(2, 0);
  EXPECT_EQ(run(made, costs).ends, std::vector<uint64_t>(2, 3 * create + 2 * L + hop + test_));
}

// Blocking ones stay as they are: T = o_s + L + n G + o_r.
TEST(Offloaded, BlockingOnesAreTheHosts) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Recorder one(rank, 2);
    traces.push_back(one.call(0, {.call = Call::Allreduce, .sends = {{0, bytes, type_byte}}}).end());
  }
  const Ran ran = run(script(traces), nic_costs());
  EXPECT_EQ(ran.ends, std::vector<uint64_t>(2, send + L + (bytes - 1) * G + receive));
  EXPECT_EQ(ran.waits, std::vector<uint64_t>(2, 0));
}

// A rank's own block: its NIC matches it and moves it, T = copy operation's create + m + n G' + test.
TEST(Offloaded, AnOwnBlockIsTheNics) {
  Recorder one(0, 1);
  one.call(0, {.call = Call::Alltoall,
               .form = CallForm::nonblocking,
               .sends = {{0, 500, type_byte}},
               .receives = {{0, 500, type_byte}},
               .requests = {0}});
  const Ran ran = run(script({one.wait(0, {0}).end()}), nic_costs());
  EXPECT_EQ(ran.ends[0], create + match + 500 * 2 + test_);
}

}  // namespace
}  // namespace spinloom::predict::offloads
