// Strategy - the ways to receive a non-contiguous message.
//
// Threads: plain values. Time: none. Sources: SC'19 datatypes paper, sections 3.2 and 5.3; `seek` is Spinloom's own.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::strategies {

enum class Strategy : uint8_t {
  host_mpitypes,  // RDMA into a buffer, then the host unpacks with a segment (the paper's baseline)
  host_best,      // RDMA into a buffer, then the host unpacks with our copy path
  host_warm,      // the same, message and array in the host's last-level cache, as far as they fit
  rdma_direct,    // contiguous data only: RDMA into its place, nobody unpacks
  iovec,          // Portals 4 scatter list, refilled over PCIe; packets in order only
  specialised,    // a handler for vectors, lists or structs of them
  hpu_local,      // a segment for each virtual HPU, caught up to each packet
  ro_cp,          // read-only checkpoints, copied for each packet
  rw_cp,          // segments from progressing checkpoints, blocked round-robin
  seek,           // no checkpoints: each packet seeks in the blob
};

[[nodiscard]] const char* name_of(Strategy strategy);
[[nodiscard]] Result<Strategy> strategy_named(std::string_view name);

// True if the message lands in a host buffer, which the host's processor unpacks.
[[nodiscard]] constexpr bool unpacks_on_host(Strategy strategy) {
  return strategy == Strategy::host_mpitypes || strategy == Strategy::host_best || strategy == Strategy::host_warm;
}
// True if handlers with NIC memory of their own do the work.
[[nodiscard]] constexpr bool puts_on_nic(Strategy strategy) {
  return !unpacks_on_host(strategy) && strategy != Strategy::iovec && strategy != Strategy::rdma_direct;
}
// True if the strategy has checkpoints; their interval decides what a handler costs.
[[nodiscard]] constexpr bool uses_checkpoints(Strategy strategy) {
  return strategy == Strategy::ro_cp || strategy == Strategy::rw_cp;
}

}  // namespace spinloom::strategies
