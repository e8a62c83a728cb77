// NodeCode - the codes of a node's scheduled events; shared by the files of Node only.
#pragma once

#include <cstdint>

namespace spinloom::simulated {

enum NodeCode : uint32_t {
  command_arrives,  // argument: slot of the command
  parse_ends,
  her_ready,     // argument: HER
  handler_ends,  // argument: slot of the ended handler
  dma_ends,      // argument: slot of the DMA
  dma_source_read,  // argument: slot of the DMA
  fetch_ends,    // argument: slot of the fetch
  atomic_ends,   // argument: the number of the DMA
  store_ends,    // argument: slot of the store
  host_reads,    // argument: slot of the delivery
  continues,
  work_done,
  iovec_refilled,
  read_asked,  // argument: slot of the gathered packet
  read_here,  // argument: slot of the gathered packet
  reply_read,  // argument: slot of the short reply
};

}  // namespace spinloom::simulated
