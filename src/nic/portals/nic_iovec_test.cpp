// Scatter lists: where pieces go, when the next elements are read, packets out of order.
#include <gtest/gtest.h>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

struct Listed {
  explicit Listed(std::vector<uint64_t> lengths, uint32_t held) : bench(limits(held)) {
    uint64_t at = 0;
    uint64_t sum = 0;
    for (const uint64_t length : lengths) {
      list.push_back({bench.memory.data() + at, length});
      at += length + 3;  // gaps
      sum += length;
    }
    entry.match_bits = 5;
    entry.iovec = list;
    entry.length = sum;
    entry.options.use_once = true;
    entry.options.event_unlink_disable = true;
  }
  static NicLimits limits(uint32_t held) {
    NicLimits made = small_limits();
    made.iovec_entries = held;
    return made;
  }
  // The pieces of the last call as "offset+length", with an r in front if the list is read before the piece.
  [[nodiscard]] std::string pieces() const {
    std::string out;
    for (const DmaWrite& write : bench.actions<DmaWrite>()) {
      EXPECT_NE(write.scatter, Scatter::none);
      out += text(write.scatter == Scatter::refill ? "r" : "", write.host - bench.memory.data(), "+",
                  write.source.length, "@", write.source.bytes - bench.source, " ");
    }
    return out;
  }

  Bench bench;
  std::vector<IovecElement> list;
  Entry entry;
  HerId header;
};

TEST(Iovec, PacketsAreCutAtElementsAndElementsAtPackets) {
  Listed listed({10, 4, 20}, 32);  // packets of 16 B
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 34, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 13+4@10 20+2@14 ");
  EXPECT_TRUE(listed.bench.land().empty());
  listed.bench.arrive(1, 34, 16);
  EXPECT_EQ(listed.pieces(), "22+16@16 ");
  EXPECT_TRUE(listed.bench.land().empty());
  listed.bench.arrive(1, 34, 32);
  EXPECT_EQ(listed.pieces(), "38+2@32 ");
  const auto events = listed.bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::put);
  EXPECT_EQ(events[0].fail, Fail::ok);
  EXPECT_EQ(events[0].manipulated_bytes, 34u);
  listed.bench.expect_idle();
}

// Packets that wait for a header handler go to the same places when it lets the message pass.
TEST(Iovec, AMessageThatAHeaderHandlerLetsPassIsScattered) {
  for (const bool to_payload_handlers : {false, true}) {  // no payload handler: the NIC writes the bytes
    Listed listed({10, 4, 20}, 32);
    Bench& bench = listed.bench;
    Context context;
    context.header_entry = 3;
    listed.entry.context = bench.context(context);
    bench.append(listed.entry);
    for (const uint64_t offset : {0, 16}) {
      bench.arrive(1, 34, offset);
      bench.her_ready(bench.only<BufferPacket>().her);
      if (offset == 0) listed.header = bench.only<RunHandler>().her.id;
    }
    bench.done(listed.header, to_payload_handlers ? PROCESS_DATA : PROCEED);
    EXPECT_EQ(listed.pieces(), "0+10@0 13+4@10 20+2@14 22+16@16 ");
    EXPECT_TRUE(bench.land().empty());
    EXPECT_EQ(bench.nic.state().packet_buffer_used, 0u);
    bench.arrive(1, 34, 32);
    EXPECT_EQ(listed.pieces(), "38+2@32 ");
    const auto events = bench.land();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].manipulated_bytes, 34u);
    bench.expect_idle();
  }
}

// The first `held` elements come with the append; each further block of `held` elements is read once.
TEST(Iovec, EachStretchOfElementsIsReadOnce) {
  Listed listed({2, 2, 2, 20, 2}, 2);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 28, 0);
  EXPECT_EQ(listed.pieces(), "0+2@0 5+2@2 r10+2@4 15+10@6 ");
  listed.bench.land();
  listed.bench.arrive(1, 28, 16);  // goes on within element 3: no new read
  EXPECT_EQ(listed.pieces(), "25+10@16 r38+2@26 ");
  EXPECT_EQ(listed.bench.land().size(), 1u);
  listed.bench.expect_idle();
}

TEST(Iovec, PacketsInAnyOrderFindTheirPlaces) {
  Listed listed({10, 30}, 1);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 40, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 r13+6@10 ");
  listed.bench.land();
  listed.bench.arrive(1, 40, 32);
  EXPECT_EQ(listed.pieces(), "35+8@32 ");
  listed.bench.land();
  listed.bench.arrive(1, 40, 16);
  EXPECT_EQ(listed.pieces(), "19+16@16 ");
  const auto events = listed.bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].fail, Fail::ok);
  EXPECT_EQ(events[0].manipulated_bytes, 40u);
  listed.bench.expect_idle();
}

// Rules: P4F-13.13, P4F-19.2.
TEST(Iovec, OffsetsAreThoseOfTheConcatenation) {
  Listed listed({10, 4, 20}, 1);
  listed.bench.append(listed.entry);
  listed.bench.remote_offset = 12;
  listed.bench.arrive(1, 5, 0);  // elements begin at 0, 13 and 20
  EXPECT_EQ(listed.pieces(), "r15+2@0 r20+3@2 ");
  const auto events = listed.bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].start, reinterpret_cast<uint64_t>(listed.bench.memory.data()) + 15);
  listed.bench.expect_idle();
}

TEST(Iovec, TheTargetMayKeepTheOffset) {
  Listed listed({10, 30}, 32);
  listed.entry.options.use_once = false;
  listed.entry.options.manage_local = true;
  listed.entry.min_free = 20;
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 12, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 13+2@10 ");
  listed.bench.land();
  listed.bench.arrive(2, 10, 0);
  EXPECT_EQ(listed.pieces(), "15+10@0 ");
  EXPECT_EQ(listed.bench.land().size(), 1u);
  listed.bench.arrive(3, 1, 0);
  EXPECT_EQ(listed.bench.nic.state().dropped_messages, 1u) << "18 B were left, which is less than 20";
  listed.bench.expect_idle();
}

TEST(Iovec, PacketsAheadOfTheirHeaderKeepTheirPlaceUntilWritten) {
  Listed listed({10, 30}, 32);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 40, 16);  // its place is that of packets in order, once the header is here
  listed.bench.arrive(1, 40, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 13+6@10 19+16@16 ");
  EXPECT_EQ(listed.bench.nic.state().packet_buffer_used, 16u);
  listed.bench.land();
  EXPECT_EQ(listed.bench.nic.state().packet_buffer_used, 0u);
  listed.bench.arrive(1, 40, 32);
  EXPECT_EQ(listed.bench.land().size(), 1u);
  listed.bench.expect_idle();
}

TEST(Iovec, LongerMessagesAreTruncated) {
  Listed listed({8, 4}, 32);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 30, 0);
  EXPECT_EQ(listed.pieces(), "0+8@0 11+4@8 ");
  listed.bench.land();
  listed.bench.arrive(1, 30, 16);
  EXPECT_EQ(listed.bench.event(EventKind::put).manipulated_bytes, 12u);
  listed.bench.expect_idle();
}

// Rules: P4F-19.4, P4F-19.5.
TEST(Iovec, GetsAndAtomicsReachListsToo) {
  Listed listed({10, 4, 20}, 32);
  listed.entry.options.use_once = false;
  listed.entry.options.op_get = true;
  Bench& bench = listed.bench;
  bench.append(listed.entry);
  Packet get = bench.packet(1, 0, 0);
  get.operation = Operation::get;
  get.fields.remote_offset = 8;
  get.fields.request.requested_bytes = 20;
  bench.arrive(get);
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 2u);  // 16 B and 4 B
  const auto pieces_of = [&](const Send& send) {
    std::string out;
    for (const PayloadRef& piece : send.pieces) out += text(piece.bytes - bench.memory.data(), "+", piece.length, " ");
    return out;
  };
  EXPECT_EQ(pieces_of(sends[0]), "8+2 13+4 20+10 ");
  EXPECT_EQ(pieces_of(sends[1]), "30+4 ");
  bench.out.clear();
  bench.nic.on_packet_sent(sends[0].packet.message, bench.out);
  EXPECT_EQ(bench.event(EventKind::get).manipulated_bytes, 20u);

  Packet atomic = bench.packet(2, 8, 0);
  atomic.operation = Operation::atomic;
  atomic.fields.remote_offset = 9;
  atomic.fields.request.atomic = AtomicOperation::sum;
  atomic.fields.request.datatype = Datatype::int32;
  bench.arrive(atomic);
  const auto apply = bench.only<ApplyAtomic>();
  ASSERT_EQ(apply.pieces.size(), 3u);
  EXPECT_EQ(apply.pieces[0].base, bench.memory.data() + 9);
  EXPECT_EQ(apply.pieces[0].length, 1u);
  EXPECT_EQ(apply.pieces[1].length, 4u);
  EXPECT_EQ(apply.pieces[2].length, 3u);
  bench.dma_done(apply.dma);
  bench.expect_idle();
}

// Rules: P4F-19.1, P4F-19.4.
TEST(Iovec, PutsLeaveFromADescriptorsListAndRepliesLandInIt) {
  Bench bench;
  auto descriptor = Descriptor::make(std::vector<IovecElement>{
      {bench.memory.data(), 3}, {bench.memory.data() + 10, 20}, {bench.memory.data() + 50, 9}});
  Put put;
  put.target = Rank{0};
  put.portal = PortalIndex{3};
  put.queue = bench.queue;
  put.length = 30;
  put.descriptor = descriptor;
  put.descriptor_offset = 1;
  descriptor->begin();
  bench.good(put);
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 2u);
  ASSERT_EQ(sends[0].pieces.size(), 2u);
  EXPECT_EQ(sends[0].pieces[0].bytes, bench.memory.data() + 1);
  EXPECT_EQ(sends[0].pieces[1].length, 14u);
  ASSERT_EQ(sends[1].pieces.size(), 2u);
  EXPECT_EQ(sends[1].pieces[1].bytes, bench.memory.data() + 50);
  EXPECT_EQ(sends[1].pieces[1].length, 8u);
  EXPECT_TRUE(descriptor->in_use());
  bench.out.clear();
  bench.nic.on_packet_sent(sends[0].packet.message, bench.out);
  EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::send});
  EXPECT_FALSE(descriptor->in_use());

  Get get;
  get.reply.descriptor = descriptor;
  get.reply.descriptor_offset = 2;
  get.reply.queue = bench.queue;
  get.length = 10;
  get.target = Rank{0};
  get.portal = PortalIndex{3};
  descriptor->begin();
  bench.good(get);
  const Packet request = bench.only<Send>().packet;
  Packet reply = bench.packet(7, 10, 0);
  reply.operation = Operation::reply;
  reply.answers = request.fields.request.reply_to;
  bench.arrive(reply);
  const auto writes = bench.actions<DmaWrite>();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].host, bench.memory.data() + 2);
  EXPECT_EQ(writes[1].host, bench.memory.data() + 10);
  EXPECT_EQ(writes[1].source.length, 9u);
  bench.dma_done(writes[0].dma);
  EXPECT_TRUE(descriptor->in_use());
  bench.dma_done(writes[1].dma);
  EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::reply});
  EXPECT_FALSE(descriptor->in_use());
  put.length = 32;
  bench.error(put, Code::invalid);
}

TEST(Iovec, AnEntrysListIsThereForHandlers) {
  Listed listed({10, 4, 20}, 32);
  listed.entry.context = listed.bench.context();
  listed.bench.append(listed.entry);
  const HerId her = listed.bench.start(1, 8, 0);
  EXPECT_FALSE(listed.bench.call(her, listed.bench.dma_call(9, 6)));
  EXPECT_EQ(listed.bench.actions<DmaWrite>().size(), 3u);
}

TEST(Iovec, AnOperationThatIsRefusedOrForgottenLetsItsDescriptorGo) {
  Bench bench;
  auto descriptor = Descriptor::make();
  bench.good(CounterAlloc{CounterId{0}});
  Put put;
  put.local = bench.memory.data();
  put.length = 4;
  put.target = Rank::any();
  put.portal = PortalIndex{0};
  put.descriptor = descriptor;
  descriptor->begin();
  bench.error(put, Code::invalid);
  EXPECT_FALSE(descriptor->in_use());
  put.target = Rank{0};
  for (const CommandBody& end : {CommandBody{CounterCancel{CounterId{0}}}, CommandBody{CounterFree{CounterId{0}}}}) {
    descriptor->begin();
    bench.good(put, Trigger{CounterId{0}, 1, 1});
    EXPECT_TRUE(descriptor->in_use());
    bench.good(end);
    EXPECT_FALSE(descriptor->in_use());
  }
  NicLimits none = small_limits();
  none.iovec_entries = 0;
  EXPECT_NE(check(none).error().message.find("iovec_entries"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::nic
