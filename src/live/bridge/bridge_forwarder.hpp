// BridgeForwarder - the gateway's part of a bridge: passes frames on between ranks that do not reach each other.
//
// Contract: forward() takes a frame for another rank from the neighbour that has delivered it. Usually the frame leaves
//   at once, by the next link of its path. A gateway that stores messages keeps frames of packets until the message is
//   whole, until half a window of it has arrived, or for `hold_max`. Credit and other notes never wait.
// Invariants: (1) for each source, target and class, the gateway admits at most a window of frames for which no credit
//   has come by; it refuses further frames. So the memory of all flows has a bound; (2) a frame leaves only if it has
//   come along the path between its source and its target, so a neighbour can speak only for ranks behind it; (3)
//   after note_left() of a rank, only the notes `leave` and `left` still go to it.
// Threads: the owner of the NIC. Time: an argument.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "live/bridge/bridge_links.hpp"
#include "live/bridge/bridge_options.hpp"
#include "live/bridge/bridge_routes.hpp"
#include "nic/wire/bridge_frame.hpp"

namespace spinloom::live {

struct ForwardCounts {
  uint64_t frames = 0;  // frames passed on
  uint64_t bytes = 0;
  uint64_t held = 0;  // frames that waited for the rest of their message
  uint64_t refused = 0;  // frames that were not on their path, or beyond their window
  uint64_t late = 0;  // frames for a rank that has left, or to which there is no link
  uint64_t in_flight_bytes_peak = 0;  // the most bytes of frames that were admitted and without credit at one time
};

class BridgeForwarder {
 public:
  BridgeForwarder(uint32_t rank, uint32_t program_count, const BridgeRoutes& routes, const BridgeOptions& options,
                  BridgeLinks& links);

  void forward(Time now, nic::Rank hop, const wire::BridgeHeader& header, std::span<const uint8_t> bytes);
  // Passes on the frames that have been held for `hold_max`. Returns true if there were any.
  bool on_timer(Time now);
  [[nodiscard]] Time timer() const { return release_at_; }
  [[nodiscard]] bool holds() const { return held_frames_ > 0; }
  // Records that the rank takes nothing more, and drops what is held for it.
  void note_left(nic::Rank rank);
  // Returns a number such that all frames of this flow before it have come here.
  [[nodiscard]] uint64_t whole_until(uint32_t source, uint32_t target, uint8_t of) const;
  [[nodiscard]] bool has_left(nic::Rank rank) const { return left_[rank.value]; }
  // True if all other ranks with programs have left or are lost.
  [[nodiscard]] bool all_left() const;
  [[nodiscard]] const ForwardCounts& counts() const { return counts_; }

 private:
  using FlowKey = std::tuple<uint32_t, uint32_t, uint8_t>;  // source, target, class
  struct Flow {
    uint64_t credited = 0;  // the target has taken the frames before this number
    std::map<uint64_t, uint64_t> in_flight;  // bytes of the admitted frames that the target has not taken, by number
    std::vector<std::vector<uint8_t>> held;
    uint64_t held_bytes = 0;
    Time held_since{};
  };

  [[nodiscard]] bool admit(const wire::BridgeHeader& header, uint64_t bytes);
  void note_credit(const wire::BridgeHeader& header);
  void release(const FlowKey& key, Flow& flow);
  void pass(uint32_t source, uint32_t target, std::span<const uint8_t> bytes);

  uint32_t rank_;
  uint32_t program_count_;
  const BridgeRoutes& routes_;
  const BridgeOptions& options_;
  BridgeLinks& links_;
  std::vector<bool> left_;
  std::map<FlowKey, Flow> flows_;
  uint64_t in_flight_bytes_ = 0;
  uint64_t held_frames_ = 0;
  Time release_at_ = Time::never();
  ForwardCounts counts_;
};

}  // namespace spinloom::live
