// Quick puts: where the engine calls a put or a packet quick, the results are those of the general way, count for
// count and event for event; otherwise nothing has happened. Two engines get the same history, each by one way.
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

NicLimits limits_at_once() {
  NicLimits limits = small_limits();
  limits.at_once_bytes = 12;
  return limits;
}

// The effects of a call that the host sees: bytes, events, counts.
struct Seen {
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, uint64_t>> events;
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t>> counts;
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> values;  // values of counters
  std::vector<uint8_t> memory;

  // The general way also reports counts that add nothing; they are left out.
  void count(CounterId counter, const CounterValue& value) {
    auto& known = values[counter.value];
    if (std::exchange(known, {value.success, value.failure}) == known) return;
    counts.emplace_back(counter.value, value.success, value.failure);
  }
};

class QuickPair {
 public:
  explicit QuickPair(Random& random) : random_(random) {
    for (Bench* bench : {&quick_, &slow_}) {
      for (uint32_t i = 0; i < 3; ++i) bench->good(CounterAlloc{CounterId{i}});
      bench->good(CounterAutoReset{CounterId{2}, 3});
      bench->good(QueueAlloc{QueueId{1}, 4 + 1, 1, bench == &quick_ ? quick_index_ : slow_index_});
      bench->good(PortalAlloc{flow_portal, QueueId{1}, true});
      bench->good(PortalAlloc{PortalIndex{2}, QueueId{}});
    }
    for (uint32_t i = 0; i < 4; ++i) append();
  }

  void append() {
    Entry made;
    made.length = 12;  // packets bring up to 16 bytes
    made.match_bits = random_.below(2);
    made.user_ptr = random_.next();
    if (random_.chance(1, 4)) made.match_rank = Rank{static_cast<uint32_t>(random_.below(2))};
    if (random_.chance(1, 4)) made.user = 3;
    EntryOptions& options = made.options;
    options.op_put = random_.chance(7, 8);
    options.use_once = random_.chance(1, 6);
    options.manage_local = random_.chance(1, 8);
    options.no_truncate = random_.chance(1, 4);
    options.ack_disable = random_.chance(1, 4);
    options.event_comm_disable = random_.chance(1, 3);
    options.event_success_disable = random_.chance(1, 4);
    options.ct_comm = random_.chance(2, 3);
    options.ct_bytes = random_.chance(1, 2);
    if (options.ct_comm) made.counter = CounterId{static_cast<uint32_t>(random_.below(3))};
    const EntryId id{next_entry_++};
    const PortalIndex portal{static_cast<uint32_t>(random_.below(3))};
    for (Bench* bench : {&quick_, &slow_}) {
      made.start = bench->memory.data();
      bench->good(Append{id, portal, ListKind::priority, made});
    }
  }

  // A command that waits for a counter, so that counting there is not quick.
  void trigger() {
    const CounterId on{static_cast<uint32_t>(random_.below(2))};
    const uint64_t threshold = 1 + random_.below(40);
    for (Bench* bench : {&quick_, &slow_}) bench->good(CounterInc{CounterId{1}, {1, 0}}, Trigger{on, threshold, 0});
    settle();
  }

  void arrive(uint64_t message) {
    const uint64_t length = 1 + random_.below(16);
    Packet packet = slow_.packet(message, length, 0, random_.below(2));
    packet.source = Rank{static_cast<uint32_t>(random_.below(2))};
    packet.fields.user = random_.chance(1, 2) ? 3 : 0;
    packet.fields.portal_index = static_cast<uint32_t>(random_.below(4));
    packet.fields.remote_offset = random_.below(4) == 0 ? random_.below(14) : 0;
    packet.fields.ack_request = random_.chance(1, 8) ? AckRequest::ct_ack : AckRequest::none;
    std::vector<uint8_t> bytes(length);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.next());
    packet.payload.bytes = bytes.data();
    QuickLanding landing;
    if (quick_.nic.quick_landing(packet, landing)) {
      ++landed;
      if (PortalIndex{packet.fields.portal_index} == flow_portal) ++landed_in_flow;
      std::memcpy(landing.host, bytes.data(), landing.length);
      if (landing.queue.exists()) note(quick_seen_, quick_, landing.queue, landing.event);
      note(landing.count);
    } else {
      perform(quick_, quick_seen_, [&] { quick_.arrive(packet); });
    }
    perform(slow_, slow_seen_, [&] { slow_.arrive(packet); });
  }

  void put() {
    Put put;
    put.local = slow_.source;
    put.length = random_.below(14);
    put.target = Rank{static_cast<uint32_t>(random_.below(3)) + 2};
    put.portal = PortalIndex{0};
    put.counter = CounterId{static_cast<uint32_t>(random_.below(4))};  // the last one does not exist
    put.ct_send = random_.chance(1, 2);
    put.ct_bytes = random_.chance(1, 2);
    put.event_send_disable = true;
    QuickPut asked;
    asked.bytes = put.local;
    asked.length = put.length;
    asked.target = put.target;
    asked.portal = put.portal;
    asked.counter = put.counter;
    if (put.ct_send) asked.counted = put.ct_bytes ? put.length : 1;
    if (const auto message = quick_.nic.quick_put(asked)) {
      ++left;
      quick_messages_.push_back(*message);
      note(quick_.nic.quick_sent(asked));
    } else {
      perform(quick_, quick_seen_, [&] { on_put(quick_, put, quick_messages_); });
    }
    perform(slow_, slow_seen_, [&] { on_put(slow_, put, slow_messages_); });
  }

  void lose(Rank peer) {
    for (Bench* bench : {&quick_, &slow_}) {
      perform(*bench, bench == &quick_ ? quick_seen_ : slow_seen_, [&] {
        bench->out.clear();
        bench->nic.on_peer_lost(peer, bench->out);
      });
    }
  }

  // The host reads its events and lets messages in again.
  void read() {
    for (const auto& index : {quick_index_, slow_index_}) index->taken = index->posted.load();
    for (Bench* bench : {&quick_, &slow_}) bench->good(PortalEnable{flow_portal, true});
  }

  void compare() {
    quick_seen_.memory = quick_.memory;
    slow_seen_.memory = slow_.memory;
    ASSERT_EQ(quick_seen_.events, slow_seen_.events);
    ASSERT_EQ(quick_seen_.counts, slow_seen_.counts);
    ASSERT_EQ(quick_seen_.memory, slow_seen_.memory);
    ASSERT_EQ(quick_messages_, slow_messages_);
    const NicState a = quick_.nic.state();
    const NicState b = slow_.nic.state();
    ASSERT_EQ(
        std::tuple(a.messages_open, a.dropped_messages, a.refused_packets, a.failed_commands, a.triggered_waiting),
        std::tuple(b.messages_open, b.dropped_messages, b.refused_packets, b.failed_commands, b.triggered_waiting));
    ASSERT_EQ(quick_index_->posted, slow_index_->posted);
    for (const Telemetry which :
         {Telemetry::messages, Telemetry::packets, Telemetry::bytes, Telemetry::portals_disabled}) {
      ASSERT_EQ(quick_.good(TelemetryRead{which, {}}), slow_.good(TelemetryRead{which, {}}));
    }
  }

  [[nodiscard]] uint64_t disabled() { return slow_.good(TelemetryRead{Telemetry::portals_disabled, {}}); }

  uint64_t landed = 0, landed_in_flow = 0, left = 0;

 private:
  static void note(Seen& seen, const Bench& bench, QueueId queue, const Event& event) {
    const uint64_t start = event.start == 0 ? 0 : event.start - reinterpret_cast<uint64_t>(bench.memory.data());
    seen.events.emplace_back(queue.value * 100 + static_cast<uint32_t>(event.kind), event.hdr_data ^ event.match_bits,
                             event.manipulated_bytes * 100 + event.requested_bytes, event.user_ptr ^ event.user,
                             start * 100 + event.remote_offset + event.entry.value * 10000);
  }
  void note(const QuickCount& count) {
    if (!count.counter.exists()) return;
    quick_seen_.count(count.counter, count.value);
  }
  static void on_put(Bench& bench, const Put& put, std::vector<uint64_t>& messages) {
    bench.out.clear();
    bench.nic.on_put(put, bench.out);
    for (const Send& send : bench.actions<Send>()) messages.push_back(send.packet.message);
  }

  // A call, followed at once by the calls that its actions ask for, as a driver does.
  template <class Call>
  static void perform(Bench& bench, Seen& seen, Call call) {
    call();
    for (Actions todo = bench.out; !todo.list.empty();) {
      Actions next;
      for (const Action& action : todo.list) {
        if (const auto* write = std::get_if<DmaWrite>(&action)) {
          std::memcpy(write->host, write->source.bytes, write->source.length);
          bench.dma_done(write->dma);
        } else if (const auto* post = std::get_if<PostEvent>(&action)) {
          note(seen, bench, post->queue, post->event);
          continue;
        } else if (const auto* count = std::get_if<PostCounter>(&action)) {
          seen.count(count->counter, count->value);
          continue;
        } else if (const auto* send = std::get_if<Send>(&action)) {
          if (send->at_once || !send->last || send->packet.operation == Operation::ack) continue;
          bench.out.clear();
          bench.nic.on_packet_sent(send->packet.message, bench.out);
        } else if (std::holds_alternative<Continue>(action)) {
          bench.go_on();
        } else {
          continue;
        }
        next.list.insert(next.list.end(), bench.out.list.begin(), bench.out.list.end());
      }
      todo = next;
    }
  }
  void settle() {
    perform(quick_, quick_seen_, [] {});
    perform(slow_, slow_seen_, [] {});
  }

  static constexpr PortalIndex flow_portal{1};  // a portal with flow control, and a queue that is full now and then

  Random& random_;
  std::shared_ptr<QueueIndex> quick_index_ = std::make_shared<QueueIndex>();
  std::shared_ptr<QueueIndex> slow_index_ = std::make_shared<QueueIndex>();
  Bench quick_{limits_at_once()};
  Bench slow_{limits_at_once()};
  Seen quick_seen_, slow_seen_;
  std::vector<uint64_t> quick_messages_, slow_messages_;
  uint32_t next_entry_ = 0;
};

TEST(Quick, BothWaysTellTheSame) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  uint64_t landed = 0;
  uint64_t landed_in_flow = 0;
  uint64_t left = 0;
  uint64_t disabled = 0;
  for (int round = 0; round < 400; ++round) {
    QuickPair pair(random);
    for (uint64_t step = 1; step < 60; ++step) {
      switch (random.below(13)) {
        case 0: pair.append(); break;
        case 1: pair.trigger(); break;
        case 2:
          if (random.chance(1, 20)) pair.lose(Rank{4});
          break;
        case 3:
        case 4:
        case 5:
        case 6: pair.put(); break;
        case 7: pair.read(); break;
        default: pair.arrive(step);
      }
      ASSERT_NO_FATAL_FAILURE(pair.compare()) << "round " << round << ", step " << step;
    }
    landed += pair.landed;
    landed_in_flow += pair.landed_in_flow;
    left += pair.left;
    disabled += pair.disabled();
  }
  EXPECT_GT(landed, 300u);
  EXPECT_GT(landed_in_flow, 10u);
  EXPECT_GT(disabled, 300u);
  EXPECT_GT(left, 1000u);
}

TEST(Quick, WhatWaitsForTheCounterIsNotQuick) {
  Bench bench(limits_at_once());
  bench.good(CounterAlloc{CounterId{0}});
  QuickPut put;
  put.bytes = bench.source;
  put.length = 8;
  put.target = Rank{2};
  put.counter = CounterId{0};
  put.counted = 1;
  EXPECT_TRUE(bench.nic.quick_put(put).has_value());
  bench.good(CounterInc{CounterId{0}, {1, 0}}, Trigger{CounterId{0}, 100, 0});
  EXPECT_FALSE(bench.nic.quick_put(put).has_value());
}

}  // namespace
}  // namespace spinloom::nic
