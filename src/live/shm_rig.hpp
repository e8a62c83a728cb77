// ShmRig - for tests: two ends of the shared-memory transport in one process, and a record of their clients' calls.
//
// Contract: start() makes an end, put() sends, poll() lets both ends work until nothing is left to do.
// Threads: none but the test's. Time: none.
#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "live/live_testbed.hpp"
#include "live/shm_transport.hpp"

namespace spinloom::live {

// A client that records its calls, with the bytes.
class Listener final : public TransportClient {
 public:
  [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t loan) override {
    packets.push_back(packet);
    auto& bytes = payloads.emplace_back(packet.payload.length);
    if (packet.payload.space == nic::PayloadRef::Space::peer) {
      const auto address = reinterpret_cast<uint64_t>(packet.payload.bytes);
      if (from.fetch_with_help(packet.source, address, bytes.data(), bytes.size(), packets.size())) return true;
      readable.push_back(from.fetch(packet.source, address, bytes.data(), bytes.size()).ok());
    } else if (!bytes.empty()) {
      std::memcpy(bytes.data(), packet.payload.bytes, bytes.size());
    }
    if (!keeps || packet.payload.space != nic::PayloadRef::Space::peer) return true;
    kept.push_back(loan);
    return false;
  }
  void sent(const Reading& reading) override { read.push_back(reading.message); }
  void fetched(uint64_t token, bool well) override { fetches.emplace_back(token, well); }
  void lost(nic::Rank peer) override { gone.push_back(peer.value); }

  std::vector<nic::Packet> packets;
  std::vector<std::vector<uint8_t>> payloads;
  std::vector<bool> readable;
  std::vector<uint64_t> read;
  std::vector<std::pair<uint64_t, bool>> fetches;  // packet, counted from 1, and whether all bytes came
  std::vector<uint32_t> gone;
  bool keeps = false;  // true: it keeps lent payloads until the test calls taken()
  std::vector<uint64_t> kept;
};

struct Rig {
  explicit Rig(const ShmOptions& given = {}) : options(given) {
    auto made = LocalJob::create(2);
    SPL_ASSERT(made.ok(), made.error().message);
    job = std::move(*made);
    for (uint32_t rank = 0; rank < 2; ++rank) job.cards[rank].user = 70 + rank;
  }
  void start(uint32_t rank) {
    ends[rank] = std::make_unique<ShmTransport>(heard[rank], job.segments[rank], rank, job.cards, options,
                                                [](int, nic::Rank) {});
  }
  // Polls until both ends have nothing to do.
  void poll() {
    for (bool happened = true; happened;) {
      happened = false;
      for (const auto& end : ends) happened = (end && end->poll()) || happened;
    }
  }
  // A put of rank `from`, whose `message` is also its match bits.
  bool put(uint32_t from, uint64_t message, const std::vector<uint8_t>& bytes) {
    return put(from, message, bytes.data(), bytes.size());
  }
  bool put(uint32_t from, uint64_t message, const uint8_t* bytes, uint64_t length) {
    nic::Send outbound;
    outbound.packet.source = nic::Rank{from};
    outbound.packet.target = nic::Rank{1 - from};
    outbound.packet.message = message;
    outbound.packet.message_length = length;
    outbound.packet.fields.match_bits = message;
    outbound.packet.payload = {nic::PayloadRef::Space::local, bytes, length};
    outbound.last = true;
    return ends[from]->send(outbound);
  }

  ShmOptions options;
  LocalJob job;
  Listener heard[2];
  std::unique_ptr<ShmTransport> ends[2];
};

inline std::vector<uint8_t> some(uint64_t length, uint64_t seed) {
  Random random(seed, "bytes");
  std::vector<uint8_t> bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

}  // namespace spinloom::live
