// Packets that wait for room: the memory that peers faster than handlers may use, and their order at a peer's end.
#include "live/node/backlog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "live/testing/live_testbed.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::live {
namespace {

using portals::Interface;
using Over = LiveTestbed::Over;

constexpr uint64_t handled_bits = 1, plain_bits = 2;
constexpr uint32_t packet_bytes = 2048;

// Waits at the gate, then takes a while; if it names a rank, it puts its packet to that rank's plain entry.
class SlowHandlers final : public testbed::ScenarioHandlers {
 public:
  explicit SlowHandlers(std::chrono::microseconds pause) : pause_(pause) {
    for (uint32_t target = 0; target < 3; ++target) {
      entries_[target] = handlers_.add([this, target](spin::NativeHandler& handler) {
        while (!open) std::this_thread::yield();
        std::this_thread::sleep_for(pause_);
        ++runs;
        if (target < 2) put_back(handler, target);
        return spin::HandlerOutcome{};
      });
    }
  }
  [[nodiscard]] Result<testbed::TestHandlers> find(std::string_view name) override {
    return testbed::TestHandlers{0, entries_[name == "0" ? 0 : name == "1" ? 1 : 2], {}};
  }
  [[nodiscard]] spin::HandlerRunner& runner() override { return handlers_; }

  std::atomic<bool> open{true};
  std::atomic<uint64_t> runs{0};

 private:
  static void put_back(spin::NativeHandler& handler, uint32_t target) {
    nic::HandlerCall put;
    put.call = SPL_CALL_PUT_FROM_DEVICE;
    put.local_memory = nic::LocalMemory::packet;
    put.local = const_cast<uint8_t*>(handler.frame().packet.data());
    put.length = handler.frame().packet.size();
    put.target = target;
    put.match_bits = plain_bits;
    handler.call(put);
  }

  std::chrono::microseconds pause_;
  spin::NativeHandlers handlers_;
  uint32_t entries_[3] = {};
};

// Two ranks with one portal table entry each, little room, and entries for handlers and for memory.
struct Flood {
  Flood(std::chrono::microseconds pause, Over over, const ShmOptions& options = {})
      : handlers(std::make_shared<SlowHandlers>(pause)), memory(1 << 20) {
    for (std::vector<uint8_t>& one : landing) one.resize(memory.size());
    nic::NicLimits limits;
    limits.payload_bytes = packet_bytes;
    limits.transfer_bytes = uint64_t{1} << 40;
    limits.hpus = 4;
    limits.packet_buffer_bytes = 16 * packet_bytes;
    auto made = LiveTestbed::create(2, limits, options, Time{20'000'000}, handlers, over);
    SPL_ASSERT(made.ok(), made.error().message);
    bed = std::move(*made);
  }
  // Gives rank `at` entries; the handlers' own puts go to rank `back`, or nowhere.
  void open(uint32_t at, const std::string& back) {
    Interface& host = bed->rank(at);
    queue = host.eq_alloc(1 << 14).value();
    portal = host.pt_alloc(queue).value();
    for (const uint64_t bits : {handled_bits, plain_bits}) {
      nic::Entry entry;
      entry.start = landing[at].data();
      entry.length = landing[at].size();
      entry.match_bits = bits;
      entry.options.ct_comm = true;
      entry.options.event_comm_disable = true;
      entry.counter = landed[at][bits - 1] = host.ct_alloc().value();
      if (bits == handled_bits) {
        nic::Context context;
        const auto found = bed->handlers(back).value();
        context.image = found.image;
        context.payload_entry = found.payload_entry;
        entry.context = host.context_create(context).value();
        entry.options.event_comm_disable = false;
      }
      SPL_ASSERT(host.me_append(portal, entry).ok(), "append");
    }
  }
  void put(uint32_t from, uint64_t length) {
    nic::Put put;
    put.local = memory.data();
    put.length = length;
    put.target = nic::Rank{1 - from};
    put.portal = portal;
    put.match_bits = handled_bits;
    put.event_send_disable = true;
    SPL_ASSERT(bed->rank(from).put(put).ok(), "put");
  }
  void wait(uint32_t at, uint64_t bits, uint64_t count) {
    EXPECT_EQ(bed->rank(at).ct_wait(landed[at][bits - 1], count).value().success, count);
  }
  void expect_bounded() {
    for (const uint32_t rank : {0u, 1u}) {
      EXPECT_LT(bed->backlog_peak(rank).packets, 2 * Backlog::stop_at.packets);
      EXPECT_LT(bed->backlog_peak(rank).bytes, 2 * Backlog::stop_at.bytes);
    }
    EXPECT_EQ(bed->refused(), 0u);
  }

  std::shared_ptr<SlowHandlers> handlers;
  std::vector<uint8_t> memory;  // the source of all puts
  std::vector<uint8_t> landing[2];
  std::unique_ptr<LiveTestbed> bed;
  nic::QueueId queue;
  nic::PortalIndex portal;
  nic::CounterId landed[2][2];
};

class Backlogs : public testing::TestWithParam<Over> {};

TEST_P(Backlogs, AFloodCostsNoMoreThanItsBound) {
  Flood flood(std::chrono::microseconds(50), GetParam());
  flood.open(1, "nobody");
  constexpr uint64_t small = 6000, large = 3000;
  for (uint64_t i = 0; i < small; ++i) flood.put(0, 100);
  for (uint64_t i = 0; i < large; ++i) flood.put(0, packet_bytes);
  flood.wait(1, handled_bits, small + large);
  if (GetParam() != Over::lossy_udp) {  // the handlers may be as fast where so much is lost
    EXPECT_GE(flood.bed->backlog_peak(1).packets, Backlog::stop_at.packets / 2) << "it was a flood";
  }
  flood.expect_bounded();
}

TEST_P(Backlogs, LongMessagesAreNotCopiedWhileTheyWait) {
  Flood flood(std::chrono::microseconds(20), GetParam());
  flood.open(1, "nobody");
  constexpr uint64_t messages = 30, length = 512 << 10;
  for (uint64_t i = 0; i < messages; ++i) flood.put(0, length);
  flood.wait(1, handled_bits, messages);
  EXPECT_GE(flood.handlers->runs, messages * length / packet_bytes);
  flood.expect_bounded();
}

// Each rank waits for the other's handlers, which put to it.
TEST_P(Backlogs, FloodsBothWaysWhoseHandlersPutBackEnd) {
  Flood flood(std::chrono::microseconds(20), GetParam());
  flood.open(0, "1");
  flood.open(1, "0");
  constexpr uint64_t messages = 5000;
  for (uint64_t i = 0; i < messages; ++i) {
    for (const uint32_t from : {0u, 1u}) flood.put(from, 1000);
  }
  for (const uint32_t rank : {0u, 1u}) {
    flood.wait(rank, handled_bits, messages);
    flood.wait(rank, plain_bits, messages);
  }
  flood.expect_bounded();
}

INSTANTIATE_TEST_SUITE_P(Over, Backlogs, testing::Values(Over::shared_memory, Over::udp, Over::lossy_udp, Over::fabric),
                         [](const auto& over) {
                           return over.param == Over::udp         ? "Udp"
                                  : over.param == Over::fabric    ? "Fabric"
                                  : over.param == Over::lossy_udp ? "LossyUdp"
                                                                  : "SharedMemory";
                         });

// A message that has begun, and others behind it, wait for handlers while their sender leaves.
TEST(Backlog, WhatAPeerSentBeforeItsEndIsDeliveredFirst) {
  Flood flood(std::chrono::microseconds(0), Over::shared_memory, {CopyMode::twice});
  flood.open(1, "nobody");
  flood.handlers->open = false;
  constexpr uint64_t messages = 40, length = 5 * packet_bytes;
  for (uint64_t i = 0; i < messages; ++i) flood.put(0, length);
  // All packets have come: three are in the packet buffer, the rest of one packet and all others are not.
  while (flood.bed->backlog_peak(1).packets < messages - 3) std::this_thread::yield();
  flood.bed->leave(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to hear of the end
  flood.handlers->open = true;
  for (uint64_t i = 0; i < messages; ++i) {
    const auto event = flood.bed->rank(1).eq_wait(flood.queue);
    ASSERT_TRUE(event.ok()) << event.error().message;
    EXPECT_EQ(event->kind, nic::EventKind::put);
    EXPECT_EQ(event->fail, nic::Fail::ok) << "message " << i;
    EXPECT_EQ(event->manipulated_bytes, length);
  }
  EXPECT_EQ(flood.handlers->runs, messages * 5);
}

}  // namespace
}  // namespace spinloom::live
