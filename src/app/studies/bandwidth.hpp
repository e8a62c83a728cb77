// Bandwidth - measures how fast a clustered NIC moves blocks from its memory to the host, without handlers.
//
// Contract: in run_bandwidth() every core does what the cores of the accelerator do in SC'19 datatypes paper, section
//   4.3.1: again and again it copies one block from L2 to the cluster's memory, sends the block to the host with a
//   DMA, and goes on when the block has left. Blocks are dealt to the cores in turn. A transfer costs the core the
//   stores and the load of its command; Fabric prices the rest. PCIe is a sink that is never full. A lower bound:
//   cycles a block and cluster >= dma_setup + block / dma_width      (each direction of its engine)
// Invariants: (1) bytes really move and are compared with their source before a number is given; (2) the same
//   config gives the same result on every machine.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::app {

struct BandwidthConfig {
  simulated::Profile profile;  // profile of a clustered NIC
  uint32_t hpus = 32;
  uint64_t block_bytes = 256;
  uint64_t total_bytes = uint64_t{16} << 20;  // a multiple of the block, at most 1 GiB
  uint64_t seed = 1;
};

struct BandwidthResult {
  uint64_t blocks = 0;
  int64_t time_ps = 0;  // the time from the first command until the last byte has left
};

// Code::unsupported for a NIC whose packets do not go to the memory of clusters, Code::mismatch if a byte arrived
// wrong.
[[nodiscard]] Result<BandwidthResult> run_bandwidth(const BandwidthConfig& config);

// Returns the profile of the same NIC with all packets in its memory at time zero, so that link, matching and input
// port cause no delay (SC'19 datatypes paper, section 4.3.2).
[[nodiscard]] simulated::Profile preloaded(simulated::Profile profile);

}  // namespace spinloom::app
