// ShmRig - for tests: two ends of the shared-memory transport in one process, each with a Listener.
//
// Contract: start() makes an end, put() sends, poll() lets both ends work until nothing is left to do.
// Threads: none but the test's. Time: none.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "live/node/testing/listener.hpp"
#include "live/shm/shm_transport.hpp"
#include "live/testing/live_testbed.hpp"

namespace spinloom::live {

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

}  // namespace spinloom::live
