// Options of descriptors and entries that decide which counts and events come.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

// Sends a put of 16 B whose acknowledgement says that 12 B were taken. Returns the final value of its counter.
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
  bench.nic.on_packet_sent(sent.message, bench.out);
  if (put.ack_request != AckRequest::none) bench.nic.on_packet(ack_for(sent, 12, failure), bench.out);
  if (told != nullptr) *told = bench.kinds();
  const auto posted = bench.actions<PostCounter>();
  return posted.empty() ? CounterValue{} : posted.back().value;
}

// Rules: P4F-6.13, P4F-6.14, P4F-6.16, P4F-6.17, P4F-6.19.
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

// Rules: P4F-6.21.
TEST(PutOptions, SuccessesNeedNotBeTold) {
  Put put;
  put.ack_request = AckRequest::ack;
  put.event_success_disable = true;
  Kinds told;
  counted(put, Fail::ok, &told);
  EXPECT_EQ(told, Kinds{});
  counted(put, Fail::dropped, &told);
  EXPECT_EQ(told, (Kinds{EventKind::ack}));
}

// Rules: P4F-7.48, P4F-7.53, P4F-7.54.
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

// Rules: P4F-7.41.
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

// Two messages of 16 and 8 B wait. Checks the events, counts and effects of each kind of search.
// Rules: P4F-9.5, P4F-9.6, P4F-9.8, P4F-9.9, P4F-9.10, P4F-9.11, P4F-9.12, P4F-9.13, P4F-9.14, P4F-9.15, P4F-9.16.
TEST(Search, FindsWhatWaits) {
  struct Row {
    const char* what;
    uint64_t bits;
    bool remove, use_once;
    Kinds told;
    CounterValue counted;
    uint32_t left;
  };
  const EventKind found = EventKind::search;
  const EventKind taken = EventKind::put_overflow;
  for (const Row& row :
       {Row{"the first", 5, false, true, {found}, {1, 0}, 2}, Row{"all", 5, false, false, {found, found}, {2, 1}, 2},
        Row{"takes the first", 5, true, true, {taken}, {1, 0}, 1},
        Row{"takes all", 5, true, false, {taken, taken}, {2, 1}, 0}, Row{"nothing", 6, false, true, {found}, {0, 1}, 2},
        Row{"takes nothing", 6, true, false, {found}, {0, 1}, 2}}) {
    Bench bench;
    bench.good(CounterAlloc{CounterId{0}});
    const EntryId holder = bench.append(bench.entry(), ListKind::overflow);
    bench.arrive(1, 16, 0);
    bench.land();
    bench.arrive(2, 8, 0);
    bench.land();
    Entry like = bench.entry(row.bits);
    like.options.use_once = row.use_once;
    like.options.ct_overflow = true;
    like.counter = CounterId{0};
    const uint64_t count = bench.good(Search{bench.portal, like, row.remove});
    EXPECT_EQ(bench.kinds(), row.told) << row.what;
    EXPECT_EQ(count, row.bits == 6 ? 0 : row.told.size()) << row.what;
    EXPECT_EQ(bench.actions<PostCounter>().back().value, row.counted) << row.what;
    EXPECT_EQ(bench.nic.state().unexpected_headers, row.left) << row.what;
    const Event first = bench.event(row.told[0]);
    EXPECT_EQ(first.fail, row.bits == 6 ? Fail::no_match : Fail::ok) << row.what;
    EXPECT_EQ(first.manipulated_bytes, row.bits == 6 ? 0u : 16u) << row.what;
    EXPECT_EQ(first.user_ptr, 100 + row.bits) << row.what;
    EXPECT_EQ(bench.good(Unlink{holder}),
              static_cast<uint64_t>(row.left > 0 ? UnlinkResult::in_use : UnlinkResult::done));
  }
}

TEST(Search, ReportsWhatItRemovesWhenTheDataIsThere) {
  Bench bench;
  bench.append(bench.entry(), ListKind::overflow);
  bench.arrive(1, 32, 0);
  bench.land();
  EXPECT_EQ(bench.good(Search{bench.portal, bench.entry(), true}), 1u);
  EXPECT_TRUE(bench.actions<PostEvent>().empty());
  bench.arrive(1, 32, 16);
  const std::vector<Event> events = bench.land();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].kind, EventKind::put_overflow);
  EXPECT_EQ(events[1].manipulated_bytes, 32u);
}

// Rules: P4F-10.20.
TEST(Counter, CancelForgetsWhatWaits) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(CounterAlloc{CounterId{1}});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 1});
  EXPECT_EQ(bench.nic.state().triggered_waiting, 1u);
  bench.good(CounterCancel{CounterId{0}});
  EXPECT_EQ(bench.nic.state().triggered_waiting, 0u);
  bench.good(CounterInc{CounterId{0}, {1, 0}});
  EXPECT_TRUE(bench.actions<Continue>().empty());
  EXPECT_NE(bench.error(CounterCancel{CounterId{7}}, Code::invalid), "");
}

// Rules: P4F-3.29, P4F-3.30, P4F-3.32, P4F-3.34, P4F-3.35, P4F-7.23.
TEST(Refusals, AreCountedByReasonForTheirPartOfThePortalTable) {
  Bench bench;
  bench.good(TableSetup{0, 1000});
  Entry mine = bench.entry(5);
  mine.user = 1000;
  bench.append(mine);
  Entry gets = bench.entry(6);
  gets.options.op_put = false;
  gets.options.op_get = true;
  bench.append(gets);
  const auto put = [&](uint64_t message, uint64_t match_bits, uint32_t user, uint32_t portal = 0) {
    Packet packet = bench.packet(message, 8, 0, match_bits);
    packet.fields.user = user;
    packet.fields.portal_index = portal;
    bench.arrive(packet);
  };
  put(1, 5, 1000);
  EXPECT_EQ(bench.land().at(0).user, 1000u);
  put(2, 5, 1001);
  put(3, 6, 1000);
  put(4, 7, 1000);
  put(5, 5, 1000, 63);   // entry 63 is not allocated
  put(6, 5, 1000, limits::portal_table_max + 0);  // no entry of table 0
  put(7, 5, 1000, limits::portal_table_max + 3);
  put(8, 5, 1000, 64);
  EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::permission}), 1u);
  EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::operation}), 1u);
  EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::dropped}), 3u);
  EXPECT_EQ(bench.good(RefusalsRead{1, Refusal::dropped}), 1u);
  EXPECT_EQ(bench.good(RefusalsRead{3, Refusal::dropped}), 1u);
  bench.error(RefusalsRead{4, Refusal::dropped}, Code::invalid);
  bench.error(TableSetup{4}, Code::invalid);
  bench.good(TableSetup{0, 1000});
  EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::dropped}), 0u);
  bench.expect_idle();
}

// Rules: P4F-3.42.
TEST(Refusals, MessagesToOneselfDoNotMeetTheNextInterface) {
  for (const uint64_t length : {0, 8, 40}) {
    Bench bench;
    bench.good(CounterAlloc{CounterId{0}});
    bench.good(TableSetup{0, 1000});
    bench.append(bench.entry(5));
    const auto sent = [&](uint32_t portal) {
      Put put;
      put.local = length == 0 ? nullptr : bench.source;
      put.length = length;
      put.target = Rank{1};
      put.portal = PortalIndex{portal};
      put.match_bits = 5;
      put.ack_request = AckRequest::ct_ack;
      put.counter = CounterId{0};
      bench.good(put);
      const auto sends = bench.actions<Send>();
      std::vector<Packet> packets;
      for (const Send& send : sends) packets.push_back(send.packet);
      bench.out.clear();
      bench.nic.on_packet_sent(packets.front().message, bench.out);
      return packets;
    };
    const std::vector<Packet> older = sent(0);
    const std::vector<Packet> others = sent(64);  // the interface of this entry stays open
    bench.good(TableSetup{0, 1000});
    const std::vector<Packet> newer = sent(0);
    const auto arrive = [&](const std::vector<Packet>& packets) {
      uint64_t landed = 0;
      for (const Packet& packet : packets) {
        bench.arrive(packet);
        const auto acks = bench.actions<Send>();
        landed += bench.land().size();
        for (const Send& ack : acks) bench.arrive(ack.packet);
      }
      return landed;
    };
    EXPECT_EQ(arrive(older), 0u) << length;
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1})) << "its acknowledgement says that it was dropped";
    EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::dropped}), 0u) << "the next interface has not seen it";
    EXPECT_EQ(arrive(others), 0u);
    EXPECT_EQ(bench.good(RefusalsRead{1, Refusal::dropped}), 1u) << "that portal table entry is not allocated";
    const uint64_t events = arrive(newer);
    EXPECT_EQ(events, length == 0 ? 0u : 1u) << length << ": an event without bytes comes at once";
    EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::dropped}), 0u);
  }
}

// Rules: P4F-3.33, P4F-7.10, P4F-7.11.
TEST(Refusals, AnInterfaceHoldsAsManyEntriesAndHeadersAsItAskedFor) {
  Bench bench;
  TableSetup setup{0, 0};
  setup.entries_max = 3;
  setup.list_max = 2;
  setup.headers_max = 1;
  bench.good(setup);
  const EntryId first = bench.append(bench.entry(1));
  bench.append(bench.entry(2));
  const auto append = [&](uint32_t id, ListKind list) {
    return Append{EntryId{id}, PortalIndex{0}, list, bench.entry(3)};
  };
  bench.error(append(9, ListKind::priority), Code::exhausted);  // a list of two
  bench.good(append(9, ListKind::overflow));
  bench.error(append(10, ListKind::overflow), Code::exhausted);  // three entries
  bench.good(Unlink{first});
  bench.good(append(10, ListKind::overflow));
  bench.arrive(1, 0, 0, 3);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok);
  bench.arrive(2, 0, 0, 3);
  EXPECT_TRUE(bench.kinds().empty()) << "there is place for one header";
  EXPECT_EQ(bench.good(RefusalsRead{0, Refusal::dropped}), 1u);
}

}  // namespace
}  // namespace spinloom::nic
