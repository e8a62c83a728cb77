// Puts that are whole in one packet take a short way, whose results must be those of the general way. An entry whose
// memory is a scatter list of one element takes the general way, an entry with the same memory as a range the short
// way. Half of the portal table entries have flow control, and a queue that is full now and then.
#include <memory>
#include <tuple>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

auto fields_of(const Event& event) {
  return std::tuple(event.kind, event.fail, event.initiator, event.portal, event.entry, event.match_bits,
                    event.requested_bytes, event.manipulated_bytes, event.remote_offset, event.hdr_data, event.user_ptr,
                    event.in_overflow, event.dropped_bytes, event.user, event.atomic, event.datatype);
}
auto fields_of(const Packet& ack) {
  const MessageFields& told = ack.fields;
  return std::tuple(ack.operation, ack.source, ack.target, ack.message, ack.message_length, told.portal_index,
                    told.ack_request, told.remote_offset, told.manipulated_bytes, told.fail);
}

void expect_alike(const Bench& shorter, const Bench& longer) {
  ASSERT_EQ(shorter.out.work.entries_searched, longer.out.work.entries_searched);
  ASSERT_EQ(shorter.out.work.matched_by_message, longer.out.work.matched_by_message);
  ASSERT_EQ(shorter.out.list.size(), longer.out.list.size());
  for (size_t i = 0; i < shorter.out.list.size(); ++i) {
    const Action& a = shorter.out.list[i];
    const Action& b = longer.out.list[i];
    ASSERT_EQ(a.index(), b.index());
    if (const auto* write = std::get_if<DmaWrite>(&a)) {
      const auto& other = std::get<DmaWrite>(b);
      ASSERT_EQ(write->host - shorter.memory.data(), other.host - longer.memory.data());
      ASSERT_EQ(write->source.bytes - shorter.source, other.source.bytes - longer.source);
      ASSERT_EQ(write->source.length, other.source.length);
      ASSERT_EQ(write->dma, other.dma);
    } else if (const auto* post = std::get_if<PostEvent>(&a)) {
      ASSERT_EQ(post->queue, std::get<PostEvent>(b).queue);
      ASSERT_EQ(fields_of(post->event), fields_of(std::get<PostEvent>(b).event));
      const uint64_t start =
          post->event.start == 0 ? 0 : post->event.start - reinterpret_cast<uint64_t>(&shorter.memory[0]);
      const uint64_t other = std::get<PostEvent>(b).event.start;
      ASSERT_EQ(start, other == 0 ? 0 : other - reinterpret_cast<uint64_t>(&longer.memory[0]));
    } else if (const auto* counted = std::get_if<PostCounter>(&a)) {
      ASSERT_EQ(counted->counter, std::get<PostCounter>(b).counter);
      ASSERT_EQ(counted->value, std::get<PostCounter>(b).value);
    } else {
      ASSERT_EQ(fields_of(std::get<Send>(a).packet), fields_of(std::get<Send>(b).packet));
    }
  }
}

TEST(Delivery, TheShortWayTellsWhatTheLongWayTells) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  uint64_t landed = 0;
  uint64_t refused = 0;
  uint64_t disabled = 0;
  for (int round = 0; round < 400; ++round) {
    Bench shorter;
    Bench longer;
    const IovecElement whole{longer.memory.data(), 12};
    const bool flow_control = random.chance(1, 2);
    std::vector<std::shared_ptr<QueueIndex>> indices;
    for (Bench* bench : {&shorter, &longer}) {
      bench->good(CounterAlloc{CounterId{0}});
      if (!flow_control) continue;
      indices.push_back(std::make_shared<QueueIndex>());
      bench->good(QueueAlloc{QueueId{1}, 4 + 1, 1, indices.back()});
      bench->portal = PortalIndex{1};
      bench->good(PortalAlloc{bench->portal, QueueId{1}, true});
    }
    for (uint32_t i = 0; i < 6; ++i) {
      Entry entry;
      entry.length = 12;  // packets bring up to 16 bytes
      entry.match_bits = random.below(3);
      entry.user_ptr = i;
      if (random.chance(1, 4)) entry.match_rank = Rank{static_cast<uint32_t>(random.below(2))};
      if (random.chance(1, 4)) entry.user = 3;
      EntryOptions& options = entry.options;
      options.op_put = random.chance(7, 8);
      options.use_once = random.chance(1, 2);
      options.no_truncate = random.chance(1, 4);
      options.ack_disable = random.chance(1, 4);
      options.event_comm_disable = random.chance(1, 4);
      options.event_success_disable = random.chance(1, 4);
      options.event_unlink_disable = random.chance(1, 4);
      options.ct_comm = random.chance(1, 2);
      options.ct_bytes = random.chance(1, 2);
      if (options.ct_comm) entry.counter = CounterId{0};
      entry.start = shorter.memory.data();
      shorter.append(entry);
      entry.start = longer.memory.data();
      entry.iovec = {&whole, 1};
      longer.append(entry);
    }
    std::vector<DmaId> open;
    for (uint64_t message = 1; message < 20; ++message) {
      const uint64_t length = 1 + random.below(16);
      Packet packet = shorter.packet(message, length, 0, random.below(3));
      packet.source = Rank{static_cast<uint32_t>(random.below(2))};
      packet.fields.user = random.chance(1, 2) ? 3 : 0;
      packet.fields.ack_request = static_cast<AckRequest>(random.below(4));
      shorter.arrive(packet);
      packet.payload.bytes = longer.source;
      longer.arrive(packet);
      ASSERT_NO_FATAL_FAILURE(expect_alike(shorter, longer));
      for (const DmaWrite& write : shorter.actions<DmaWrite>()) open.push_back(write.dma);
      while (!open.empty() && (message == 19 || random.chance(1, 2))) {
        const size_t at = random.below(open.size());
        shorter.dma_done(open[at]);
        longer.dma_done(open[at]);
        open.erase(open.begin() + static_cast<ptrdiff_t>(at));
        ASSERT_NO_FATAL_FAILURE(expect_alike(shorter, longer));
        ++landed;
      }
      ASSERT_EQ(shorter.nic.state().messages_open, longer.nic.state().messages_open);
      ASSERT_EQ(shorter.nic.state().dropped_messages, longer.nic.state().dropped_messages);
      if (!flow_control || !random.chance(1, 4)) continue;
      for (const auto& index : indices) index->taken = index->posted.load();
      for (Bench* bench : {&shorter, &longer}) bench->good(PortalEnable{bench->portal, true});
    }
    refused += shorter.nic.state().dropped_messages;
    for (const Telemetry which : {Telemetry::messages, Telemetry::packets, Telemetry::bytes}) {
      ASSERT_EQ(shorter.good(TelemetryRead{which, {}}), longer.good(TelemetryRead{which, {}}));
    }
    disabled += shorter.good(TelemetryRead{Telemetry::portals_disabled, {}});
    ASSERT_EQ(shorter.good(TelemetryRead{Telemetry::portals_disabled, {}}),
              longer.good(TelemetryRead{Telemetry::portals_disabled, {}}));
    shorter.expect_idle();
    longer.expect_idle();
  }
  EXPECT_GT(landed, 1000u);
  EXPECT_GT(refused, 500u);
  EXPECT_GT(disabled, 200u);
}

// The line of Nic::describe_waiting() names messages of the general way.
TEST(Delivery, UnderFlowControlTheShortWayIsForWhatMakesNoEvent) {
  for (const bool flow_control : {false, true}) {
    for (const bool has_event : {false, true}) {
      Bench bench;
      bench.good(QueueAlloc{QueueId{1}, 4 + 1, 1, std::make_shared<QueueIndex>()});
      bench.portal = PortalIndex{1};
      bench.good(PortalAlloc{bench.portal, QueueId{1}, flow_control});
      Entry entry = bench.entry();
      entry.options.use_once = true;
      entry.options.event_comm_disable = true;
      entry.options.event_unlink_disable = !has_event;
      bench.append(entry);
      bench.arrive(1, 16, 0);
      const bool general = bench.nic.describe_waiting().find("message 1 of rank 0") != std::string::npos;
      EXPECT_EQ(general, flow_control && has_event);
      EXPECT_EQ(bench.land().size(), has_event ? 1u : 0u);
      bench.expect_idle();
    }
  }
}

TEST(Delivery, AnOpenMessageOfTheSameNameIsNotDelivered) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 32, 0);
  const DmaId first = bench.only<DmaWrite>().dma;
  bench.arrive(1, 16, 0);
  EXPECT_TRUE(bench.out.list.empty());
  EXPECT_EQ(bench.nic.state().refused_packets, 1u);
  bench.arrive(1, 32, 16);
  const DmaId second = bench.only<DmaWrite>().dma;
  bench.dma_done(first);
  bench.dma_done(second);
  bench.expect_idle();
}

}  // namespace
}  // namespace spinloom::nic
