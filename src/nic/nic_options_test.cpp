// Options of descriptors and entries that decide what is counted and told.
#include "nic/nic_test_support.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

// A put of 16 B whose acknowledgement says that 12 B were taken: all that its counter came to.
CounterValue counted(const Put& like, Fail failure = Fail::ok, Kinds* told = nullptr) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Put put = like;
  put.local = bench.source;
  put.length = 16;
  put.portal = bench.portal;
  put.queue = bench.queue;
  put.counter = CounterId{0};
  bench.good(put);
  const Packet sent = bench.only<Send>().packet;
  bench.out.clear();
  bench.nic.on_packet_sent({}, sent.message, bench.out);
  Packet ack;
  ack.operation = Operation::ack;
  ack.source = sent.target;
  ack.target = sent.source;
  ack.message = sent.message;
  ack.fields.manipulated_bytes = 12;
  ack.fields.fail = static_cast<uint8_t>(failure);
  if (put.ack_request != AckRequest::none) bench.nic.on_packet({}, ack, bench.out);
  if (told != nullptr) *told = bench.kinds();
  const auto posted = bench.actions<PostCounter>();
  return posted.empty() ? CounterValue{} : posted.back().value;
}

TEST(PutOptions, WhatIsCounted) {
  Put put;
  put.ack_request = AckRequest::ack;
  EXPECT_EQ(counted(put), (CounterValue{1, 0}));
  put.ct_send = true;
  EXPECT_EQ(counted(put), (CounterValue{2, 0}));
  put.ct_ack = false;
  EXPECT_EQ(counted(put), (CounterValue{1, 0}));
  put.ct_bytes = true;
  EXPECT_EQ(counted(put), (CounterValue{16, 0}));
  put.ct_ack = true;
  EXPECT_EQ(counted(put), (CounterValue{16 + 12, 0}));
  EXPECT_EQ(counted(put, Fail::dropped), (CounterValue{16, 1}));
}

TEST(PutOptions, SuccessesNeedNotBeTold) {
  Put put;
  put.ack_request = AckRequest::ack;
  put.event_success_disable = true;
  Kinds told;
  counted(put, Fail::ok, &told);
  EXPECT_EQ(told, (Kinds{EventKind::send}));
  counted(put, Fail::dropped, &told);
  EXPECT_EQ(told, (Kinds{EventKind::send, EventKind::ack}));
}

TEST(EntryOptions, OverflowIsCountedWhetherItIsToldOrNot) {
  for (const bool disabled : {false, true}) {
    Bench bench;
    bench.good(CounterAlloc{CounterId{0}});
    bench.append(bench.entry(), ListKind::overflow);
    bench.arrive(1, 16, 0);
    bench.land();
    bench.arrive(2, 8, 0);
    bench.land();
    Entry late = bench.entry();
    late.counter = CounterId{0};
    late.options.ct_overflow = true;
    late.options.ct_bytes = true;
    late.options.event_over_disable = disabled;
    bench.append(late);
    EXPECT_EQ(bench.kinds(), disabled ? Kinds{} : (Kinds{EventKind::put_overflow, EventKind::put_overflow}));
    EXPECT_EQ(bench.actions<PostCounter>().back().value, (CounterValue{24, 0}));
    EXPECT_EQ(bench.nic.state().unexpected_headers, 0u);
    bench.arrive(3, 16, 0);  // no overflow: ct_comm would count it
    bench.land();
    EXPECT_TRUE(bench.actions<PostCounter>().empty());
  }
}

TEST(EntryOptions, AnOverflowEntryWithoutHeadersForgetsWhatLanded) {
  Bench bench;
  Entry holder = bench.entry();
  holder.options.unexpected_hdr_disable = true;
  holder.options.use_once = true;
  bench.append(holder, ListKind::overflow);
  bench.arrive(1, 16, 0);
  const auto events = bench.land();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, EventKind::put);
  EXPECT_TRUE(events[0].in_overflow);
  EXPECT_EQ(events[1].kind, EventKind::auto_unlink);
  EXPECT_EQ(events[2].kind, EventKind::auto_free);
  EXPECT_EQ(bench.nic.state().unexpected_headers, 0u);
  bench.append(bench.entry());
  EXPECT_TRUE(bench.kinds().empty());
}

}  // namespace
}  // namespace spinloom::nic
