// Listener - for tests: a client of a transport that records its calls, with the bytes.
//
// Contract: payloads of peers are fetched when they arrive; with `keeps`, the test calls return_loan() for them later.
//   some() makes random bytes.
// Threads: the test's. Time: none.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "live/node/transport.hpp"

namespace spinloom::live {

class Listener final : public TransportClient {
 public:
  [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t loan) override {
    packets.push_back(packet);
    auto& bytes = payloads.emplace_back(packet.payload.length);
    if (packet.payload.space == nic::PayloadRef::Space::peer) {
      const auto address = reinterpret_cast<uint64_t>(packet.payload.bytes);
      if (!from.fetch_with_help(packet.source, address, bytes.data(), bytes.size(), packets.size())) {
        readable.push_back(from.fetch(packet.source, address, bytes.data(), bytes.size()).ok());
      }
    } else if (!bytes.empty()) {
      std::memcpy(bytes.data(), packet.payload.bytes, bytes.size());
    }
    if (!keeps || packet.payload.space != nic::PayloadRef::Space::peer) return true;
    kept.push_back(loan);
    return false;
  }
  void sent(const SendCompletion& completion) override { read.push_back(completion.message); }
  void fetched(uint64_t token, bool succeeded) override { fetches.emplace_back(token, succeeded); }
  void lost(nic::Rank peer) override { gone.push_back(peer.value); }

  std::vector<nic::Packet> packets;
  std::vector<std::vector<uint8_t>> payloads;
  std::vector<bool> readable;
  std::vector<uint64_t> read;
  std::vector<std::pair<uint64_t, bool>> fetches;  // packet, counted from 1, and whether all bytes came
  std::vector<uint32_t> gone;
  bool keeps = false;  // true: it keeps lent payloads until the test calls return_loan()
  std::vector<uint64_t> kept;
};

inline std::vector<uint8_t> some(uint64_t length, uint64_t seed) {
  Random random(seed, "bytes");
  std::vector<uint8_t> bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

}  // namespace spinloom::live
