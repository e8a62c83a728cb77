// Nics - the NICs of all ranks as the driver of their host programs: ports, one clock, and who has something to read.
//
// Contract: a NIC has performed the commands of `Setup` before time 0, the clock's time when create() of a driver
//   returns. The watcher is called with a rank whenever its host may have something new to read. release() says that a
//   rank's host will do no more. trouble() is an error if a NIC could not do what it was asked.
// Threads: one owner. Time: modelled, that of the clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "nic/command.hpp"
#include "nic/nic.hpp"
#include "portals/port.hpp"
#include "sim/event_queue.hpp"
#include "sim/profile.hpp"

namespace spinloom::goal {

using Setup = std::function<std::vector<nic::Command>(uint32_t rank)>;
using Watcher = std::function<void(uint32_t rank)>;

class Nics {
 public:
  virtual ~Nics() = default;
  [[nodiscard]] virtual sim::EventQueue& clock() = 0;
  // The reference is good until the next call for this rank after it was released.
  [[nodiscard]] virtual portals::Port& port(uint32_t rank) = 0;
  virtual void watch(Watcher watcher) = 0;
  virtual void release(uint32_t rank) = 0;
  // Bytes of an atomic.
  [[nodiscard]] virtual uint64_t atomic_bytes_most() const = 0;
  [[nodiscard]] virtual Status trouble() const = 0;
};

[[nodiscard]] inline uint64_t atomic_bytes_of(const sim::Profile& profile) {
  const nic::NicLimits limits;
  return std::min<uint64_t>(
      {limits.atomic_bytes, limits.fetch_atomic_bytes, static_cast<uint64_t>(profile.link.payload)});
}

// What a NIC says at the end of a run in which nothing may have failed.
[[nodiscard]] inline Status trouble_of(uint32_t rank, const nic::Nic& nic) {
  const nic::NicState state = nic.state();
  if (state.dropped_messages > 0) {
    return fail(Code::exhausted, "the NIC of rank ", rank, " dropped ", state.dropped_messages, " messages: more than ",
                nic.limits().unexpected_headers,
                " waited for their receives (NicLimits::unexpected_headers); post receives earlier, or use "
                "--fidelity nic");
  }
  if (state.failed_commands == 0 && state.refused_packets == 0) return {};
  return fail(Code::fault, "the NIC of rank ", rank, " refused ", state.failed_commands, " commands and ",
              state.refused_packets, " packets: ", nic.waiting());
}

}  // namespace spinloom::goal
