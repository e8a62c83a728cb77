// From traces by hand to messages that have met.
#include "predict/program/script.hpp"

#include <gtest/gtest.h>

#include "predict/program/testing/trace_recorder.hpp"

namespace spinloom::predict {
namespace {

using namespace test;
using schedule::Count;
using schedule::count;

TEST(Script, TimeBetweenCallsIsComputationAndTimeInCallsIsNot) {
  // rank 1 waits for 500 ns in its receive: nobody computes then
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  const Script made =
      script({sender.send(700, 1, 8).end(30),
              receiver.call(200, {.call = Call::Recv, .peer = 0, .receives = {{0, 8, type_byte}}}, 500).end(40)});
  EXPECT_EQ(made.ranks[0].recorded.compute_ns, 730U);
  EXPECT_EQ(made.ranks[1].recorded.compute_ns, 240U);
  EXPECT_EQ(made.ranks[1].recorded.communication_ns, 500U);
  EXPECT_EQ(made.ranks[1].recorded.total_ns, 740U);
  const PricedSchedule out = priced(made);
  EXPECT_EQ(out.bills[0].compute_ps, 730'000U);
  EXPECT_EQ(out.bills[1].compute_ps, 240'000U);
}

TEST(Script, ACallThatFollowsAtOnceHasNoComputationBeforeIt) {
  Recorder one(0, 1);
  const Script made = script({one.call(0, {.call = Call::File_write}).call(7, {.call = Call::File_write}).end(0)});
  std::vector<uint64_t> computed;
  for (const Step& step : made.ranks[0].steps) {
    if (step.kind == Step::Kind::compute) computed.push_back(step.value);
  }
  EXPECT_EQ(computed, std::vector<uint64_t>{7});
}

TEST(Script, AReceiveHasTheBytesThatWereSent) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  const Script made = script({sender.send(0, 1, 24).end(), receiver.receive(0, 0, 1000).end()});
  EXPECT_EQ(made.ranks[1].legs.at(0).part.bytes, 24U);
  EXPECT_EQ(made.ranks[1].legs.at(0).part.count, 24);
}

TEST(Script, AMessageThatIsTooLongIsAnError) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  EXPECT_EQ(error_of({sender.send(0, 1, 24).end(), receiver.receive(0, 0, 8).end()}),
            "rank 1, event 1: receives at most 8 B from rank 0 (tag 0 of communicator 0), and 24 B were sent");
}

TEST(Script, WildcardsAreWhatTheyMet) {
  // rank 0 takes two messages from anyone; rank 2's came first
  Recorder root(0, 3);
  root.call(0, {.call = Call::Recv,
                .peer = trace::any,
                .tag = trace::any,
                .receives = {{0, 64, type_byte}},
                .matches = {{trace::none, 2, 5, 16}}});
  root.ireceive(0, trace::any, 64, 3, trace::any).wait(0, {3}, {{3, 1, 4, 8}});
  Recorder one(1, 3);
  Recorder two(2, 3);
  const Script made = script({root.end(), one.send(0, 0, 8, 4).end(), two.send(0, 0, 16, 5).end()});
  ASSERT_EQ(made.ranks[0].legs.size(), 2U);
  EXPECT_EQ(made.ranks[0].legs[0].peer, 2U);
  EXPECT_EQ(made.ranks[0].legs[0].part.bytes, 16U);
  EXPECT_EQ(made.ranks[0].legs[1].peer, 1U);
  EXPECT_EQ(made.ranks[0].legs[1].part.bytes, 8U);
  priced(made);
}

TEST(Script, TheSameTagInTwoCommunicatorsAreTwoTags) {
  // between the same ranks, in the other order: without communicators the sizes would not meet
  Recorder sender(0, 3);
  Recorder receiver(1, 3);
  const uint32_t at_sender = sender.communicator({0, 1});
  receiver.communicator({1, 2});  // numbers differ between ranks
  const uint32_t at_receiver = receiver.communicator({0, 1});
  sender.send(0, 1, 100).call(0, {.call = Call::Send, .comm = at_sender, .peer = 1, .sends = {{0, 8, type_byte}}});
  receiver.call(0, {.call = Call::Recv, .comm = at_receiver, .peer = 0, .receives = {{0, 8, type_byte}}});
  receiver.receive(0, 0, 100);
  Recorder idle(2, 3);
  idle.communicator({1, 2});
  const Script made = script({sender.end(), receiver.end(), idle.end()});
  EXPECT_EQ(made.ranks[1].legs[0].part.bytes, 8U);
  EXPECT_NE(made.ranks[0].legs[0].tag, made.ranks[0].legs[1].tag);
  // check() takes messages by source and tag
  priced(made);
}

TEST(Script, ACollectiveOfAnOddCommunicatorIsItsMembers) {
  // members 4, 1, 2 of 5 ranks, root 1 of them: rank 1. A binomial tree of 3 places: 2 messages of 64 B.
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 5; ++rank) {
    Recorder one(rank, 5);
    if (rank != 0 && rank != 3) {
      const uint32_t comm = one.communicator({4, 1, 2});
      Signature bcast{.call = Call::Bcast, .comm = comm, .peer = 1};
      (rank == 1 ? bcast.sends : bcast.receives) = {{0, 64, type_byte}};
      one.call(0, bcast);
    }
    traces.push_back(one.end());
  }
  const Script made = script(traces);
  const Count counted = count(priced(made).schedule);
  EXPECT_EQ(counted.sends, 2U);
  EXPECT_EQ(counted.sent_bytes, 128U);
  EXPECT_EQ(made.ranks[1].legs.size(), 2U);
  EXPECT_EQ(made.algorithms.at("bcast binomial"), 3U);
}

TEST(Script, AReduceScatterOfBlocksSendsEachItsBlock) {
  // 3 ranks get 10 B each: the trace says that each sends 30 B; P (P - 1) messages of 10 B
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Recorder one(rank, 3);
    one.call(0, {.call = Call::Reduce_scatter_block, .sends = {{0, 30, type_byte}}, .receives = {{0, 10, type_byte}}});
    traces.push_back(one.end());
  }
  const Count counted = count(priced(script(traces)).schedule);
  EXPECT_EQ(counted.sends, 6U);
  EXPECT_EQ(counted.sent_bytes, 60U);
}

TEST(Script, WhatAProbeHasMatchedIsReceived) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.call(0, {.call = Call::Mprobe, .peer = trace::any, .matches = {{trace::none, 0, 3, 8}}});
  receiver.call(0, {.call = Call::Mrecv,
                    .form = CallForm::nonblocking,
                    .peer = 0,
                    .tag = 3,
                    .receives = {{0, 8, type_byte}},
                    .requests = {0},
                    .matches = {{0, 0, 3, 8}}});
  const Script made = script({sender.send(0, 1, 8, 3).end(), receiver.wait(0, {0}).end()});
  EXPECT_EQ(made.ranks[1].legs.at(0).peer, 0U);
  priced(made);
}

TEST(Script, AProbeIsWaitingAndNothingElse) {
  for (const Call probe : {Call::Probe, Call::Iprobe, Call::Mprobe, Call::Improbe}) {
    Recorder one(0, 1);
    const Script made = script({one.call(0, {.call = probe, .peer = trace::any, .tag = trace::any}, 300).end()});
    EXPECT_TRUE(made.left_out.empty()) << trace::name_of(probe);
    EXPECT_EQ(made.ranks[0].recorded.fixed_ns, 0U) << trace::name_of(probe);
    EXPECT_EQ(made.ranks[0].recorded.communication_ns, 300U) << trace::name_of(probe);
  }
}

TEST(Script, RootsAreThoseOfTheCalls) {
  const auto block = [](int64_t bytes) { return trace::Block{0, bytes, type_byte}; };
  for (const Call call : {Call::Bcast, Call::Reduce, Call::Gather, Call::Gatherv, Call::Scatter, Call::Scatterv}) {
    SCOPED_TRACE(trace::name_of(call));
    const bool has_lists = call == Call::Gatherv || call == Call::Scatterv;
    const std::vector<trace::Block> both(has_lists ? 2 : 1, block(16));
    const std::vector<trace::Block> own{block(16)};
    const bool to_root = call == Call::Reduce || call == Call::Gather || call == Call::Gatherv;
    Signature at_root{.call = call, .peer = 1, .sends = to_root ? own : both};
    if (call != Call::Bcast) at_root.receives = to_root ? both : own;
    Signature elsewhere{.call = call, .peer = 1};
    (to_root ? elsewhere.sends : elsewhere.receives) = own;
    Recorder other(0, 2);
    Recorder root(1, 2);
    const Script made = script({other.call(0, elsewhere).end(), root.call(0, at_root).end()});
    ASSERT_EQ(made.ranks[0].legs.size(), 1U);
    EXPECT_EQ(made.ranks[0].legs[0].side, to_root ? Side::send : Side::receive);
    EXPECT_EQ(made.ranks[0].legs[0].part.bytes, 16U);
    ASSERT_EQ(made.ranks[1].legs.size(), 1U);
    EXPECT_EQ(made.ranks[1].legs[0].side, to_root ? Side::receive : Side::send);
    priced(made);
  }
}

TEST(Script, CollectivesUnderWayAtTheSameTimeHaveTagsOfTheirOwn) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Recorder one(rank, 2);
    for (const uint32_t request : {0U, 1U}) {
      one.call(0, {.call = Call::Barrier, .form = CallForm::nonblocking, .requests = {request}});
    }
    traces.push_back(one.wait(0, {1}).wait(0, {0}).end());
  }
  const Script made = script(traces);
  EXPECT_NE(made.ranks[0].legs[0].tag, made.ranks[0].legs[2].tag);
  priced(made);
}

TEST(Script, APersistentRequestStartsAgainAndAgain) {
  Recorder sender(0, 2);
  sender.call(
      0, {.call = Call::Send, .form = CallForm::persistent, .peer = 1, .sends = {{0, 8, type_byte}}, .requests = {0}});
  Recorder receiver(1, 2);
  for (int turn = 0; turn < 3; ++turn) {
    sender.call(5, {.call = Call::Start, .requests = {0}}).wait(5, {0});
    receiver.receive(0, 0, 8);
  }
  sender.call(0, {.call = Call::Request_free, .requests = {0}});
  EXPECT_EQ(count(priced(script({sender.end(), receiver.end()})).schedule).sends, 3U);
}

TEST(Script, PollsInVainAreWaitingNotComputation) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 8, 0).call(0, {.call = Call::Test}, 900, 40);
  receiver.call(0, {.call = Call::Test, .requests = {0}});
  const Script made = script({sender.send(0, 1, 8).end(), receiver.end()});
  EXPECT_EQ(made.ranks[1].recorded.compute_ns, 0U);
  EXPECT_EQ(made.ranks[1].recorded.polled_ns, 900U);
  EXPECT_EQ(made.ranks[1].awaited.size(), 1U);
}

// A poll alone takes 20 ns. 100 that follow each other take 9 us: T(between) = 9000 - 100 * 20 = 7000 ns.
Script polling(PollMeaning polls, uint64_t hundred_polls_ns = 9000) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 8, 0);
  receiver.call(0, {.call = Call::Test, .requests = {}}, 20, 1);
  receiver.call(0, {.call = Call::Barrier, .comm = 1});
  receiver.call(0, {.call = Call::Test, .requests = {}}, hundred_polls_ns, 100);
  receiver.call(0, {.call = Call::Test, .requests = {0}});
  auto made = script_of(std::vector{sender.send(0, 1, 8).end(), receiver.end()}, {}, polls);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::move(*made);
}

TEST(Script, WhatLiesBetweenPollsMayBeWork) {
  const Script waits = polling(PollMeaning::wait);
  EXPECT_EQ(waits.ranks[1].recorded.compute_ns, 0U);
  EXPECT_EQ(waits.ranks[1].recorded.polled_ns, 9020U);
  const Script works = polling(PollMeaning::work);
  EXPECT_EQ(works.ranks[1].recorded.compute_ns, 7000U);
  EXPECT_EQ(works.ranks[1].recorded.between_polls_ns, 7000U);
  EXPECT_EQ(works.ranks[1].recorded.polled_ns, 2020U);
  EXPECT_EQ(works.ranks[1].recorded.total_ns, waits.ranks[1].recorded.total_ns);
  EXPECT_EQ(priced(works).bills[1].compute_ps, 7'000'000U);
}

TEST(Script, ByRulePollsThatAreTwiceAsFarApartAsOneTakesHaveWorkBetweenThem) {
  EXPECT_EQ(polling(PollMeaning::rule, 4000).ranks[1].recorded.between_polls_ns, 2000U);
  EXPECT_EQ(polling(PollMeaning::rule, 3999).ranks[1].recorded.between_polls_ns, 0U);
}

TEST(Script, WhatIsNotReplayedKeepsItsTimeAndIsCounted) {
  Recorder one(0, 1);
  one.call(5, {.call = Call::File_write}, 300).call(5, {.call = Call::File_write}, 100);
  const Script made = script({one.end()});
  const Note& note = made.left_out.at("File_write is not a message: keeps its recorded time");
  EXPECT_EQ(note.count, 2U);
  EXPECT_EQ(note.time_ns, 400U);
  EXPECT_EQ(made.ranks[0].recorded.fixed_ns, 400U);
  EXPECT_EQ(priced(made).bills[0].compute_ps, 410'000U);
}

TEST(Script, AMessageWithoutAPartnerIsAnError) {
  Recorder sender(0, 2);
  EXPECT_EQ(error_of({sender.send(0, 1, 8, 7).end(), Recorder(1, 2).end()}),
            "rank 0, event 1: sends 8 B to rank 1 (tag 7 of communicator 0), and that rank has no call that meets it");
}

TEST(Script, AReceiveThatNobodyWaitsForIsNone) {
  Recorder idle(1, 2);
  const Script made = script({Recorder(0, 2).end(), idle.ireceive(0, 0, 8, 0).end()});
  EXPECT_EQ(priced(made).schedule.operations(), 0U);
}

TEST(Script, ATraceThatEndsEarlyCutsAllRanksWhereTheyNeedIt) {
  // 0 -> 1 -> 2, three times; rank 1 dies after its first two receives and one send: rank 2's second receive has no
  // message, rank 0's third send no taker, and the second message to rank 1 nothing that it is passed on by
  Recorder first(0, 3);
  Recorder middle(1, 3);
  Recorder last(2, 3);
  for (int turn = 0; turn < 3; ++turn) {
    first.send(100, 1, 8);
    last.receive(100, 1, 8);
  }
  middle.receive(0, 0, 8).send(0, 2, 8).receive(0, 0, 8);
  const Script made = script({first.end(), middle.made, last.end()});
  EXPECT_EQ(made.ranks[0].cut_event, 3U);  // the first event is MPI_Init
  EXPECT_EQ(made.ranks[1].cut_event, UINT32_MAX);
  EXPECT_EQ(made.ranks[2].cut_event, 2U);
  const Count counted = count(priced(made).schedule);
  EXPECT_EQ(counted.sends, 3U);
  EXPECT_EQ(counted.receives, 3U);
  EXPECT_EQ(made.ranks[0].recorded.compute_ns, 200U);
}

TEST(Script, CallsOfSeveralThreadsAtOnceAreRefused) {
  // A receive from 10 to 60 ns after MPI_Init, and within it a send from 20 to 30 by another thread, which ends first.
  Recorder one(0, 1);
  one.made.signatures.push_back({.call = Call::Send, .comm = 0, .peer = trace::nobody});
  one.made.signatures.push_back({.call = Call::Recv, .comm = 0, .peer = trace::nobody});
  const uint64_t at = one.made.events.back().end_ns;
  one.made.events.push_back({1, 0, at + 20, at + 30});
  one.made.events.push_back({2, 0, at + 10, at + 60});
  const auto script = script_of(std::vector{one.made}, {});
  ASSERT_FALSE(script.ok());
  EXPECT_NE(script.error().message.find("rank 0 calls MPI from several threads at once (event 2, Recv, began before "
                                        "event 1, Send, had ended)"),
            std::string::npos)
      << script.error().message;
}

TEST(Script, OneRankIsMissing) {
  EXPECT_EQ(error_of({Recorder(0, 2).end()}), "rank 0 is one of 2 ranks, and 1 have traces; all of them are needed");
  EXPECT_EQ(error_of({}), "there are no traces to replay");
}

TEST(Script, TypesInOneBlockAreNoLayouts) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  sender.call(0, {.call = Call::Send, .peer = 1, .sends = {{0, 3, type_columns}}});
  const Script made = script({sender.end(), receiver.receive(0, 0, 96).end()});
  EXPECT_EQ(made.layouts.size(), 1U);
  EXPECT_EQ(made.ranks[0].legs[0].part, (Part{.bytes = 96, .count = 3, .type = 0}));
  EXPECT_EQ(made.ranks[1].legs[0].part.type, trace::none);
}

Signature cancel(uint32_t request) { return {.call = Call::Cancel, .requests = {request}}; }

TEST(Script, ALateCancelHasItsMessage) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  receiver.ireceive(0, 0, 100, 0, 3).call(0, cancel(0)).wait(0, {0}, {{0, trace::any, trace::any, 0}});
  const Script made = script({sender.send(0, 1, 100, 3).end(), receiver.end()});
  EXPECT_EQ(made.ranks[1].legs.at(0).part.bytes, 100U);
  EXPECT_NE(made.ranks[1].legs.at(0).tag, dropped);
  EXPECT_TRUE(made.left_out.empty());
  priced(made);
}

TEST(Script, WhatWasCancelledMeetsNobody) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  const std::vector<trace::Match> done{{0, trace::cancelled, trace::any, 0}};
  sender.isend(0, 1, 100, 0, 3).call(0, cancel(0)).wait(0, {0}, done).send(0, 1, 8, 3);
  receiver.ireceive(0, 0, 4, 0, 3).call(0, cancel(0)).wait(0, {0}, done).receive(0, 0, 8, 3);
  receiver.ireceive(0, trace::any, 64, 0, trace::any).wait(0, {0}, done);  // archives have it so
  const Script made = script({sender.end(), receiver.end()});
  EXPECT_EQ(made.ranks[0].legs.at(0).tag, dropped);
  EXPECT_EQ(made.ranks[1].legs.at(0).tag, dropped);
  EXPECT_EQ(made.ranks[1].legs.at(1).part.bytes, 8U);
  EXPECT_TRUE(made.left_out.empty());
  priced(made);
}

TEST(Script, ACancelOfUnknownOutcomeMeetsWhatIsLeft) {
  for (const bool is_sent : {false, true}) {
    Recorder sender(0, 2);
    Recorder receiver(1, 2);
    if (is_sent) sender.send(0, 1, 100, 3);
    receiver.ireceive(0, 0, 100, 0, 3).call(0, cancel(0)).wait(0, {0});
    const Script made = script({sender.end(), receiver.end()});
    EXPECT_EQ(made.ranks[1].legs.at(0).tag != dropped, is_sent);
    EXPECT_EQ(made.left_out.size(), 1U);
    priced(made);
  }
}

TEST(Script, AReceiveOfAnySourceThatNobodyToldCannotBeReplayed) {
  Recorder sender(0, 2);
  Recorder receiver(1, 2);
  EXPECT_EQ(
      error_of({sender.send(0, 1, 24).end(), receiver.receive(0, trace::any, 24).end()}),
      "rank 0, event 1: sends 24 B to rank 1 (tag 0 of communicator 0), which receives of any source: the trace does "
      "not tell whose messages it got, and a replay needs to know");
}

// Collective operations of which a trace has the times only, and the waits for them.
TEST(Script, WhatNobodyToldKeepsItsTime) {
  Recorder one(0, 1);
  one.made.signatures.push_back({.call = Call::Allgather, .form = CallForm::nonblocking, .requests = {0}});
  const auto number = static_cast<uint32_t>(one.made.signatures.size() - 1);
  one.made.events.push_back({number, 0, 1'010, 1'030});
  one.call(100, {.call = Call::Wait, .requests = {0}}, 400);
  const Script made = script({one.end()});
  EXPECT_EQ(made.ranks[0].recorded.fixed_ns, 420U);
  const Note& note =
      made.left_out.at("Allgather on a communicator that the trace does not tell: keeps its recorded time");
  EXPECT_EQ(note.time_ns, 20U);
}

}  // namespace
}  // namespace spinloom::predict
