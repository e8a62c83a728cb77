// Streaming puts: one message whose bytes the host names region by region.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

struct StreamBench : Bench {
  // Starts a message of `length` bytes (packets of 16 B) whose regions lie in 64 B of memory.
  StreamStart start(uint64_t length, PutRegion first, uint32_t id = 0) {
    StreamStart made;
    made.id = StreamId{id};
    made.put.local = source;
    made.put.length = length;
    made.put.target = Rank{0};
    made.put.portal = portal;
    made.put.queue = queue;
    made.put.user_ptr = 77;
    made.memory_bytes = 64;
    made.first = first;
    return made;
  }
  StreamAppend append(PutRegion region, bool end = false, uint32_t id = 0) { return {StreamId{id}, region, end}; }
  Put plain(uint64_t length) {
    Put put;
    put.local = source;
    put.length = length;
    put.target = Rank{0};
    put.portal = portal;
    put.queue = queue;
    return put;
  }
  // The pieces of a packet as offsets into the memory.
  std::vector<std::pair<uint64_t, uint64_t>> pieces(const Send& send) const {
    std::vector<std::pair<uint64_t, uint64_t>> found;
    for (const PayloadRef& piece : send.pieces) {
      found.emplace_back(static_cast<uint64_t>(piece.bytes - source), piece.length);
    }
    return found;
  }
  void sent(uint64_t message) {
    out.clear();
    nic.on_packet_sent(message, out);
  }
};

using Pieces = std::vector<std::pair<uint64_t, uint64_t>>;

// A reply matches nothing, so it does not wait behind a put's header: the get reads memory when it comes.
TEST(StreamingPut, RepliesDoNotWaitBehindItsHeader) {
  for (const bool busy : {false, true}) {  // true: packets of another put are still leaving
    StreamBench bench;
    Entry entry = bench.entry();
    entry.options.op_get = true;
    bench.Bench::append(entry);
    const uint64_t packets = limits::packets_per_call_max + 2;
    std::vector<uint8_t> bytes(busy ? 16 * packets : 1);
    Put before = bench.plain(bytes.size());
    before.local = bytes.data();
    bench.good(before);
    uint64_t sends = bench.actions<Send>().size();
    bench.good(bench.start(40, {0, 10}));
    EXPECT_EQ(bench.actions<Continue>().size() + bench.actions<Send>().size(), 0u);
    Packet get = bench.packet(7, 0, 0);
    get.operation = Operation::get;
    get.fields.hdr_data = 0;
    get.fields.request.requested_bytes = 40;
    bench.arrive(get);
    const std::vector<Send> reply = bench.actions<Send>();
    ASSERT_EQ(reply.size(), 3u) << busy;
    for (const Send& send : reply) EXPECT_EQ(send.packet.operation, Operation::reply);
    EXPECT_TRUE(reply[2].last);
    for (int i = 0; i < 3 && busy && sends < packets; ++i) {
      bench.go_on();
      sends += bench.actions<Send>().size();
    }
    EXPECT_EQ(sends, busy ? packets : 1u);
    bench.good(bench.append({20, 30}, true));
    EXPECT_EQ(bench.actions<Send>().size(), 3u) << "the streaming put itself";
  }
}

TEST(StreamingPut, FillsPacketsAcrossRegions) {
  StreamBench bench;
  bench.good(bench.start(40, {0, 10}));
  EXPECT_TRUE(bench.actions<Send>().empty()) << "the first packet is not full";
  bench.good(bench.append({20, 10}));
  const Send first = bench.only<Send>();
  EXPECT_EQ(bench.pieces(first), (Pieces{{0, 10}, {20, 6}}));
  EXPECT_TRUE(first.packet.is_header());
  EXPECT_EQ(first.packet.message_length, 40u);
  EXPECT_FALSE(first.last);
  bench.good(bench.append({40, 4}));
  EXPECT_TRUE(bench.actions<Send>().empty());
  bench.good(bench.append({44, 16}, true));
  const auto rest = bench.actions<Send>();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(bench.pieces(rest[0]), (Pieces{{26, 4}, {40, 4}, {44, 8}}));
  EXPECT_EQ(bench.pieces(rest[1]), (Pieces{{52, 8}}));
  EXPECT_EQ(rest[1].packet.offset, 32u);
  EXPECT_EQ(rest[1].packet.message, first.packet.message) << "one message, however many regions";
  EXPECT_TRUE(rest[1].last);
  bench.sent(first.packet.message);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  EXPECT_EQ(bench.event(EventKind::send).user_ptr, 77u);
  bench.expect_idle();
}

TEST(StreamingPut, IsAcknowledgedOnce) {
  StreamBench bench;
  StreamStart start = bench.start(20, {0, 20});
  start.put.ack_request = AckRequest::ack;
  bench.good(start);
  const Packet sent = bench.only<Send>().packet;
  bench.good(bench.append({}, true));
  bench.sent(sent.message);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  bench.arrive(ack_for(sent, 20));
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::ack});
  EXPECT_EQ(bench.event(EventKind::ack).manipulated_bytes, 20u);
  bench.expect_idle();
}

TEST(StreamingPut, TheLastPacketWaitsForTheEnd) {
  StreamBench bench;
  bench.good(bench.start(32, {0, 32}));
  EXPECT_EQ(bench.only<Send>().packet.offset, 0u);
  bench.good(bench.append({}, true));
  EXPECT_TRUE(bench.only<Send>().last);
  bench.sent(bench.only<Send>().packet.message);
  bench.expect_idle();
}

TEST(StreamingPut, AnEmptyMessageIsOnePacket) {
  StreamBench bench;
  bench.good(bench.start(0, {}));
  EXPECT_TRUE(bench.actions<Send>().empty());
  bench.good(bench.append({}, true));
  const Send only = bench.only<Send>();
  EXPECT_TRUE(only.last && only.packet.is_header() && only.pieces.empty());
  bench.sent(only.packet.message);
  bench.expect_idle();
}

TEST(StreamingPut, ARefusedRegionChangesNothing) {
  StreamBench bench;
  EXPECT_NE(bench.error(bench.start(40, {60, 5}), Code::invalid).find("not inside its memory of 64 B"),
            std::string::npos);
  EXPECT_NE(bench.error(bench.start(4, {0, 5}), Code::invalid).find("declared length of 4 B"), std::string::npos);
  bench.good(bench.start(40, {0, 10}));
  bench.error(bench.start(40, {0, 10}), Code::invalid);  // the handle is in use
  bench.error(bench.append({UINT64_MAX, 2}), Code::invalid);
  EXPECT_NE(bench.error(bench.append({0, 31}), Code::invalid).find("after 10 B"), std::string::npos);
  EXPECT_NE(bench.error(bench.append({0, 29}, true), Code::invalid).find("after 39 B of the declared 40 B"),
            std::string::npos);
  EXPECT_TRUE(bench.actions<Send>().empty());
  bench.good(bench.append({0, 30}, true));
  const auto sent = bench.actions<Send>();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(bench.pieces(sent[0]), (Pieces{{0, 10}, {0, 6}}));
  bench.error(bench.append({0, 1}), Code::invalid);  // the stream is closed
  bench.sent(sent[0].packet.message);
  bench.expect_idle();
}

TEST(StreamingPut, SoManyMayBeOpen) {
  StreamBench bench;
  for (uint32_t id = 0; id < limits::stream_count_max; ++id) bench.good(bench.start(1, {}, id));
  EXPECT_NE(bench.error(bench.start(1, {}, limits::stream_count_max), Code::exhausted).find("stream_count_max"),
            std::string::npos);
}

// Receivers match in the order of the puts. Once a stream's header has left, the stream lets others pass.
TEST(StreamingPut, HeadersLeaveInOrderOfThePuts) {
  StreamBench bench;
  bench.good(bench.start(40, {0, 10}));
  bench.good(bench.plain(8));
  EXPECT_TRUE(bench.actions<Send>().empty());
  bench.good(bench.append({0, 10}));
  const auto both = bench.actions<Send>();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].packet.message_length, 40u);
  EXPECT_EQ(both[1].packet.message_length, 8u);
  bench.good(bench.plain(4));
  EXPECT_EQ(bench.only<Send>().packet.message_length, 4u) << "the open stream is passed";
  const uint64_t third = bench.only<Send>().packet.message;
  bench.good(bench.append({0, 20}, true));
  EXPECT_EQ(bench.actions<Send>().size(), 2u);
  for (const uint64_t message : {both[0].packet.message, both[1].packet.message, third}) bench.sent(message);
  bench.expect_idle();
}

// For random regions, the packets contain the regions' bytes, in order; each packet but the last is full.
TEST(StreamingPut, AnyRegionsMakeTheSameBytes) {
  Random random(test_seed(), "regions");
  for (int round = 0; round < 200; ++round) {
    StreamBench bench;
    std::vector<PutRegion> regions;
    std::vector<uint64_t> expected;  // offsets in the memory, byte by byte
    const uint64_t count = 1 + random.below(20);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t offset = random.below(64);
      regions.push_back({offset, random.below(65 - offset)});
      for (uint64_t byte = 0; byte < regions.back().length; ++byte) expected.push_back(offset + byte);
    }
    std::vector<Send> sent;
    const auto take = [&] {
      for (const Send& send : bench.actions<Send>()) sent.push_back(send);
    };
    bench.good(bench.start(expected.size(), regions.front()));
    take();
    for (uint64_t i = 1; i < count; ++i) {
      bench.good(bench.append(regions[i]));
      take();
    }
    bench.good(bench.append({}, true));
    take();
    std::vector<uint64_t> found;
    for (const Send& send : sent) {
      EXPECT_EQ(send.packet.offset, found.size());
      for (const auto& [offset, length] : bench.pieces(send)) {
        for (uint64_t byte = 0; byte < length; ++byte) found.push_back(offset + byte);
      }
      EXPECT_EQ(send.packet.payload.length, found.size() - send.packet.offset);
      EXPECT_TRUE(send.last || send.packet.payload.length == 16);
    }
    ASSERT_EQ(found, expected) << replay(test_seed());
    EXPECT_TRUE(sent.back().last);
    bench.sent(sent.back().packet.message);
    bench.expect_idle();
  }
}

}  // namespace
}  // namespace spinloom::nic
