// BridgeForwarder - the gateway's part of a bridge: it passes frames on between ranks that do not reach each other.
//
// Contract: forward() takes a frame that a neighbour has brought and that is for another rank. It leaves by the next
//   link of its way, at once, or, where messages are stored, when the whole message or half a window of it is here.
//   Credit and other notes never wait.
// Invariants: (1) of two ranks, at most a window of each class and direction is between their last and their next
//   credit: frames beyond are refused. So the memory of all flows has a bound; (2) a frame leaves only if it has come
//   by the way of its source and target, so that no rank speaks for another one behind which it is not; (3) nothing
//   goes to a rank that has said goodbye, or that is lost.
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
  uint64_t frames = 0;  // passed on
  uint64_t bytes = 0;
  uint64_t held = 0;  // of these frames, that waited for the rest of their message
  uint64_t refused = 0;  // off their way, or beyond their window
  uint64_t late = 0;  // for a rank that is gone
  uint64_t way_bytes_peak = 0;  // the most bytes that were passed on or held, and for which no credit had come back
};

class BridgeForwarder {
 public:
  BridgeForwarder(uint32_t rank, uint32_t members, const BridgeRoutes& routes, const BridgeOptions& options,
                  BridgeLinks& links);

  void forward(Time now, nic::Rank hop, const wire::BridgeHeader& header, std::span<const uint8_t> bytes);
  // Passes on what has been held for long enough; returns whether there was something.
  bool on_timer(Time now);
  [[nodiscard]] Time timer() const { return release_at_; }
  [[nodiscard]] bool holds() const { return held_frames_ > 0; }
  // The rank takes nothing more.
  void note_left(nic::Rank rank);
  // All frames of this flow before this number have come here.
  [[nodiscard]] uint64_t whole_until(uint32_t source, uint32_t target, uint8_t of) const;
  [[nodiscard]] bool has_left(nic::Rank rank) const { return left_[rank.value]; }
  // True if all other ranks that have programs have left or are lost.
  [[nodiscard]] bool all_left() const;
  [[nodiscard]] const ForwardCounts& counts() const { return counts_; }

 private:
  using Name = std::tuple<uint32_t, uint32_t, uint8_t>;  // source, target, class
  struct Flow {
    uint64_t credited = 0;  // the target has taken the frames before this number
    std::map<uint64_t, uint64_t> way;  // bytes of those that have come here and are not taken, by number
    std::vector<std::vector<uint8_t>> held;
    uint64_t held_bytes = 0;
    Time held_since{};
  };

  [[nodiscard]] bool admit(const wire::BridgeHeader& header, uint64_t bytes);
  void note_credit(const wire::BridgeHeader& header);
  void release(const Name& name, Flow& flow);
  void pass(uint32_t source, uint32_t target, std::span<const uint8_t> bytes);

  uint32_t rank_;
  uint32_t members_;
  const BridgeRoutes& routes_;
  const BridgeOptions& options_;
  BridgeLinks& links_;
  std::vector<bool> left_;
  std::map<Name, Flow> flows_;
  uint64_t way_bytes_ = 0;
  uint64_t held_frames_ = 0;
  Time release_at_ = Time::never();
  ForwardCounts counts_;
};

}  // namespace spinloom::live
