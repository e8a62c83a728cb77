// Acknowledgements and replies say in which list the entry was that took the operation.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

// Sends a put of several packets whose acknowledgement leaves when the entry is gone already.
ListKind list_acknowledged(ListKind list, bool use_once, uint64_t length) {
  Bench bench;
  bench.ack_request = AckRequest::ack;
  Entry entry = bench.entry();
  entry.options.use_once = use_once;
  bench.append(entry, list);
  std::vector<DmaId> open;
  for (uint64_t offset = 0; offset == 0 || offset < length; offset += bench.nic.limits().payload_bytes) {
    bench.arrive(1, length, offset);
    for (const DmaWrite& write : bench.actions<DmaWrite>()) open.push_back(write.dma);
  }
  for (const DmaId dma : open) bench.dma_done(dma);
  const Packet ack = bench.only<Send>().packet;
  EXPECT_EQ(ack.operation, Operation::ack);
  EXPECT_EQ(ack.fields.manipulated_bytes, length);
  return ack.fields.list;
}

TEST(Answer, AnAcknowledgementNamesTheListOfItsEntry) {
  for (const uint64_t length : {0, 8, 40}) {
    for (const bool use_once : {false, true}) {
      for (const ListKind list : {ListKind::priority, ListKind::overflow}) {
        EXPECT_EQ(list_acknowledged(list, use_once, length), list) << length << " B, use_once " << use_once;
      }
    }
  }
}

TEST(Answer, AReplyNamesTheListOfItsEntry) {
  for (const ListKind list : {ListKind::priority, ListKind::overflow}) {
    Bench bench;
    Entry entry = bench.entry();
    entry.options.op_get = entry.options.use_once = true;
    bench.append(entry, list);
    Packet get = bench.packet(1, 0, 0);
    get.operation = Operation::get;
    get.fields.request.requested_bytes = 40;
    bench.arrive(get);
    const auto sent = bench.actions<Send>();
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(sent[0].packet.operation, Operation::reply);
    EXPECT_EQ(sent[0].packet.fields.list, list);
  }
}

TEST(Answer, TheInitiatorIsToldTheList) {
  for (const ListKind list : {ListKind::priority, ListKind::overflow}) {
    Bench bench;
    Put put;
    put.local = bench.source;
    put.length = 16;
    put.portal = bench.portal;
    put.queue = bench.queue;
    put.ack_request = AckRequest::ack;
    bench.good(put);
    const Packet sent = bench.only<Send>().packet;
    bench.out.clear();
    bench.nic.on_packet_sent(sent.message, bench.out);
    EXPECT_FALSE(bench.event(EventKind::send).in_overflow);
    Packet ack = ack_for(sent, 16);
    ack.fields.list = list;
    bench.arrive(ack);
    EXPECT_EQ(bench.event(EventKind::ack).in_overflow, list == ListKind::overflow);

    Get get;
    get.reply.local = bench.memory.data();
    get.reply.queue = bench.queue;
    get.length = 16;
    bench.good(get);
    const Packet asked = bench.only<Send>().packet;
    bench.out.clear();
    bench.nic.on_packet_sent(asked.message, bench.out);
    Packet reply;
    reply.operation = Operation::reply;
    reply.source = asked.target;
    reply.answers = asked.fields.request.reply_to;
    reply.fields.list = list;
    bench.arrive(reply);
    EXPECT_EQ(bench.event(EventKind::reply).in_overflow, list == ListKind::overflow);
    bench.expect_idle();
  }
}

}  // namespace
}  // namespace spinloom::nic
