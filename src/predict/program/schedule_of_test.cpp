// A Script at given costs: when its ranks end.
#include "predict/program/schedule_of.hpp"

#include <gtest/gtest.h>

#include "predict/goal/model/model.hpp"
#include "predict/program/layout_uses.hpp"
#include "predict/program/testing/trace_recorder.hpp"

namespace spinloom::predict {
namespace {

using namespace test;

constexpr uint64_t ns = 1000;

// L = 1 us, 2 ps a byte; the CPUs' work is in the schedule.
goal::Model network(uint64_t S_bytes = UINT64_MAX) {
  return {.L_ps = 1000 * ns, .o_ps = 0, .g_ps = 0, .G = Rate(2, 1), .O = Rate(0, 1), .S_bytes = S_bytes, .unit_ps = 1};
}

std::vector<uint64_t> finish(const PricedSchedule& made, const goal::Model& model = network()) {
  auto outcome = goal::run(made.schedule, model);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
  return outcome.ok() ? outcome->finish_ps : std::vector<uint64_t>(made.bills.size());
}

// 200 ns to send, 300 ns to receive, whatever the size.
Costs overheads() {
  Costs costs;
  costs.message_costs = {{0, 200 * ns, 300 * ns, 0}};
  return costs;
}

TEST(ScheduleOf, OneMessage) {
  // T(0) = gap + o_send; T(1) = gap + o_send + L + (s - 1) G + o_receive + its own time afterwards
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  const Script made = script({sender.send(700, 1, 101).end(), receiver.receive(0, 0, 101).end(50)});
  EXPECT_EQ(finish(priced(made, overheads())),
            (std::vector<uint64_t>{900 * ns, (700 + 200 + 1000 + 300 + 50) * ns + 100 * 2}));
}

TEST(ScheduleOf, ComputationIsScaledAndRoundedUp) {
  Recorder one(0, 1);
  const Script made = script({one.end(10)});
  Costs costs;
  costs.scale_numerator = 1;
  costs.scale_denominator = 3;
  EXPECT_EQ(finish(priced(made, costs))[0], 3334U);
}

TEST(ScheduleOf, ANonBlockingReceiveOverlapsWithComputation) {
  // rank 1: posts, computes for 5 us, waits. The message (1.2 us) is there long before; its CPU time comes after the
  // computation, in which nobody is in MPI: T = 5 us + o_receive
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 1, 0).wait(5000, {0});
  const Script made = script({sender.send(0, 1, 1).end(), receiver.end()});
  EXPECT_EQ(finish(priced(made, overheads()))[1], 5300 * ns);
}

TEST(ScheduleOf, TheWaitIsForWhatItsRequestsBegan) {
  // two receives, the second one's message late: the rank that waits for the first one computes meanwhile
  // message 1: 0.2 + 1 + 0.3 = 1.5 us; then 2 us; message 2 leaves at 3.4 us and is there at 4.4 us, 0.3 us to receive
  Recorder sender(0, 2);
  sender.send(0, 1, 1, 1).send(3000, 1, 1, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 1, 0, 1).ireceive(0, 0, 1, 1, 2).wait(0, {0}).wait(2000, {1});
  const Script made = script({sender.end(), receiver.end()});
  EXPECT_EQ(finish(priced(made, overheads()))[1], (3400 + 1000 + 300) * ns);
}

TEST(ScheduleOf, HostCpusAnswerALongMessageWhenTheyAreInMpi) {
  // the sender asks at 0.2 us, the request is there at 1.2 us; the receiver computes until 10 us and answers then
  // (0.3 + 0.2 us); the answer is there at 11.5 us and read at 11.8 us; data: 0.2 + 1 + 0.3 us
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 1, 0).wait(10'000, {0});
  const Script made = script({sender.send(0, 1, 1).end(), receiver.end()});
  Costs costs = overheads();
  costs.handshake_bytes = 0;
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{12'000 * ns, 13'300 * ns}));
}

TEST(ScheduleOf, AReceiverFetchesALongMessage) {
  // the sender says where at 0.2 us, it is read when the receiver is back at 10 us, which copies for 0.3 us and says so
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 1, 0).wait(10'000, {0});
  const Script made = script({sender.send(0, 1, 1).end(), receiver.end()});
  Costs costs = overheads();
  costs.handshake_bytes = 0;
  costs.handshake = Handshake::fetch;
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{11'300 * ns, 10'300 * ns}));
}

TEST(ScheduleOf, ANicAnswersALongMessageByItself) {
  // request L, answer L, data L: 3 us, and the receiver still computes; neither CPU did anything
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 1, 0).wait(10'000, {0});
  const Script made = script({sender.send(0, 1, 1).end(), receiver.end()});
  EXPECT_EQ(finish(priced(made), network(0)), (std::vector<uint64_t>{2000 * ns, 10'000 * ns}));
}

// T(sender) = o_send + L + o_send of the answer + L + o_receive of it; it ends when it has matched.
TEST(ScheduleOf, ASynchronousSendEndsWhenItHasMatched) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  sender.call(0, {.call = Call::Ssend, .peer = 1, .sends = {{0, 1, type_byte}}});
  receiver.receive(5000, 0, 1);
  const Script made = script({sender.end(), receiver.end()});
  EXPECT_EQ(finish(priced(made, overheads()))[0], (5000 + 200 + 1000 + 300) * ns);
  // NICs say so by themselves: from the receive on, L
  Costs nics;
  nics.handshake = Handshake::nic;
  EXPECT_EQ(finish(priced(made, nics))[0], (5000 + 1000) * ns);
}

TEST(ScheduleOf, ALongSynchronousSendAsksAsOthersDo) {
  std::vector<uint64_t> ends[2];
  for (const bool is_synchronous : {false, true}) {
    Recorder sender(0, 2);
    Recorder receiver(1, 2);
    sender.call(0, {.call = is_synchronous ? Call::Ssend : Call::Send, .peer = 1, .sends = {{0, 100, type_byte}}});
    receiver.receive(5000, 0, 100);
    Costs costs = overheads();
    costs.handshake_bytes = 10;
    ends[is_synchronous] = finish(priced(script({sender.end(), receiver.end()}), costs));
  }
  EXPECT_EQ(ends[0], ends[1]);
}

// T(receiver) = request L + answer L + data L + way, and no CPU but for the ends.
TEST(ScheduleOf, NicsAnswerAtTheirOwnPrice) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 101, 0).wait(10'000, {0});
  const Script made = script({sender.send(0, 1, 101).end(), receiver.end(5000)});
  Costs costs;
  costs.message_costs = {{0, 200 * ns, 300 * ns, 0}, {100, 200 * ns, 300 * ns, 0}, {101, 200 * ns, 300 * ns, 40 * ns}};
  costs.handshake_bytes = 100;
  costs.handshake = Handshake::nic;
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{(200 + 2000) * ns, (10'000 + 300 + 5000) * ns}));
  Recorder waiting(1, 2);
  const Script blocking = script({Recorder(0, 2).send(0, 1, 101).end(), waiting.receive(0, 0, 101).end()});
  EXPECT_EQ(finish(priced(blocking, costs))[1], (200 + 3000 + 40 + 300) * ns + 100 * 2);
}

// A short message waits where it has landed: T = its receive + find + copy + o_receive, or unpack in place of copy. The
// NIC would have taken it in place.
TEST(ScheduleOf, TheCpuUnpacksAShortMessageThatCameBeforeItsReceive) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  sender.call(0, {.call = Call::Send, .peer = 1, .sends = {{0, 3, type_columns}}});
  receiver.call(5000, {.call = Call::Recv, .peer = 0, .receives = {{0, 3, type_columns}}});
  const Script made = script({sender.end(), receiver.end()});
  Costs costs = overheads();
  costs.layout_costs[{0, 3, Side::receive}] = {0, 70 * ns, 70 * ns};
  costs.host_layout_ps[{0, 3, Side::receive}] = 900 * ns;
  costs.copy_rate = Rate(1000, 1);  // 96 B: 96 ns
  costs.late_receives = LateReceiveCosts{.find_ps = 600 * ns, .answer_ps = 0};
  const PricedSchedule first = priced(made, costs);
  EXPECT_EQ(finish(first)[1], (5000 + 70 + 300) * ns);
  ASSERT_EQ(first.receives[1].size(), 1U);
  EXPECT_NE(first.receives[1][0], no_operation);
  EXPECT_EQ(first.receives[0][0], no_operation);
  const LateReceives late = {{false}, {true}};
  const auto second = schedule_of(made, costs, late);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(finish(*second)[1], (5000 + 600 + 900 + 300) * ns);
  costs.host_layout_ps.clear();
  EXPECT_EQ(finish(*schedule_of(made, costs, late))[1], (5000 + 600 + 96 + 300) * ns);
}

// The request is there; the CPU answers, and the data take one way: T = its receive + answer + L + L.
TEST(ScheduleOf, TheCpuAnswersALateRequest) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  const Script made = script({sender.send(0, 1, 1).end(), receiver.receive(5000, 0, 1).end()});
  Costs costs;
  costs.handshake_bytes = 0;
  costs.handshake = Handshake::nic;
  costs.late_receives = LateReceiveCosts{.find_ps = 0, .answer_ps = 800 * ns};
  const PricedSchedule first = priced(made, costs);
  EXPECT_EQ(finish(first)[1], (5000 + 2000) * ns);
  EXPECT_EQ(finish(*schedule_of(made, costs, {{false}, {true}}))[1], (5000 + 800 + 2000) * ns);
}

Script columns_to_columns(uint64_t computing_ns) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  sender.call(0, {.call = Call::Send, .peer = 1, .sends = {{0, 3, type_columns}}});
  receiver.call(0, {.call = Call::Recv,
                    .form = CallForm::nonblocking,
                    .peer = 0,
                    .receives = {{0, 3, type_columns}},
                    .requests = {0}});
  return script({sender.end(), receiver.wait(computing_ns, {0}).end()});
}

// The first whole path: the same program when the host unpacks, and when the NIC does.
TEST(ScheduleOf, TwoWaysToUnpack) {
  const Script made = columns_to_columns(3000);
  Costs host = overheads();
  host.layout_costs[{0, 3, Side::send}] = {.cpu_ps = 400 * ns};
  host.layout_costs[{0, 3, Side::receive}] = {.cpu_ps = 600 * ns};
  // the host packs, and unpacks when it is back: T(1) = 3000 + o_receive + 600
  const PricedSchedule by_host = priced(made, host);
  EXPECT_EQ(finish(by_host), (std::vector<uint64_t>{600 * ns, 3900 * ns}));
  EXPECT_EQ(by_host.bills[1].layouts_ps, 600 * ns);

  Costs offload;
  offload.layout_costs[{0, 3, Side::receive}] = {.nic_ps = 600 * ns};
  // the NIC unpacks while the host computes: 1 us + 95 * 2 ps + 600 ns < 3 us
  EXPECT_EQ(finish(priced(made, offload)), (std::vector<uint64_t>{0, 3000 * ns}));
  // and without computation its time is on the way
  EXPECT_EQ(finish(priced(columns_to_columns(0), offload))[1], 1600 * ns + 95 * 2);
}

TEST(ScheduleOf, APairOfLayoutsHasItsOwnPrice) {
  const Script made = columns_to_columns(3000);
  Costs costs = overheads();
  costs.layout_costs[{0, 3, Side::send}] = {.cpu_ps = 400 * ns};
  costs.layout_costs[{0, 3, Side::receive}] = {.cpu_ps = 600 * ns};
  const DataLayout columns{3, 0};
  // in place of 400 and 600: T(0) = o_send + 50, T(1) = 3000 + o_receive + 90
  costs.pair_costs[{96, columns, columns}] = {50 * ns, 90 * ns};
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{250 * ns, 3390 * ns}));
  // a price of another pair is nobody's
  costs.pair_costs = {{{96, columns, DataLayout{}}, {50 * ns, 90 * ns}}};
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{600 * ns, 3900 * ns}));
}

TEST(ScheduleOf, ABlockThatMeetsALayoutHasAPriceToo) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  sender.call(0, {.call = Call::Send, .peer = 1, .sends = {{0, 96, type_byte}}});
  receiver.call(0, {.call = Call::Recv, .peer = 0, .receives = {{0, 3, type_columns}}});
  const Script made = script({sender.end(), receiver.end()});
  const std::vector<PairUse> uses = pair_uses(made);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].bytes, 96U);
  EXPECT_EQ(uses[0].sent, DataLayout{});
  EXPECT_EQ(uses[0].received, (DataLayout{3, 0}));
  EXPECT_EQ(uses[0].messages, 1U);
  EXPECT_EQ(uses[0].copies, 0U);
  Costs costs;
  costs.pair_costs[{96, DataLayout{}, DataLayout{3, 0}}] = {50 * ns, 90 * ns};
  // T(0) = 50; T(1) = 50 + L + 95 G + 90
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{50 * ns, 1140 * ns + 95 * 2}));
}

TEST(ScheduleOf, LayoutsAreInTheScheduleAtBothEnds) {
  // 3 elements of 4 blocks of 8 B: the send has them, the receive too; with a handshake the data only.
  for (const uint64_t handshake_bytes : {UINT64_MAX, uint64_t{8}}) {
    Costs costs = overheads();
    costs.handshake_bytes = handshake_bytes;
    const PricedSchedule made = priced(columns_to_columns(0), costs);
    ASSERT_EQ(made.schedule.layouts().size(), 1U);
    EXPECT_EQ(made.schedule.layouts()[0].count, 3);
    EXPECT_EQ(made.schedule.layouts()[0].bytes, 96U);
    EXPECT_EQ(made.schedule.layouts()[0].blob.size(),
              layout::Blob::build(*layout::parse("vector(4, 1, 4, double)"))->bytes().size());
    for (uint32_t rank = 0; rank < 2; ++rank) {
      uint32_t ends = 0;
      for (const schedule::Operation& one : made.schedule.program(rank).operations) {
        if (made.schedule.transfer_layouts(one) == schedule::TransferLayouts()) continue;
        ++ends;
        EXPECT_EQ(made.schedule.transfer_layouts(one), (schedule::TransferLayouts{0, schedule::contiguous}));
        EXPECT_EQ(made.schedule.shape(one).size, 96U);
      }
      EXPECT_EQ(ends, 1U);
    }
  }
}

TEST(ScheduleOf, AnOwnBlockTakesWhatItsPairSays) {
  RankScript one;
  one.copies = {{{.bytes = 96, .count = 3, .type = 0}, {.bytes = 96, .count = 96}}};
  one.rounds = {{.copies_end = 1}};
  one.actions = {{.rounds_end = 1}};
  one.steps = {{.kind = Step::Kind::act}};
  Script made;
  made.ranks = {one};
  const std::vector<PairUse> uses = pair_uses(made);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].messages, 0U);
  EXPECT_EQ(uses[0].copies, 1U);
  Costs costs;
  costs.host_layout_ps[{0, 3, Side::send}] = 50 * ns;
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{50 * ns}));
  // a pair of which only messages were priced leaves it so
  PairCost& pair = costs.pair_costs[{96, DataLayout{3, 0}, DataLayout{}}];
  pair = {.send_ps = 1 * ns, .receive_ps = 2 * ns};
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{50 * ns}));
  pair.own_block_ps = 70 * ns;
  EXPECT_EQ(finish(priced(made, costs)), (std::vector<uint64_t>{70 * ns}));
}

TEST(ScheduleOf, AMessageLeavesBeforeTheCpuUnpacksAnother) {
  // both send 1 B and receive 1 B at once; packing takes 5 us at rank 1, in which the other message comes: that one is
  // unpacked (2 us) when rank 1's own has left. Rank 0: 5 + 1 us; rank 1: 5 + 2 us
  std::vector<trace::RankTrace> traces;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Recorder one(static_cast<uint32_t>(rank), 2);
    one.call(0, {.call = Call::Sendrecv,
                 .peer = 1 - rank,
                 .receive_peer = 1 - rank,
                 .sends = {{0, rank == 1 ? 3 : 96, rank == 1 ? type_columns : type_byte}},
                 .receives = {{0, rank == 1 ? 3 : 96, rank == 1 ? type_columns : type_byte}}});
    traces.push_back(one.end());
  }
  Costs costs;
  costs.layout_costs[{0, 3, Side::send}] = {.cpu_ps = 5000 * ns};
  costs.layout_costs[{0, 3, Side::receive}] = {.cpu_ps = 2000 * ns};
  EXPECT_EQ(finish(priced(script(traces), costs)), (std::vector<uint64_t>{6000 * ns + 95 * 2, 7000 * ns}));
}

// Two messages, the second one sent `gap_ns` after the first.
Script two_messages_of_columns(uint64_t gap_ns) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  for (uint32_t number = 0; number < 2; ++number) {
    sender.call(number == 0 ? 0 : gap_ns,
                {.call = Call::Send,
                 .form = CallForm::nonblocking,
                 .peer = 1,
                 .sends = {{0, 3, type_columns}},
                 .requests = {number}},
                0);
    receiver.call(0, {.call = Call::Recv,
                      .form = CallForm::nonblocking,
                      .peer = 0,
                      .receives = {{0, 3, type_columns}},
                      .requests = {number}});
  }
  return script({sender.wait(0, {0, 1}).end(), receiver.wait(0, {0, 1}).end()});
}

// L = 1 us, n G = 95 * 2 ps. A message waits for w on the NIC, which takes the next one after b:
//   both come together, b < w:       T = L + n G + b + w
//   the second one gap later, b > w: T = L + n G + max(gap, b) + b: the NIC's own end is the rank's
TEST(ScheduleOf, ANicTakesTheNextMessageBeforeOneHasEndedOrLater) {
  Costs costs;
  EndCost& price = costs.layout_costs[{0, 3, Side::receive}];
  price = {.nic_ps = 600 * ns, .nic_busy_ps = 200 * ns};
  EXPECT_EQ(finish(priced(two_messages_of_columns(0), costs))[1], (1000 + 200 + 600) * ns + 95 * 2);
  price = {.nic_ps = 600 * ns, .nic_busy_ps = 900 * ns};
  EXPECT_EQ(finish(priced(two_messages_of_columns(700), costs))[1], (1000 + 900 + 900) * ns + 95 * 2);
  price = {.nic_ps = 600 * ns};
  EXPECT_EQ(finish(priced(two_messages_of_columns(0), costs))[1], 1600 * ns + 2 * 95 * 2);
}

TEST(ScheduleOf, ALayoutWithoutAPriceCostsByTheByte) {
  Costs costs;
  costs.unknown_layout_rate = Rate(100, 1);
  EXPECT_EQ(priced(columns_to_columns(0), costs).bills[1].layouts_ps, 9600U);
}

TEST(ScheduleOf, ARankCopiesItsOwnBlock) {
  // an all-to-all of one rank: 3 elements of the columns into 96 B, at what the host takes to pack them
  Recorder one(0, 1);
  one.call(0, {.call = Call::Alltoall, .sends = {{0, 3, type_columns}}, .receives = {{0, 96, type_byte}}});
  const Script made = script({one.end()});
  Costs costs;
  costs.host_layout_ps[{0, 3, Side::send}] = 70 * ns;
  EXPECT_EQ(finish(priced(made, costs))[0], 70 * ns);
}

TEST(ScheduleOf, CostsBetweenTheSizesOfTheTable) {
  Costs costs;
  costs.message_costs = {{0, 100, 200, 0}, {100, 200, 600, 50}, {200, 200, 700, 50}};
  EXPECT_EQ(costs.message_cost(50).send_cpu_ps, 150U);
  EXPECT_EQ(costs.message_cost(50).receive_cpu_ps, 400U);
  EXPECT_EQ(costs.message_cost(50).extra_latency_ps, 25U);
  EXPECT_EQ(costs.message_cost(400).receive_cpu_ps, 900U);
  EXPECT_EQ(costs.message_cost(400).send_cpu_ps, 200U);
}

TEST(ScheduleOf, BarriersInARowStayInOrder) {
  // P = 4 ranks leave dissemination after 2 (o_send + L + o_receive), three times
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Recorder one(rank, 4);
    for (int turn = 0; turn < 3; ++turn) one.call(0, {.call = Call::Barrier});
    traces.push_back(one.end());
  }
  EXPECT_EQ(finish(priced(script(traces), overheads())), std::vector<uint64_t>(4, 3ULL * 2 * 1500 * ns));
}

TEST(ScheduleOf, AReductionCombinesByTheByte) {
  // two ranks exchange 1000 B and combine them: o_send + L + 999 G + o_receive + 1000 * 5 ps
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Recorder one(rank, 2);
    traces.push_back(one.call(0, {.call = Call::Allreduce, .sends = {{0, 1000, type_byte}}}).end());
  }
  Costs costs = overheads();
  costs.combine_rate = Rate(5, 1);
  EXPECT_EQ(finish(priced(script(traces), costs)), std::vector<uint64_t>(2, 1500 * ns + 999 * 2 + 5000));
}

}  // namespace
}  // namespace spinloom::predict
