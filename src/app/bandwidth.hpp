// Bandwidth - how fast a clustered NIC moves blocks that lie in its memory to the host, without handlers.
//
// Contract: run_bandwidth() lets every core do what SC'19 datatypes paper, section 4.3.1, lets the cores of its
//   accelerator do: again and again copy one block from L2 to the cluster's memory, then send it to the host with a
//   DMA, and go on when it has left. Blocks are dealt to the cores in turn. A transfer costs the core the stores and
//   the load of its command; the rest is Fabric's. PCIe is a sink that is never full.
//     cycles a block and cluster >= dma_setup + block / dma_width      (each direction of its engine)
// Invariants: (1) bytes really move and are compared with their source before a number is given; (2) the same
//   config gives the same result on every machine.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sim/profile.hpp"

namespace spinloom::app {

struct BandwidthConfig {
  sim::Profile profile;  // of a clustered NIC
  uint32_t hpus = 32;
  uint64_t block_bytes = 256;
  uint64_t total_bytes = uint64_t{16} << 20;  // a multiple of the block
  uint64_t seed = 1;
};

struct BandwidthResult {
  uint64_t blocks = 0;
  int64_t time_ps = 0;  // from the first command until the last byte has left
};

// Code::unsupported for a NIC without clusters, Code::mismatch when a byte arrived wrong.
[[nodiscard]] Result<BandwidthResult> run_bandwidth(const BandwidthConfig& config);

// The profile of the same NIC with all packets in its memory before time starts: no link, matching or input port
// holds them up (SC'19 datatypes paper, section 4.3.2).
[[nodiscard]] sim::Profile preloaded(sim::Profile profile);

}  // namespace spinloom::app
