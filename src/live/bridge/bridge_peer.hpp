// BridgeTransport::Peer - one far rank: for each class what waits, what is under way, and what has come.
//
// Invariants: (1) `way` holds what the peer has not given credit for, in the order sent; (2) `granted` is `expected`,
//   but for requests of a peer that is told to stop.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <optional>

#include "live/bridge/bridge_transport.hpp"

namespace spinloom::live {

struct BridgeTransport::Flow {
  // Sending.
  std::deque<WaitingSend> waiting;
  uint64_t next = 0;  // the number of the next frame
  struct Sent {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    bool note = false;
  };
  std::deque<Sent> way;
  uint64_t way_bytes = 0;

  // Receiving.
  uint64_t expected = 0;  // the number of the peer's next frame
  std::map<uint64_t, std::vector<uint8_t>> early;  // frames that have overtaken it, by number
  uint64_t granted = 0;  // the peer has credit for the frames before this one
  uint64_t told = 0;  // and knows of it up to here
  uint64_t untold_bytes = 0;
};

struct BridgeTransport::Peer {
  nic::Rank rank;
  bool lost = false;
  bool forwards_still = false;  // a gateway that has said goodbye: it forwards until all have
  bool stopped = false;  // this rank has no room for its requests
  uint32_t moved = 0;
  uint32_t moved_there = 0;
  Untaken left;  // when it was lost
  std::array<Flow, 2> flows;  // by class
  std::optional<std::array<uint64_t, 2>> end;  // it is lost when the frames before these numbers have come
  Time credit_at = Time::never();

  [[nodiscard]] Flow& flow(wire::BridgeClass of) { return flows[static_cast<size_t>(of)]; }
  [[nodiscard]] bool waits() const { return !flows[0].waiting.empty() || !flows[1].waiting.empty(); }
  [[nodiscard]] bool has_ended() const {
    return end && flows[0].expected >= (*end)[0] && flows[1].expected >= (*end)[1];
  }
};

}  // namespace spinloom::live
