// Stages - the time that a live NIC spends on each kind of work.
//
// Contract: enter() books the host time since the last enter() to the stage that was entered then, and returns that
//   stage, so that an inner piece of work gives it back; count() books frames, or handlers for Stage::handlers. Time is
//   taken once for a batch and stage, so that counting costs next to nothing.
// Threads: one owner. Time: host cycles (live/node/host_counter.hpp); ns_per_cycle() compares them with the clock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "live/node/host_counter.hpp"

namespace spinloom::ethernet {

enum class Stage : uint8_t {
  waiting,  // nothing to do, or what the host does in this process
  receive,  // frames are taken from the wire's port
  match,  // rule sets, packet slots
  store,  // frames go to packet memory, and into the queues of messages
  handlers,  // handlers run to their ends, with their calls, and the host does its part while they wait
  transmit,  // frames go to the wire's port, and the slots back
  to_host,  // frames go to the host's port
  from_host,
};
inline constexpr size_t stage_count = 8;

[[nodiscard]] constexpr const char* name_of(Stage stage) {
  constexpr const char* names[stage_count] = {"waiting",  "receive",  "match",   "store",
                                              "handlers", "transmit", "to host", "from host"};
  return names[static_cast<size_t>(stage)];
}

class Stages {
 public:
  struct Spent {
    uint64_t frames = 0;
    uint64_t cycles = 0;
  };

  Stage enter(Stage next) {
    const uint64_t now = live::host_cycles();
    spent_[static_cast<size_t>(current_)].cycles += now - since_;
    since_ = now;
    return std::exchange(current_, next);
  }
  void count(Stage stage, uint64_t frames) { spent_[static_cast<size_t>(stage)].frames += frames; }
  [[nodiscard]] const Spent& operator[](Stage stage) const { return spent_[static_cast<size_t>(stage)]; }

  // Returns the mean since the stages were made, or 0 if no cycle has passed.
  [[nodiscard]] double ns_per_cycle() const {
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - began_;
    const uint64_t cycles = live::host_cycles() - first_;
    return cycles == 0 ? 0 : passed.count() / static_cast<double>(cycles);
  }

 private:
  std::array<Spent, stage_count> spent_{};
  Stage current_ = Stage::waiting;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  uint64_t first_ = live::host_cycles();
  uint64_t since_ = first_;
};

}  // namespace spinloom::ethernet
