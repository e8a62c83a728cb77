// BridgeTransport::Peer - one far rank: packets that wait, frames under way, and frames received, for each class.
//
// Invariants: (1) `in_flight` holds the frames with packets for which the peer has not given credit, in the order sent;
//   (2) `granted` equals `expected`, except for requests of a peer that was told to stop.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <optional>

#include "live/bridge/bridge_transport.hpp"

namespace spinloom::live {

struct BridgeTransport::Flow {
  // The sending direction.
  std::deque<WaitingSend> waiting;
  uint64_t next = 0;  // the number of the next frame to send
  struct Sent {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    bool is_ack = false;
  };
  std::deque<Sent> in_flight;
  uint64_t in_flight_bytes = 0;

  // The receiving direction.
  uint64_t expected = 0;  // the number of the peer's next frame that has not been taken
  std::map<uint64_t, std::vector<uint8_t>> early;  // frames that arrived before frame `expected`, by number
  uint64_t granted = 0;  // this rank gives the peer credit for all frames before this number
  uint64_t announced = 0;  // the value of `granted` in the latest frame that was sent to the peer
  uint64_t unannounced_bytes = 0;
};

struct BridgeTransport::Peer {
  nic::Rank rank;
  bool lost = false;
  bool still_forwards = false;  // true: a gateway that has said goodbye, but still forwards until all ranks have left
  bool stopped = false;  // this rank has told the peer that it has no room for requests
  uint32_t resume_count = 0;
  uint32_t peer_resume_count = 0;
  Outstanding outstanding_at_loss;  // the result of outstanding() at the time when the peer was lost
  std::array<Flow, 2> flows;  // indexed by BridgeClass
  // The peer is lost once all frames before these numbers have come.
  std::optional<std::array<uint64_t, 2>> end_numbers;
  Time credit_at = Time::never();

  [[nodiscard]] Flow& flow(wire::BridgeClass of) { return flows[static_cast<size_t>(of)]; }
  [[nodiscard]] bool waits() const { return !flows[0].waiting.empty() || !flows[1].waiting.empty(); }
  [[nodiscard]] bool has_ended() const {
    return end_numbers && flows[0].expected >= (*end_numbers)[0] && flows[1].expected >= (*end_numbers)[1];
  }
};

}  // namespace spinloom::live
