// Two stages, messages for them, and the datagrams between them, for the tests of Reliable.
// Threads: none. Time: what a test says.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "nic/wire/datagram.hpp"
#include "nic/wire/reliable.hpp"

namespace spinloom::wire::test {

inline constexpr nic::Rank a{0};
inline constexpr nic::Rank b{1};

inline nic::Packet put_packet(uint64_t message, const std::vector<uint8_t>& bytes, uint64_t offset, uint64_t length) {
  nic::Packet packet;
  packet.source = a;
  packet.target = b;
  packet.message = message;
  packet.message_length = bytes.size();
  packet.offset = offset;
  packet.payload = {nic::PayloadRef::Space::local, bytes.data() + offset, length};
  packet.fields.hdr_data = message;
  return packet;
}

inline std::vector<uint8_t> content(uint64_t message, size_t length) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(message * 37));
  return bytes;
}

inline std::unique_ptr<Reliable> stage(nic::Rank self, nic::Rank peer, const ReliableConfig& config = {},
                                       uint32_t peer_epoch = 1) {
  auto made = std::make_unique<Reliable>(self, config);
  EXPECT_TRUE(made->add_peer(peer, peer_epoch).ok());
  return made;
}

using Datagrams = std::vector<std::vector<uint8_t>>;

inline Datagrams take(Output& out) {
  Datagrams all;
  for (const Output::Transmit& one : out.transmit) {
    all.push_back(out.datagram(one));
  }
  out.transmit.clear();
  out.bytes.clear();
  return all;
}

// Returns what a stage sends when its driver looks after it at once, including acknowledgements that it would delay.
inline Datagrams acks_of(Reliable& stage, Time now, Output& out) {
  stage.acknowledge(now, out);
  return take(out);
}

inline DatagramHeader header_of(const std::vector<uint8_t>& datagram) { return open_datagram({}, datagram)->header; }

// Short times and a small window.
inline ReliableConfig quick_config() {
  ReliableConfig config;
  config.ack_delay = 500_ns;
  config.timeout_first = 5_us;
  config.timeout_min = 2_us;
  config.timeout_max = 100_us;
  config.timeouts_max = 30;
  config.window = 16;
  return config;
}

// Two stages, datagrams that arrive when the test says so, and the time.
struct Pair {
  explicit Pair(const ReliableConfig& config_ = {}) : config(config_), ends{stage(a, b, config), stage(b, a, config)} {}

  // Rank `from` sends a message of its own, which may stay under way.
  void put(uint32_t from, size_t length = 100) {
    buffers.push_back(content(buffers.size(), length));
    nic::Packet packet = put_packet(buffers.size(), buffers.back(), 0, length);
    if (from == 1) std::swap(packet.source, packet.target);
    ASSERT_TRUE(ends[from]->on_send(now, packet, {}, out[from]).ok());
  }
  // Rank `to` takes these; what it sends then waits in `out`.
  void give(uint32_t to, const Datagrams& datagrams) {
    for (const auto& one : datagrams) ASSERT_TRUE(ends[to]->on_datagram(now, one, out[to]).ok());
    if (now >= ends[to]->timer()) ends[to]->on_timer(now, out[to]);
    ends[to]->check_invariants();
  }
  void carry(uint32_t from) { give(1 - from, take(out[from])); }
  // Lets the time-out of rank 0 come.
  void time_out() {
    now = std::max(now, ends[0]->timer());
    ends[0]->on_timer(now, out[0]);
    ends[0]->check_invariants();
  }
  [[nodiscard]] uint64_t in_flight() const { return ends[0]->unacknowledged(b).segments; }

  ReliableConfig config;
  std::unique_ptr<Reliable> ends[2];
  Output out[2];
  Time now{1'000'000};
  std::deque<std::vector<uint8_t>> buffers;
};

}  // namespace spinloom::wire::test
