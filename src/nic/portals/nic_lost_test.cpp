// State at other NICs that a lost peer leaves behind.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

constexpr Rank peer{0};

Put put_to_peer(Bench& bench, uint64_t length, AckRequest ack) {
  Put put;
  put.local = bench.memory.data();
  put.length = length;
  put.target = peer;
  put.portal = PortalIndex{3};
  put.queue = bench.queue;
  put.ack_request = ack;
  put.user_ptr = 77;
  return put;
}

void lose(Bench& bench) {
  bench.out.clear();
  bench.nic.on_peer_lost(peer, bench.out);
}

TEST(Lost, AnAcknowledgementThatNeverComesIsUndeliverable) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Put put = put_to_peer(bench, 8, AckRequest::ack);
  put.counter = CounterId{0};
  bench.good(put);
  const uint64_t message = bench.only<Send>().packet.message;
  bench.out.clear();
  bench.nic.on_packet_sent(message, bench.out);
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::ok);
  lose(bench);
  EXPECT_EQ(bench.event(EventKind::ack).fail, Fail::undeliverable);
  EXPECT_EQ(bench.event(EventKind::ack).user_ptr, 77u);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  bench.expect_idle();
  lose(bench);
  EXPECT_TRUE(bench.out.list.empty()) << "it is lost once";
}

TEST(Lost, WhatWasAcknowledgedBeforeItCountsAsReadIsDelivered) {
  Bench bench;
  bench.good(put_to_peer(bench, 8, AckRequest::ack));
  const Packet ack = ack_for(bench.only<Send>().packet, 8);
  bench.arrive(ack);
  lose(bench);
  bench.out.clear();
  bench.nic.on_packet_sent(ack.message, bench.out);
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::ok);
  EXPECT_EQ(bench.event(EventKind::ack).fail, Fail::ok);
  bench.expect_idle();
}

TEST(Lost, WhatIsSentLaterFailsWhenItHasBeenReadAndHasNoAcknowledgement) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  lose(bench);
  Put put = put_to_peer(bench, 8, AckRequest::ack);
  put.counter = CounterId{0};
  bench.good(put);
  const uint64_t message = bench.only<Send>().packet.message;
  bench.out.clear();
  bench.nic.on_packet_sent(message, bench.out);
  EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::send});
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::undeliverable);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1})) << "who counts acknowledgements is told";
  bench.expect_idle();
}

// Rules: P4F-6.21, P4F-6.22.
TEST(Lost, WhatIsSentLaterIsToldAsTheOptionsSay) {
  using Kinds = std::vector<EventKind>;
  const auto told = [](AckRequest ack, bool send_disable, bool success_disable, uint64_t length) {
    Bench bench;
    lose(bench);
    Put put = put_to_peer(bench, length, ack);
    put.event_send_disable = send_disable;
    put.event_success_disable = success_disable;
    put.counter = CounterId{0};
    put.ct_send = true;
    bench.good(CounterAlloc{CounterId{0}});
    bench.good(put);
    const uint64_t message = bench.only<Send>().packet.message;
    bench.out.clear();
    bench.nic.on_packet_sent(message, bench.out);
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1})) << "no option changes the counter";
    for (const EventKind kind : bench.kinds()) EXPECT_EQ(bench.event(kind).fail, Fail::undeliverable);
    Kinds kinds = bench.kinds();
    bench.expect_idle();
    return kinds;
  };
  for (const uint64_t length : {0, 8}) {
    for (const bool success_disable : {false, true}) {
      for (const AckRequest ack : {AckRequest::none, AckRequest::ct_ack, AckRequest::ack}) {
        EXPECT_EQ(told(ack, false, success_disable, length), Kinds{EventKind::send});
      }
      EXPECT_EQ(told(AckRequest::none, true, success_disable, length), Kinds{});
      EXPECT_EQ(told(AckRequest::ct_ack, true, success_disable, length), Kinds{});
      EXPECT_EQ(told(AckRequest::ack, true, success_disable, length), Kinds{EventKind::ack})
          << "whoever waits for an acknowledgement must hear of it";
    }
  }
}

TEST(Lost, AGetEndsByAReplyThatFailed) {
  for (const bool before : {true, false}) {
    Bench bench;
    bench.good(CounterAlloc{CounterId{0}});
    if (!before) lose(bench);
    Get get;
    get.reply.local = bench.memory.data();
    get.reply.queue = bench.queue;
    get.reply.counter = CounterId{0};
    get.reply.ct_reply = true;
    get.length = 64;
    get.target = peer;
    get.portal = PortalIndex{3};
    bench.good(get);
    const uint64_t message = bench.only<Send>().packet.message;
    bench.out.clear();
    bench.nic.on_packet_sent(message, bench.out);
    if (before) {
      EXPECT_TRUE(bench.kinds().empty());
      lose(bench);
    }
    EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::reply});
    EXPECT_EQ(bench.event(EventKind::reply).fail, Fail::undeliverable);
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
    bench.expect_idle();
  }
}

// Packets that the peer sent before are still on their way to the engine.
TEST(Lost, APeerThatCannotBeReachedAnswersNothingAndItsMessagesGoOn) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 40, 0);
  Get get;
  get.reply.local = bench.memory.data();
  get.reply.queue = bench.queue;
  get.length = 64;
  get.target = peer;
  get.portal = PortalIndex{3};
  bench.good(get);
  bench.out.clear();
  bench.nic.on_peer_unreachable(peer, bench.out);
  EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::reply});
  EXPECT_EQ(bench.event(EventKind::reply).fail, Fail::undeliverable);
  lose(bench);
  EXPECT_EQ(bench.kinds(), std::vector<EventKind>{});
}

TEST(Lost, AMessageWhoseRestIsMissingEndsWithWhatCame) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 40, 0);
  bench.land();
  lose(bench);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::undeliverable);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 16u);
  bench.expect_idle();
}

// The sender is lost before all of its memory has been read.
TEST(Lost, AMessageInOnePacketEndsWithoutTheBytesThatCouldNotBeRead) {
  NicLimits limits = small_limits();
  limits.transfer_bytes = 1000;
  limits.packet_buffer_bytes = 1000;
  Bench bench(limits);
  bench.append(bench.entry());
  Packet packet = bench.packet(1, 900, 0);
  packet.payload = {PayloadRef::Space::peer, packet.payload.bytes, 900};
  bench.arrive(packet);
  const DmaId dma = bench.only<DmaWrite>().dma;
  bench.out.clear();
  bench.nic.on_dma_done(dma, bench.out, Fail::undeliverable);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::undeliverable);
  bench.expect_idle();
}

TEST(Lost, PacketsAheadOfAHeaderThatNeverComesGiveTheirRoomBack) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 40, 16);
  EXPECT_EQ(bench.nic.state().early_packets, 1u);
  lose(bench);
  EXPECT_TRUE(bench.kinds().empty()) << "nothing was matched";
  bench.expect_idle();
}

TEST(Lost, HandlersOfWhatCameRunAndTheCompletionHandlerFollows) {
  Bench bench;
  Context context;
  context.payload_entry = 1;
  context.completion_entry = 2;
  Entry entry = bench.entry();
  entry.context = bench.context(context);
  bench.append(entry);
  const HerId her = bench.start(1, 40, 0);
  lose(bench);
  EXPECT_TRUE(bench.kinds().empty()) << "a handler of it runs";
  bench.done(her);
  const HerId completion = bench.only<RunHandler>().her.id;
  EXPECT_EQ(bench.only<RunHandler>().her.kind, HandlerKind::completion);
  bench.done(completion);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::undeliverable);
  bench.expect_idle();
}

TEST(Lost, OthersAreNotConcerned) {
  Bench bench;
  bench.append(bench.entry());
  Packet packet = bench.packet(1, 40, 0);
  packet.source = Rank{2};
  bench.arrive(packet);
  bench.land();
  lose(bench);
  EXPECT_TRUE(bench.out.list.empty());
  EXPECT_EQ(bench.nic.state().messages_open, 1u);
}

TEST(Transfer, PacketsOfMessagesWithoutHandlersMayBeLonger) {
  NicLimits limits = small_limits();
  limits.transfer_bytes = 1000;
  Bench bench(limits);
  bench.append(bench.entry(5));
  Packet packet = bench.packet(7, 900, 0);
  packet.payload.length = 900;
  EXPECT_FALSE(bench.nic.wants_packets(packet)) << "no context, no handler: its first one, too";
  bench.arrive(packet);
  EXPECT_EQ(bench.only<DmaWrite>().source.length, 900u);
  bench.land();
  Entry handled = bench.entry(6);
  handled.context = bench.context();
  bench.append(handled);
  packet = bench.packet(1, 900, 0);
  EXPECT_TRUE(bench.nic.wants_packets(packet)) << "which one it matches is not known yet";
  bench.arrive(packet);
  bench.land();
  packet = bench.packet(1, 900, 16);
  packet.payload.length = 884;
  EXPECT_FALSE(bench.nic.wants_packets(packet));
  bench.arrive(packet);
  EXPECT_EQ(bench.only<DmaWrite>().source.length, 884u);
  bench.land();
  bench.arrive(2, 900, 0, 6);
  EXPECT_TRUE(bench.nic.wants_packets(bench.packet(2, 900, 16, 6)));
  bench.good(put_to_peer(bench, 900, AckRequest::none));
  EXPECT_EQ(bench.only<Send>().packet.payload.length, 900u) << "it leaves at once";
}

TEST(Transfer, ThePacketBufferMayBeElsewhere) {
  Bench bench;
  Entry entry = bench.entry();
  entry.context = bench.context();
  bench.append(entry);
  bench.arrive(1, 16, 0);
  const HerId her = bench.only<BufferPacket>().her;
  const uint8_t kept[16] = {};
  bench.out.clear();
  bench.nic.on_her_ready(her, bench.out, kept);
  EXPECT_EQ(bench.only<RunHandler>().her.payload.bytes, kept);
}

TEST(Lost, EntriesOfOnlyThisPeerCountAFailureIfTheyWantTo) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  const auto append = [&](uint32_t id, Rank rank, bool told) {
    Entry entry;
    entry.start = bench.memory.data();
    entry.length = 8;
    entry.match_rank = rank;
    entry.match_bits = 1000 + id;
    entry.counter = CounterId{0};
    entry.options.use_once = true;
    entry.options.ct_peer_lost = told;
    bench.good(Append{EntryId{id}, bench.portal, ListKind::priority, entry});
  };
  append(20, peer, true);
  append(21, peer, false);
  append(22, Rank{1}, true);
  append(23, Rank::any(), true);
  lose(bench);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  bench.out.clear();
  append(24, peer, true);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 2})) << "the peer is known to be gone";
}

TEST(Lost, APeerIsBackWhenNothingIsLeftOfWhatWasUnderWay) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Entry entry;
  entry.start = bench.memory.data();
  entry.length = 8;
  entry.match_rank = peer;
  entry.match_bits = 1000;
  entry.counter = CounterId{0};
  entry.options.ct_peer_lost = entry.options.ct_peer_back = true;
  bench.good(Append{EntryId{20}, bench.portal, ListKind::priority, entry});
  entry.match_rank = Rank{1};  // its counter does not count another rank's return
  bench.good(Append{EntryId{21}, bench.portal, ListKind::priority, entry});
  EXPECT_FALSE(bench.nic.is_quiescent(peer)) << "it is not lost";
  bench.out.clear();
  bench.good(put_to_peer(bench, 8, AckRequest::ack));
  const uint64_t message = bench.only<Send>().packet.message;
  lose(bench);
  EXPECT_FALSE(bench.nic.is_quiescent(peer)) << "a buffer is still to be read";
  bench.out.clear();
  bench.nic.on_packet_sent(message, bench.out);
  EXPECT_TRUE(bench.nic.is_quiescent(peer));
  bench.out.clear();
  bench.nic.on_peer_back(peer, bench.out);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 1}));
  EXPECT_FALSE(bench.nic.is_quiescent(peer));
  bench.out.clear();
  bench.good(put_to_peer(bench, 8, AckRequest::ack));
  const uint64_t later = bench.only<Send>().packet.message;
  bench.out.clear();
  bench.nic.on_packet_sent(later, bench.out);
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::ok);
}

// A put on the short way is acknowledged when its bytes have landed. If its sender were taken back before, the
// acknowledgement would reach the sender's next life.
TEST(Lost, APeerWhosePutIsStillLandingIsNotBack) {
  Bench bench;
  Entry entry = bench.entry();
  bench.append(entry);
  bench.ack_request = AckRequest::ack;
  bench.arrive(1, 16, 0);
  const DmaId landing = bench.only<DmaWrite>().dma;
  bench.out.clear();
  bench.nic.on_peer_lost(Rank{0}, bench.out);
  EXPECT_FALSE(bench.nic.is_quiescent(Rank{0})) << "its put is landing";
  bench.dma_done(landing);
  EXPECT_TRUE(bench.nic.is_quiescent(Rank{0}));
}

}  // namespace
}  // namespace spinloom::nic
