// Matching as Portals 4 defines it: which entry takes a message, where the message lands, which events come.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

// Rules: P4F-8.5, P4F-8.8.
TEST(Match, BitsIgnoreBitsAndRank) {
  struct Row {
    uint64_t entry_bits, ignore_bits;
    Rank match_rank;
    uint64_t message_bits;
    bool matched;
  };
  const std::vector<Row> rows = {
      {5, 0, Rank::any(), 5, true},     {5, 0, Rank::any(), 4, false},
      {5, 1, Rank::any(), 4, true},     {5, 2, Rank::any(), 4, false},
      {0, ~0ULL, Rank::any(), 9, true}, {5, 0, Rank{0}, 5, true},
      {5, 0, Rank{3}, 5, false},        {1ULL << 63, 0, Rank::any(), 1ULL << 63, true},
  };
  for (const Row& row : rows) {
    Bench bench;
    Entry entry = bench.entry(row.entry_bits);
    entry.ignore_bits = row.ignore_bits;
    entry.match_rank = row.match_rank;
    bench.append(entry);
    bench.arrive(1, 16, 0, row.message_bits);
    EXPECT_EQ(bench.actions<DmaWrite>().size(), row.matched ? 1u : 0u)
        << "entry bits " << row.entry_bits << ", message bits " << row.message_bits;
    EXPECT_EQ(bench.nic.state().dropped_messages, row.matched ? 0u : 1u);
    bench.land();
    bench.expect_idle();
  }
}

// Rules: P4F-8.3.
TEST(Match, PriorityListInOrderThenOverflow) {
  Bench bench;
  Entry overflow = bench.entry();
  overflow.user_ptr = 9;
  bench.append(overflow, ListKind::overflow);
  bench.append(bench.entry(4));
  const EntryId first = bench.append(bench.entry());
  bench.append(bench.entry());
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.out.work.entries_searched, 2u);  // an entry with other bits, then the first with these
  EXPECT_EQ(bench.land().at(0).entry, first);
  bench.arrive(2, 16, 0, 77);
  EXPECT_EQ(bench.out.work.entries_searched, 4u);  // three priority entries and the overflow entry, none matches
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
}

// Rules: P4F-18.5.
TEST(Match, LaterPacketsAreFoundByTheirMessage) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 40, 0);
  EXPECT_FALSE(bench.out.work.matched_by_message);
  const auto first = bench.only<DmaWrite>();
  EXPECT_EQ(first.host, bench.memory.data());
  EXPECT_FALSE(first.her.exists());
  bench.arrive(1, 40, 16);
  EXPECT_TRUE(bench.out.work.matched_by_message);
  EXPECT_EQ(bench.out.work.entries_searched, 0u);
  const auto second = bench.only<DmaWrite>();
  bench.arrive(1, 40, 32);
  const auto third = bench.only<DmaWrite>();
  EXPECT_EQ(third.host, bench.memory.data() + 32);
  EXPECT_EQ(third.source.length, 8u);
  // The event waits for the last DMA, whatever the order.
  bench.dma_done(third.dma);
  EXPECT_TRUE(bench.kinds().empty());
  bench.dma_done(first.dma);
  EXPECT_TRUE(bench.kinds().empty());
  bench.dma_done(second.dma);
  const Event event = bench.event(EventKind::put);
  EXPECT_EQ(event.initiator, Rank{0});
  EXPECT_EQ(event.requested_bytes, 40u);
  EXPECT_EQ(event.manipulated_bytes, 40u);
  EXPECT_EQ(event.hdr_data, 1001u);
  EXPECT_EQ(event.user_ptr, 105u);
  EXPECT_EQ(event.start, reinterpret_cast<uint64_t>(bench.memory.data()));
  EXPECT_FALSE(event.in_overflow);
  bench.expect_idle();
}

// Rules: P4F-7.26, P4F-7.77, P4F-7.78.
TEST(Match, UseOnceLeavesItsListAtMatchTimeAndTellsAfterThePut) {
  Bench bench;
  Entry entry = bench.entry();
  entry.options.use_once = true;
  const EntryId first = bench.append(entry);
  const EntryId second = bench.append(entry);
  bench.arrive(1, 32, 0);  // the message is not complete yet
  const DmaId one = bench.only<DmaWrite>().dma;
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.out.work.entries_searched, 1u);
  bench.dma_done(bench.only<DmaWrite>().dma);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink}));
  EXPECT_EQ(bench.event(EventKind::auto_unlink).entry, second);
  bench.arrive(1, 32, 16);
  const DmaId two = bench.only<DmaWrite>().dma;
  bench.dma_done(one);
  bench.dma_done(two);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink}));
  EXPECT_EQ(bench.event(EventKind::put).entry, first);
  bench.arrive(3, 16, 0);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
  EXPECT_NE(bench.error(Unlink{first}, Code::invalid), "");
  bench.good(Append{first, bench.portal, ListKind::priority, entry});  // the id is free again
}

// Rules: P4F-7.33, P4F-7.35, P4F-7.36, P4F-8.12, P4F-13.12.
TEST(Match, TruncationAndNoTruncate) {
  Bench bench;
  Entry small = bench.entry();
  small.length = 20;
  small.options.no_truncate = true;
  bench.append(small);
  small.options.no_truncate = false;
  const EntryId truncating = bench.append(small);
  bench.remote_offset = 8;
  bench.arrive(1, 32, 0);
  EXPECT_EQ(bench.out.work.entries_searched, 2u);
  const auto header = bench.only<DmaWrite>();
  EXPECT_EQ(header.host, bench.memory.data() + 8);
  EXPECT_EQ(header.source.length, 12u);  // 20 - 8
  bench.arrive(1, 32, 16);
  EXPECT_TRUE(bench.actions<DmaWrite>().empty());  // the bytes lie beyond the end
  bench.dma_done(header.dma);
  const Event event = bench.event(EventKind::put);
  EXPECT_EQ(event.entry, truncating);
  EXPECT_EQ(event.requested_bytes, 32u);
  EXPECT_EQ(event.manipulated_bytes, 12u);
  EXPECT_EQ(event.remote_offset, 8u);

  bench.remote_offset = UINT64_MAX;  // far outside: nothing lands, the message still completes
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 0u);
  bench.expect_idle();
}

// Rules: P4F-7.28, P4F-7.30, P4F-13.12, P4F-13.14.
TEST(Match, ManageLocalAdvancesAndMinFreeUnlinks) {
  Bench bench;
  Entry slab = bench.entry();
  slab.length = 48;
  slab.options.manage_local = true;
  slab.min_free = 20;
  const EntryId id = bench.append(slab);
  bench.remote_offset = 999;  // ignored
  bench.arrive(1, 10, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data());
  EXPECT_EQ(bench.land().size(), 1u);
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data() + 10);
  EXPECT_EQ(bench.land().size(), 1u);  // 22 B free, min_free 20: still there
  bench.arrive(3, 16, 0);
  const auto events = bench.land();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].remote_offset, 999u);
  EXPECT_EQ(events[0].start, reinterpret_cast<uint64_t>(bench.memory.data()) + 26);
  EXPECT_EQ(events[1].kind, EventKind::auto_unlink);
  EXPECT_EQ(events[1].entry, id);
}

// Rules: P4F-7.78.
TEST(Match, AutoUnlinkComesAfterTheEventsOfAllMessagesInTheEntry) {
  Bench bench;
  Entry slab = bench.entry();
  slab.length = 48;
  slab.options.manage_local = true;
  slab.min_free = 20;
  const EntryId id = bench.append(slab);
  bench.arrive(1, 16, 0);
  const DmaId first = bench.only<DmaWrite>().dma;
  bench.arrive(2, 16, 0);  // 16 B free: it leaves its list
  const DmaId second = bench.only<DmaWrite>().dma;
  bench.dma_done(second);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put}));
  EXPECT_NE(bench.error(Append{id, bench.portal, ListKind::priority, slab}, Code::invalid), "") << "it is known still";
  bench.dma_done(first);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink}));
  bench.good(Append{id, bench.portal, ListKind::priority, slab});  // the id may be reused after the event
}

// Rules: P4F-7.34.
TEST(Match, NoTruncateLooksAtTheOffsetThatWillBeUsed) {
  Bench bench;
  Entry slab = bench.entry();
  slab.length = 40;
  slab.options.manage_local = true;
  slab.options.no_truncate = true;
  bench.append(slab);
  bench.remote_offset = 999;  // far outside, but ignored
  for (uint64_t message = 1; message <= 2; ++message) {
    bench.arrive(message, 16, 0);
    EXPECT_EQ(bench.land().size(), 1u);
  }
  bench.arrive(3, 9, 0);  // 8 B are left
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
  bench.arrive(4, 8, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data() + 32);
  EXPECT_EQ(bench.land().size(), 1u);
}

// Rules: P4F-7.58, P4F-7.59, P4F-7.63, P4F-7.79, P4F-7.80, P4F-8.14.
TEST(Match, UnexpectedHeaderIsGivenToALaterEntry) {
  Bench bench;
  Entry holder = bench.entry(0);
  holder.ignore_bits = ~0ULL;
  holder.user_ptr = 1;
  holder.options.use_once = true;
  const EntryId overflow = bench.append(holder, ListKind::overflow);
  bench.arrive(1, 16, 0, 42);
  const auto events = bench.land();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::put);
  EXPECT_TRUE(events[0].in_overflow);
  EXPECT_EQ(events[0].user_ptr, 1u);
  EXPECT_EQ(events[1].kind, EventKind::auto_unlink);
  EXPECT_EQ(bench.nic.state().unexpected_headers, 1u);
  EXPECT_NE(bench.error(Unlink{overflow}, Code::invalid), "");

  Entry late = bench.entry(42);
  late.options.use_once = true;
  const EntryId claimer = bench.append(late);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put_overflow, EventKind::auto_free, EventKind::auto_unlink}));
  const Event claimed = bench.event(EventKind::put_overflow);
  EXPECT_EQ(claimed.entry, claimer);
  EXPECT_EQ(claimed.user_ptr, 142u);
  EXPECT_EQ(claimed.match_bits, 42u);
  EXPECT_EQ(claimed.hdr_data, 1001u);
  EXPECT_EQ(claimed.manipulated_bytes, 16u);
  EXPECT_EQ(claimed.start, reinterpret_cast<uint64_t>(bench.memory.data()));
  EXPECT_EQ(bench.event(EventKind::auto_free).entry, overflow);
  EXPECT_EQ(bench.nic.state().unexpected_headers, 0u);
  bench.arrive(2, 16, 0, 42);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);  // the use-once claimer was never linked
}

// Rules: P4F-7.60.
TEST(Match, HeaderClaimedBeforeItsDataHasLanded) {
  Bench bench;
  bench.append(bench.entry(), ListKind::overflow);
  bench.arrive(1, 32, 0);
  const DmaId first = bench.only<DmaWrite>().dma;
  Entry late = bench.entry();
  late.options.use_once = true;
  const EntryId claimer = bench.append(late);
  EXPECT_TRUE(bench.kinds().empty());
  EXPECT_NE(bench.error(Append{claimer, bench.portal, ListKind::priority, late}, Code::invalid), "");
  bench.arrive(1, 32, 16);
  const DmaId second = bench.only<DmaWrite>().dma;
  bench.dma_done(first);
  bench.dma_done(second);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::put_overflow, EventKind::auto_unlink}));
  EXPECT_EQ(bench.event(EventKind::put_overflow).entry, claimer);
  bench.good(Append{claimer, bench.portal, ListKind::priority, late});
}

// Rules: P4F-7.56, P4F-7.65, P4F-7.66, P4F-8.11.
TEST(Match, PersistentEntryTakesAllItsHeadersInOrderThenIsLinked) {
  Bench bench;
  bench.append(bench.entry(), ListKind::overflow);
  for (uint64_t message = 1; message <= 3; ++message) {
    bench.arrive(message, 16, 0);
    bench.land();
  }
  Entry late = bench.entry();
  late.options.event_link_disable = false;
  bench.append(late);
  EXPECT_EQ(bench.kinds(),
            (Kinds{EventKind::put_overflow, EventKind::put_overflow, EventKind::put_overflow, EventKind::link}));
  const auto posts = bench.actions<PostEvent>();
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(posts[i].event.hdr_data, 1001 + i);
}

// Rules: P4F-20.1.
TEST(Match, UnexpectedHeadersAreLimited) {
  Bench bench;
  bench.append(bench.entry(), ListKind::overflow);
  for (uint64_t message = 1; message <= 5; ++message) {
    bench.arrive(message, 16, 0);
    bench.land();
  }
  EXPECT_EQ(bench.nic.state().unexpected_headers, 4u);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
}

// Rules: P4F-5.18, P4F-7.19, P4F-8.2, P4F-8.10, P4F-11.23.
TEST(Match, RefusedMessagesAreAcknowledgedWithTheReason) {
  struct Row {
    const char* what;
    Fail expected;
    void (*prepare)(Bench&);
  };
  const std::vector<Row> rows = {
      {"no entry", Fail::dropped, [](Bench&) {}},
      {"no portal", Fail::dropped, [](Bench& bench) { bench.portal = PortalIndex{9}; }},
      {"disabled", Fail::pt_disabled, [](Bench& bench) { bench.good(PortalEnable{bench.portal, false}); }},
      {"puts not allowed", Fail::op_violation,
       [](Bench& bench) {
         Entry entry = bench.entry();
         entry.options.op_put = false;
         bench.append(entry);
       }},
  };
  for (const Row& row : rows) {
    Bench bench;
    row.prepare(bench);
    bench.ack_request = AckRequest::ack;
    bench.arrive(1, 32, 0);
    EXPECT_TRUE(bench.out.list.empty()) << row.what;  // the rest of the message is still on its way
    bench.arrive(1, 32, 16);
    const Packet ack = bench.only<Send>().packet;
    EXPECT_EQ(ack.operation, Operation::ack) << row.what;
    EXPECT_EQ(ack.target, Rank{0});
    EXPECT_EQ(ack.message, 1u);
    EXPECT_EQ(static_cast<Fail>(ack.fields.fail), row.expected) << row.what;
    EXPECT_EQ(ack.fields.manipulated_bytes, 0u);
    EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
    bench.expect_idle();
  }
}

// Rules: P4F-17.5, P4F-17.6, P4F-17.7.
TEST(Match, FlowControlDisablesThePortalOnceAndTellsAfterEarlierMessages) {
  Bench bench;
  const PortalIndex controlled{3};
  bench.good(PortalAlloc{controlled, bench.queue, true});
  bench.portal = controlled;
  Entry entry = bench.entry();
  entry.options.use_once = true;
  bench.append(entry);
  bench.arrive(1, 32, 0);
  const DmaId first = bench.only<DmaWrite>().dma;
  bench.arrive(2, 16, 0);  // no entry left
  EXPECT_TRUE(bench.kinds().empty());
  bench.arrive(3, 16, 0);
  EXPECT_TRUE(bench.kinds().empty());
  bench.arrive(1, 32, 16);
  const DmaId second = bench.only<DmaWrite>().dma;
  bench.dma_done(first);
  bench.dma_done(second);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink, EventKind::pt_disabled}));
  EXPECT_EQ(bench.event(EventKind::pt_disabled).portal, controlled);
  bench.good(PortalEnable{controlled, true});
  bench.append(entry);
  bench.arrive(4, 16, 0);
  EXPECT_EQ(bench.land().at(0).hdr_data, 1004u);
}

// Rules: P4F-7.45, P4F-7.46, P4F-7.52, P4F-7.55.
TEST(Match, CountersAndDisabledEvents) {
  Bench bench;
  const CounterId counter{0};
  bench.good(CounterAlloc{counter});
  Entry entry = bench.entry();
  entry.counter = counter;
  entry.options.ct_comm = true;
  entry.options.event_comm_disable = true;
  bench.append(entry);
  bench.arrive(1, 16, 0);
  EXPECT_TRUE(bench.land().empty());
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 0}));

  entry = bench.entry(6);
  entry.counter = counter;
  entry.options.ct_comm = true;
  entry.options.ct_bytes = true;
  entry.options.event_success_disable = true;
  bench.append(entry);
  bench.arrive(2, 10, 0, 6);
  EXPECT_TRUE(bench.land().empty());
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{11, 0}));
}

// Rules: P4F-24.3.
TEST(Match, AckDisabledByTheEntry) {
  Bench bench;
  Entry entry = bench.entry();
  entry.options.ack_disable = true;
  bench.append(entry);
  bench.ack_request = AckRequest::ack;
  bench.arrive(1, 16, 0);
  bench.land();
  EXPECT_EQ(bench.only<Send>().packet.fields.ack_request, AckRequest::none)
      << "the initiator forgets, and tells nobody";
}

// Rules: P4F-7.72, P4F-7.75.
TEST(Match, UnlinkWhileInUse) {
  Bench bench;
  const EntryId id = bench.append(bench.entry());
  bench.arrive(1, 16, 0);
  const DmaId dma = bench.only<DmaWrite>().dma;
  EXPECT_EQ(bench.good(Unlink{id}), static_cast<uint64_t>(UnlinkResult::in_use));
  bench.dma_done(dma);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put}));
  EXPECT_EQ(bench.good(Unlink{id}), static_cast<uint64_t>(UnlinkResult::done));
  EXPECT_NE(bench.error(Unlink{id}, Code::invalid), "");
}

TEST(Match, EmptyMessageCompletesAtOnce) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 0, 0);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put}));
  bench.expect_idle();
}

// A message that unlinks a use-once entry makes two events: both have room, or the message is refused.
// Rules: P4F-17.3, P4F-17.10.
TEST(FlowControl, AQueueHasRoomForTheEndOfEachEntry) {
  Bench bench;
  const auto index = std::make_shared<QueueIndex>();
  const QueueId small{1};
  bench.good(QueueAlloc{small, 5 + 1, 1, index});
  bench.portal = PortalIndex{1};
  bench.good(PortalAlloc{bench.portal, small, true});
  bench.ack_request = AckRequest::ack;
  Entry entry = bench.entry();
  entry.options.use_once = true;
  for (int i = 0; i < 4; ++i) bench.append(entry);
  std::vector<DmaId> open;
  for (const uint64_t message : {1, 2}) {
    bench.arrive(message, 16, 0);
    open.push_back(bench.only<DmaWrite>().dma);
  }
  bench.arrive(3, 16, 0);
  EXPECT_EQ(static_cast<Fail>(bench.only<Send>().packet.fields.fail), Fail::pt_disabled);
  std::vector<EventKind> all;
  for (const DmaId dma : open) {
    bench.dma_done(dma);
    for (const EventKind kind : bench.kinds()) all.push_back(kind);
  }
  EXPECT_EQ(all, (Kinds{EventKind::put, EventKind::auto_unlink, EventKind::put, EventKind::auto_unlink,
                        EventKind::pt_disabled}));
  index->taken = index->posted.load();
  bench.good(PortalEnable{bench.portal, true});
  for (const uint64_t message : {4, 5}) {
    bench.arrive(message, 16, 0);
    EXPECT_EQ(bench.land().size(), 2u) << "what was kept for the first two is free again";
  }
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
  bench.expect_idle();
}

// A queue of one slot borrows a reserved slot for the second event; otherwise no message would ever land.
TEST(FlowControl, AQueueOfOneSlotTakesOneMessageAtATime) {
  Bench bench;
  const auto index = std::make_shared<QueueIndex>();
  bench.good(QueueAlloc{QueueId{1}, 1 + 2, 2, index});
  bench.portal = PortalIndex{1};
  bench.good(PortalAlloc{bench.portal, QueueId{1}, true});
  Entry entry = bench.entry();
  entry.options.use_once = true;
  bench.append(entry);
  bench.arrive(1, 16, 0);
  const auto events = bench.land();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].kind, EventKind::pt_disabled);
}

// A queue of three slots and the reserved one, with an overflow list. All that the NIC posts is kept.
struct SmallQueue {
  Bench bench;
  std::shared_ptr<QueueIndex> index = std::make_shared<QueueIndex>();

  SmallQueue() {
    bench.good(QueueAlloc{QueueId{1}, 3 + 1, 1, index});
    bench.portal = PortalIndex{1};
    bench.good(PortalAlloc{bench.portal, QueueId{1}, true});
  }
  // Appends entries that their message unlinks; `kinds` are the expected events of this call.
  void append_use_once(ListKind list, const Kinds& kinds) {
    Entry entry = bench.entry();
    entry.options.use_once = true;
    bench.append(entry, list);
    EXPECT_EQ(bench.kinds(), kinds);
  }
  void expect_all_kept() const { EXPECT_LE(index->waiting(), 4 + index->added); }
};

// Rules: P4F-17.10.
TEST(FlowControl, OverflowEventsDoNotTakeTheRoomOfMessagesUnderWay) {
  SmallQueue queue;
  Bench& bench = queue.bench;
  bench.append(bench.entry(), ListKind::overflow);
  bench.arrive(1, 16, 0);
  bench.land();
  bench.arrive(2, 16, 0);  // its event has room in the queue
  const DmaId under_way = bench.only<DmaWrite>().dma;
  queue.append_use_once(ListKind::priority, {EventKind::put_overflow, EventKind::auto_unlink});
  queue.expect_all_kept();
  bench.dma_done(under_way);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::pt_disabled}));
  queue.expect_all_kept();
}

TEST(FlowControl, TheEndOfAnOverflowEntryHasASlotOfItsOwn) {
  SmallQueue queue;
  Bench& bench = queue.bench;
  queue.append_use_once(ListKind::overflow, {});
  bench.arrive(1, 16, 0);
  const DmaId under_way = bench.only<DmaWrite>().dma;
  queue.append_use_once(ListKind::priority, {});  // takes the message while its data lands
  bench.dma_done(under_way);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::put_overflow, EventKind::auto_unlink, EventKind::auto_free,
                                  EventKind::auto_unlink, EventKind::pt_disabled}));
  queue.expect_all_kept();
}

// Checked for both ways of a message, the short one and the general one.
// Rules: P4F-5.15, P4F-5.16.
TEST(Match, DisablingIsAnsweredWhenWhatWasMatchedHasEnded) {
  for (const bool controlled : {false, true}) {
    Bench bench;
    bench.portal = PortalIndex{1};
    bench.good(PortalAlloc{bench.portal, bench.queue, controlled});
    bench.ack_request = AckRequest::ack;
    bench.append(bench.entry());
    bench.arrive(1, 16, 0);
    const DmaId dma = bench.only<DmaWrite>().dma;
    EXPECT_EQ(bench.give(PortalEnable{bench.portal, false}).error().code, Code::stalled) << "not yet";
    bench.arrive(2, 16, 0);
    EXPECT_EQ(static_cast<Fail>(bench.only<Send>().packet.fields.fail), Fail::pt_disabled);
    EXPECT_TRUE(bench.actions<Answer>().empty());
    bench.dma_done(dma);
    EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
    EXPECT_TRUE(bench.only<Answer>().result.ok());
    bench.good(PortalEnable{bench.portal, false});
    bench.expect_idle();
  }
}

// Messages beyond the number that handlers may work on.
struct FullBench : Bench {
  explicit FullBench(bool controlled) : Bench(limits_of_one()) {
    ack_request = AckRequest::ack;
    portal = PortalIndex{1};
    good(PortalAlloc{portal, queue, controlled});
    Context context;
    context.payload_entry = 1;
    context.completion_entry = 2;
    Entry handled = entry(5);
    handled.context = Bench::context(context);
    append(handled);
    append(entry(6));  // no context: needs no place
    first = start(1, 16, 0);
  }
  static NicLimits limits_of_one() {
    NicLimits limits = small_limits();
    limits.handler_messages = 1;
    return limits;
  }
  Fail told() { return static_cast<Fail>(only<Send>().packet.fields.fail); }
  HerId first;
};

// Rules: SPIN-1.2, SPIN-1.3, SPIN-1.4.
TEST(FlowControl, NoPlaceForHandlersDisablesThePortal) {
  FullBench bench(true);
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.told(), Fail::pt_disabled);
  EXPECT_TRUE(bench.kinds().empty()) << "messages that were matched before end first";
  bench.arrive(3, 16, 0, 6);
  EXPECT_EQ(bench.told(), Fail::pt_disabled) << "it is off for all";
  bench.done(bench.first);
  const Her completion = bench.only<RunHandler>().her;
  EXPECT_TRUE(completion.flow_control);
  bench.done(completion.id);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok);
  EXPECT_EQ(bench.kinds().back(), EventKind::pt_disabled);
  bench.arrive(4, 16, 0);
  EXPECT_EQ(bench.told(), Fail::pt_disabled);
  bench.good(PortalEnable{bench.portal, true});
  bench.done(bench.start(5, 16, 0));
  EXPECT_FALSE(bench.only<RunHandler>().her.flow_control);
  bench.done(bench.only<RunHandler>().her.id);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
  EXPECT_EQ(bench.good(TelemetryRead{Telemetry::portals_disabled, {}}), 1u);
  bench.expect_idle();
}

TEST(FlowControl, WithoutItAMessageWaitsForItsPlace) {
  FullBench bench(false);
  EXPECT_FALSE(bench.nic.can_accept(bench.packet(2, 16, 0)));
  EXPECT_TRUE(bench.nic.can_accept(bench.packet(3, 16, 0, 6))) << "no handlers, no place";
  EXPECT_TRUE(bench.nic.can_accept(bench.packet(4, 16, 0, 99))) << "nothing matches";
  bench.done(bench.first);
  EXPECT_FALSE(bench.nic.can_accept(bench.packet(2, 16, 0)));
  bench.done(bench.only<RunHandler>().her.id);
  EXPECT_TRUE(bench.nic.can_accept(bench.packet(2, 16, 0)));
  bench.expect_idle();
}

}  // namespace
}  // namespace spinloom::nic
