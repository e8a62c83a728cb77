// FabricFaults - a port that disturbs the messages of another port, for tests.
//
// Contract: each rate is the share of messages to which this happens: `refuse`, send() returns false, as read() does
//   for such a share of reads; `delay`, the message and all later ones wait; `drop`, it is lost; `corrupt`, one bit
//   changes; `fail`, it ends as undeliverable. Equal seeds give equal faults. A fabric itself neither loses nor damages
//   messages, so after drop, corrupt or fail the transport must count the peer as lost.
// Threads: the owner of the NIC. Time: none; a delay counts calls of poll().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "live/fabric/fabric_port.hpp"

namespace spinloom::live {

struct FabricFaults {
  double refuse = 0, delay = 0, drop = 0, corrupt = 0, fail = 0;
  uint64_t seed = 1;
  [[nodiscard]] bool any() const { return refuse + delay + drop + corrupt + fail > 0; }
};

// Reads a text such as "refuse=0.1,delay=0.05,seed=7".
[[nodiscard]] Result<FabricFaults> read_fabric_faults(const std::string& text);
[[nodiscard]] std::unique_ptr<FabricPort> disturb(std::unique_ptr<FabricPort> port, const FabricFaults& faults);

}  // namespace spinloom::live
