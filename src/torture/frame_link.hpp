// FrameLink - the cables between the stations of a run and its NIC: they lose, repeat, delay and damage frames.
//
// Contract: send() puts a frame on its way; next() gives one that has come, with its destination. A damaged frame never
//   comes, because the receiver's Ethernet checksum would find the damage. If any fault has a rate, two of the early
//   frames are sure to have a fault.
// Invariants: the same seed and the same calls give the same frames in the same order.
// Threads: one owner. Time: the caller's.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/units.hpp"
#include "torture/config.hpp"

namespace spinloom::torture {

class FrameLink {
 public:
  struct Frame {
    uint32_t to = 0;  // a station's number; 0: the NIC
    std::vector<uint8_t> bytes;
  };

  FrameLink(const Config& config, uint64_t seed, FaultCounts& faults);
  void send(Time now, Frame frame);
  // Returns a frame that has come by now.
  [[nodiscard]] std::optional<Frame> next(Time now);
  // Returns the time at which the next frame comes; never if none is under way.
  [[nodiscard]] Time earliest() const { return in_flight_.empty() ? Time::never() : in_flight_.begin()->first; }

 private:
  void launch(Time now, Frame frame, bool is_late);

  const Config& config_;
  FaultCounts& faults_;
  Random random_;
  std::multimap<Time, Frame> in_flight_;
  uint64_t frames_ = 0;
  uint64_t certain_faults_[2] = {0, 0};  // numbers of the frames that are sure to have a fault
};

}  // namespace spinloom::torture
