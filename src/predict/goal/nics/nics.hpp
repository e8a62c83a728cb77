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
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/command.hpp"
#include "nic/portals/nic.hpp"
#include "portals/interface/port.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::goal {

// Takes the packets that NICs send to ranks outside: those that have no NIC here.
class PacketSink {
 public:
  // The packet's first byte would be at the NIC at `head`, which is not before now.
  virtual void on_packet(std::unique_ptr<simulated::Arrival> arrival, Time head) = 0;

 protected:
  ~PacketSink() = default;
};

using Setup = std::function<std::vector<nic::Command>(uint32_t rank)>;
using Watcher = std::function<void(uint32_t rank)>;

class Nics {
 public:
  virtual ~Nics() = default;
  [[nodiscard]] virtual simulated::EventQueue& clock() = 0;
  // The reference is good until the next call for this rank after it was released.
  [[nodiscard]] virtual portals::Port& port(uint32_t rank) = 0;
  virtual void watch(Watcher watcher) = 0;
  virtual void release(uint32_t rank) = 0;
  virtual void connect(PacketSink& sink) = 0;
  // The packets of a message of a rank that has no NIC here are on its link from `at` on, at line rate. `sent` is
  // called when their bytes have been read.
  virtual void inject(std::vector<nic::Packet> packets, Time at, std::function<void()> sent) = 0;
  // The limits of the NIC of a rank that has none here.
  [[nodiscard]] virtual nic::NicLimits limits_outside() const = 0;
  // The most bytes of one atomic.
  [[nodiscard]] virtual uint64_t atomic_bytes_max() const = 0;
  [[nodiscard]] virtual Status trouble() const = 0;
};

// Returns the time from the arrival of a single byte at a NIC until the host knows that it has come.
[[nodiscard]] inline Time arrival_time(const simulated::Profile& profile) {
  const simulated::Pcie pcie(profile);
  const Rate cycle = Rate::cycle_of(profile.hpu.clock);
  const Time read = profile.clustered() ? cycle.time_of_cycles(1 + profile.pulp.dma_latency)
                                        : profile.memory.channel_byte_time.time_of(Bytes{1});
  return std::max(profile.match.header, profile.link.byte_time.time_of(Bytes{1})) + read + pcie.write_duration(1) +
         pcie.write_duration(profile.pcie.event_bytes) + profile.pcie.latency;
}

[[nodiscard]] inline uint64_t atomic_bytes_of(const simulated::Profile& profile) {
  const nic::NicLimits limits;
  return std::min<uint64_t>(
      {limits.atomic_bytes, limits.fetch_atomic_bytes, static_cast<uint64_t>(profile.link.payload)});
}

// Returns an Error if the NIC has dropped, failed or refused anything, in a run in which nothing may fail.
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
              state.refused_packets, " packets: ", nic.describe_waiting());
}

}  // namespace spinloom::goal
