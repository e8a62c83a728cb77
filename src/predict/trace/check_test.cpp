// Programs of a few calls, written by hand: which messages match, and what is found.
#include "predict/trace/check.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "memory/layout/blob.hpp"
#include "predict/trace/sequence.hpp"
#include "predict/trace/views.hpp"

namespace spinloom::trace {
namespace {

constexpr uint32_t ints = 0;
constexpr uint32_t floats = 1;
constexpr uint32_t column = 2;  // 4 ints, 64 bytes apart

TypeEntry column_type() {
  const auto type = layout::vector(4, 1, 16, layout::primitive("int32_t").value());
  const auto blob = layout::Blob::build(type.value());
  const auto bytes = blob->bytes();
  return {"column", 16, blob->extent(), {bytes.begin(), bytes.end()}, Sequence::basic("MPI_INT", 4).repeated(4).hash()};
}

class Rank {
 public:
  Rank(uint32_t rank, uint32_t ranks) {
    trace.rank = rank;
    trace.ranks = ranks;
    trace.has_ended = true;
    trace.types = {{"MPI_INT", 4, 4, {}, Sequence::basic("MPI_INT", 4).hash()},
                   {"MPI_FLOAT", 4, 4, {}, Sequence::basic("MPI_FLOAT", 4).hash()},
                   column_type()};
    CommEntry world;
    world.rank = rank;
    for (uint32_t i = 0; i < ranks; ++i) world.world_ranks.push_back(i);
    trace.comms = {world};
  }

  Rank& add(Signature signature) {
    if (signature.comm == none) signature.comm = 0;
    const uint64_t begin = 10 * trace.events.size();
    trace.events.push_back({static_cast<uint32_t>(trace.signatures.size()), 0, begin, begin + 5});
    trace.signatures.push_back(std::move(signature));
    return *this;
  }
  Rank& send(int32_t peer, int32_t tag, Block block, uint32_t slot = none, Call call = Call::Send) {
    Signature one;
    one.call = call;
    one.peer = peer;
    one.tag = tag;
    one.sends = {block};
    return put(one, slot);
  }
  Rank& receive(int32_t peer, int32_t tag, Block block, uint32_t slot = none, std::vector<Match> matches = {}) {
    Signature one;
    one.call = Call::Recv;
    one.peer = peer;
    one.tag = tag;
    one.receives = {block};
    one.matches = std::move(matches);
    return put(one, slot);
  }
  Rank& wait(std::vector<uint32_t> slots, std::vector<Match> matches = {}) {
    Signature one;
    one.call = Call::Waitall;
    one.requests = std::move(slots);
    one.matches = std::move(matches);
    return add(one);
  }

  RankTrace trace;

 private:
  Rank& put(Signature& one, uint32_t slot) {
    if (slot != none) {
      one.form = CallForm::nonblocking;
      one.requests = {slot};
    }
    return add(one);
  }
};

struct Told {
  std::vector<Finding> findings;
  Matching matching;
};
Told told(const Rank& first, const Rank& second) {
  const RankTrace* const traces[] = {&first.trace, &second.trace};
  Told all;
  all.matching = match(traces);
  all.findings = check(traces, all.matching);
  return all;
}

TEST(Match, MessagesOfOneTagMeetInTheirOrder) {
  Rank a(0, 2);
  Rank b(1, 2);
  for (int i = 1; i <= 3; ++i) a.send(1, i == 2 ? 8 : 7, {64, i, ints});
  b.receive(0, 8, {64, 2, ints}).receive(0, 7, {64, 1, ints}).receive(0, 7, {64, 3, ints});
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 3U);
  EXPECT_EQ(all.matching.pairs[0].receive.event, 1U);
  EXPECT_EQ(all.matching.pairs[1].receive.event, 0U);
  EXPECT_EQ(all.matching.pairs[2].receive.event, 2U);
}

// A receive of any tag was posted first and got the first message, though it completed last.
TEST(Match, ReceivesOfAnythingAreThoseOfWhatTheyMet) {
  Rank a(0, 2);
  Rank b(1, 2);
  a.send(1, 5, {64, 1, ints}).send(1, 5, {64, 2, ints});
  b.receive(any, any, {64, 1, ints}, 0).receive(0, 5, {96, 2, ints}, 1);
  b.wait({1}).wait({0}, {{0, 0, 5, 4}});
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 2U);
  EXPECT_EQ(all.matching.pairs[0].receive.event, 0U);
  EXPECT_EQ(all.matching.pairs[0].receive.done, 3U);
  EXPECT_EQ(all.matching.pairs[1].receive.done, 2U);
}

TEST(Match, PersistentRequestsSendAtEachStart) {
  Rank a(0, 2);
  Rank b(1, 2);
  Signature made;
  made.call = Call::Send;
  made.form = CallForm::persistent;
  made.peer = 1;
  made.tag = 4;
  made.sends = {{64, 1, ints}};
  made.requests = {0};
  Signature start;
  start.call = Call::Start;
  start.requests = {0};
  a.add(made).add(start).wait({0}).add(start).wait({0});
  b.receive(0, 4, {64, 1, ints}).receive(0, 4, {64, 1, ints});
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 2U);
  EXPECT_EQ(all.matching.pairs[1].send.event, 3U);
  EXPECT_EQ(all.matching.pairs[1].send.signature, 0U);
}

TEST(Match, AProbedMessageIsTakenWhenItIsProbed) {
  Rank a(0, 2);
  Rank b(1, 2);
  a.send(1, 4, {64, 1, ints}).send(1, 4, {64, 2, ints});
  Signature probe;
  probe.call = Call::Mprobe;
  probe.matches = {{none, 0, 4, 4}};
  Signature taken;
  taken.call = Call::Mrecv;
  taken.peer = 0;
  taken.tag = 4;
  taken.receives = {{64, 1, ints}};
  b.add(probe).receive(0, 4, {64, 2, ints}).add(taken);
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 2U);
  EXPECT_EQ(all.matching.pairs[0].receive.event, 2U);
}

Signature cancel(uint32_t slot) {
  Signature one;
  one.call = Call::Cancel;
  one.requests = {slot};
  return one;
}

TEST(Match, WhatWasCancelledTakesNoPart) {
  Rank a(0, 2);
  Rank b(1, 2);
  // The first receive was cancelled in time, so the second has the message; the third was too late and has the next.
  a.send(1, 3, {64, 1, ints}).send(1, 3, {64, 2, ints});
  b.receive(0, 3, {64, 9, ints}, 0).add(cancel(0)).wait({0}, {{0, cancelled, any, 0}});
  b.receive(0, 3, {64, 1, ints}).receive(0, 3, {64, 2, ints}, 0).add(cancel(0)).wait({0}, {{0, any, any, 0}});
  // Without a Cancel, as archives have it; of a wildcard; and a send.
  b.receive(any, any, {64, 9, ints}, 0).wait({0}, {{0, cancelled, any, 0}});
  a.send(1, 4, {64, 1, ints}, 0).add(cancel(0)).wait({0}, {{0, cancelled, any, 0}});
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 2U);
  EXPECT_EQ(all.matching.pairs[0].receive.event, 3U);
  EXPECT_EQ(all.matching.pairs[1].receive.event, 4U);
  EXPECT_EQ(all.matching.pairs[1].receive.done, 6U);
}

// If the trace does not give the outcome of a cancel, the receive has a message if one is left for it.
TEST(Match, ACancelOfUnknownOutcomeMeetsWhatIsLeft) {
  Rank b(1, 2);
  b.receive(0, 3, {64, 1, ints}, 0).add(cancel(0)).wait({0});
  Signature freed = cancel(1);
  freed.call = Call::Request_free;
  b.receive(0, 3, {64, 1, ints}, 1).add(cancel(1)).add(freed);
  EXPECT_TRUE(told(Rank(0, 2), b).findings.empty());
  for (int messages = 1; messages <= 2; ++messages) {
    Rank a(0, 2);
    for (int i = 0; i < messages; ++i) a.send(1, 3, {64, 1, ints});
    const Told all = told(a, b);
    EXPECT_TRUE(all.findings.empty());
    EXPECT_EQ(all.matching.pairs.size(), static_cast<size_t>(messages));
  }
  Rank a(0, 2);
  for (int i = 0; i < 3; ++i) a.send(1, 3, {64, 1, ints});
  const Told all = told(a, b);
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].trouble, Trouble::not_received);
  // A send that may have been cancelled is not missed.
  Rank c(0, 2);
  c.send(1, 3, {64, 1, ints}, 0).add(cancel(0)).wait({0});
  EXPECT_TRUE(told(c, Rank(1, 2)).findings.empty());
}

TEST(Match, CancelledPersistentReceivesStartAgain) {
  Rank a(0, 2);
  Rank b(1, 2);
  Signature made;
  made.call = Call::Recv;
  made.form = CallForm::persistent;
  made.peer = 0;
  made.tag = 4;
  made.receives = {{64, 1, ints}};
  made.requests = {0};
  Signature start;
  start.call = Call::Start;
  start.requests = {0};
  b.add(made).add(start).add(cancel(0)).wait({0}, {{0, cancelled, any, 0}}).add(start).wait({0});
  a.send(1, 4, {64, 1, ints});
  const Told all = told(a, b);
  EXPECT_TRUE(all.findings.empty());
  ASSERT_EQ(all.matching.pairs.size(), 1U);
  EXPECT_EQ(all.matching.pairs[0].receive.event, 4U);
}

// Receives of which nobody told what they got: one that has ended got a message.
TEST(Match, AReceiveOfUnknownSourceHasWhatIsLeft) {
  Rank a(0, 2);
  Rank b(1, 2);
  b.receive(any, 3, {64, 1, ints}).receive(any, any, {64, 1, ints}, 0).wait({0});
  EXPECT_TRUE(told(a, b).findings.empty());
  a.send(1, 3, {64, 1, ints}).send(1, 7, {64, 1, ints});
  EXPECT_TRUE(told(a, b).findings.empty());
  a.send(1, 7, {64, 1, ints});
  const Told all = told(a, b);
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].trouble, Trouble::not_received);
  EXPECT_EQ(all.findings[0].doubt, Doubt::untold);
}

TEST(Check, ComparesBytesAndBasicTypes) {
  Rank a(0, 2);
  Rank b(1, 2);
  // 4 ints fit a column of 4 ints; 4 floats do not; 5 ints have no room in 4, and 3 leave some.
  a.send(1, 0, {64, 4, ints}).send(1, 1, {64, 4, floats}).send(1, 2, {64, 5, ints}).send(1, 3, {64, 3, ints});
  for (int tag = 0; tag < 4; ++tag) b.receive(0, tag, {64, 1, column});
  const Told all = told(a, b);
  ASSERT_EQ(all.findings.size(), 3U);
  EXPECT_EQ(all.findings[0].trouble, Trouble::truncated);
  EXPECT_EQ(all.findings[0].bytes, 4);
  EXPECT_EQ(all.findings[1].trouble, Trouble::types_differ);
  EXPECT_EQ(all.findings[1].tag, 1);
  EXPECT_EQ(all.findings[2].trouble, Trouble::room_left);
  EXPECT_EQ(all.findings[2].bytes, 4);
  EXPECT_EQ(all.findings[2].first_ns, 30U);
}

TEST(Check, SaysWhatMetNobody) {
  Rank a(0, 2);
  Rank b(1, 2);
  a.send(1, 0, {64, 4, ints}, 0).send(1, 0, {96, 4, ints}, 1).send(nobody, 0, {64, 4, ints});
  b.receive(any, 9, {64, 1, ints}, 0);
  const Told all = told(a, b);
  ASSERT_EQ(all.findings.size(), 2U);
  EXPECT_EQ(all.findings[0].trouble, Trouble::not_received);
  EXPECT_EQ(all.findings[0].times, 2U);
  EXPECT_EQ(all.findings[0].doubt, Doubt::no);
  EXPECT_EQ(all.findings[1].trouble, Trouble::not_sent);
  EXPECT_EQ(all.findings[1].from, none);
  b.trace.has_ended = false;
  EXPECT_EQ(told(a, b).findings[0].doubt, Doubt::short_trace);
  // Without the trace of rank 1 nobody knows.
  const RankTrace* const alone[] = {&a.trace};
  EXPECT_TRUE(check(alone, match(alone)).empty());
}

// Columns at 0 and at 4: ints at 0, 64, 128, 192 and at 4, 68, ...: nothing twice. At 0 and at 64: 64, 128 and 192 are
// in both, 12 bytes.
TEST(Check, CountsBytesThatAreSentTwice) {
  Rank a(0, 2);
  Rank b(1, 2);
  a.send(1, 0, {1'000, 1, column}, 0).send(1, 1, {1'004, 1, column}, 1).wait({0, 1});
  EXPECT_TRUE(told(a, Rank(1, 2).receive(0, 0, {64, 4, ints}).receive(0, 1, {64, 4, ints})).findings.empty());
  a.send(1, 0, {1'000, 1, column}, 0).send(1, 1, {1'064, 1, column}, 1).wait({0, 1});
  // One after the other they are two exchanges.
  a.send(1, 0, {1'000, 1, column}, 0).wait({0}).send(1, 1, {1'000, 1, column}, 0).wait({0});
  for (int i = 0; i < 3; ++i) b.receive(0, 0, {64, 4, ints}).receive(0, 1, {64, 4, ints});
  const Told all = told(a, b);
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].trouble, Trouble::sent_twice);
  EXPECT_EQ(all.findings[0].bytes, 12);
  EXPECT_EQ(all.findings[0].times, 1U);
}

TEST(Check, SaysNothingOfMemoryThatTheTraceDoesNotTell) {
  Rank a(0, 2);
  Rank b(1, 2);
  a.send(1, 0, {nowhere, 100, ints}, 0).send(1, 1, {nowhere, 7, ints}, 1).wait({0, 1});
  b.receive(0, 0, {nowhere, 100, ints}).receive(0, 1, {nowhere, 7, ints});
  EXPECT_TRUE(told(a, b).findings.empty());
  EXPECT_FALSE(tells_buffers(a.trace));
  EXPECT_TRUE(tells_buffers(Rank(0, 2).send(1, 0, {0, 1, ints}).trace));
  // Nor of sends whose requests were freed: nobody knows when they ended.
  Signature freed = cancel(0);
  freed.call = Call::Request_free;
  Rank c(0, 2);
  c.send(1, 0, {64, 1, ints}, 0).add(freed).send(1, 0, {64, 1, ints}, 0).wait({0});
  EXPECT_TRUE(told(c, Rank(1, 2).receive(0, 0, {64, 1, ints}).receive(0, 0, {64, 1, ints})).findings.empty());
}

TEST(Views, AddUpMessagesAndTypes) {
  Rank a(0, 3);
  a.send(1, 0, {64, 2, column}).send(1, 0, {64, 3, ints}).send(2, 0, {64, 1, ints});
  Signature spread;
  spread.call = Call::Alltoall;
  spread.sends = {{64, 5, ints}};
  spread.receives = {{96, 5, ints}};
  a.add(spread);
  const RankTrace* const traces[] = {&a.trace};
  const auto lanes = matrix(traces);
  ASSERT_EQ(lanes.size(), 3U);  // a message to itself counts, too
  EXPECT_EQ(lanes[1].messages, 3U);
  EXPECT_EQ(lanes[1].bytes, 2 * 16 + 3 * 4 + 5 * 4);
  EXPECT_EQ(lanes[2].bytes, 4 + 20);
  const auto uses = types(traces);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].type.name, "MPI_INT");
  EXPECT_EQ(uses[0].bytes, (3 + 1 + 5 + 5) * 4);
  EXPECT_EQ(uses[0].sends, 3U);
  EXPECT_EQ(uses[0].receives, 1U);
  EXPECT_EQ(uses[0].count_min, 1);
  EXPECT_EQ(uses[0].count_max, 5);
  EXPECT_TRUE(uses[0].is_contiguous);
  EXPECT_EQ(uses[1].blocks, 4);
  EXPECT_FALSE(uses[1].is_contiguous);
}

}  // namespace
}  // namespace spinloom::trace
