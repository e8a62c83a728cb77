// Ddt - one cell of the main job: receives a datatype under one strategy on one simulated NIC, and checks the result.
//
// Contract: run_ddt() builds a world of a sender and a receiver, receives one message, compares the whole
//   destination (covered bytes, gaps, guards) with the oracle and only then reports numbers. Code::mismatch
//   carries the first differing byte.
// Invariants: (1) everything in a DdtResult but `destination` and `event_log` is modelled or counted; (2) the same
//   config gives the same result on every machine; (3) recording (`trace`, `sample_dma_queue`, `profile_handlers`)
//   changes none of it.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "base/result.hpp"
#include "portals/strategies/plan.hpp"
#include "portals/strategies/strategy.hpp"
#include "simulated/node/depth_series.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/trace.hpp"

namespace spinloom::app {

struct DdtConfig : Setup {
  std::string type;  // text form
  int64_t count = 1;
  strategies::Strategy strategy = strategies::Strategy::seek;
  bool unexpected = false;  // the receive is posted when the message has landed
  std::optional<strategies::HandlerCost> cost;  // checkpoint strategies use it; none: calibrated
  bool preloaded = false;         // all packets are on the NIC before time starts
  uint64_t interval_packets = 0;  // packets between checkpoints; 0: by the rule of the strategy
  bool profile_handlers = false;  // count the cycles of handlers by function
  bool trace = false;             // record spans of the receiving node
  bool sample_dma_queue = false;  // record the depth of its DMA queue
};

struct DdtResult {
  int64_t size_bytes = 0;
  int64_t blocks = 0;
  int64_t regions = 0;  // blocks; each packet boundary inside a block adds a region
  int64_t pieces = 0;  // runs of the blob's walk; each packet boundary inside a run adds a piece
  int64_t packets = 0;
  int64_t time_ps = 0;  // first byte at the NIC until the host has read the completion, or has unpacked
  int64_t data_time_ps = 0;  // first byte at the NIC until the last byte that the NIC writes is in host memory
  int64_t processing_time_ps = 0;  // first byte at the NIC until the last handler has ended and its data has left
  int64_t line_time_ps = 0;  // the message's bytes at line rate: the bound that no strategy beats
  uint64_t nic_memory_bytes = 0;
  uint64_t nic_bytes_moved = 0;  // NIC memory written and scatter list read for one message
  uint64_t iovec_refills = 0;
  uint64_t handlers = 0;
  uint64_t handler_cycles = 0;
  uint64_t handler_cycles_max = 0;
  uint64_t handler_first_call_cycles = 0;  // cycles until the first call, summed over handlers
  uint64_t handler_first_call_cycles_min = 0;
  uint64_t handler_instructions = 0;
  std::map<std::string, uint64_t> function_cycles;  // the cycles of all handlers by function, if profile_handlers
  uint64_t dma_writes = 0;
  uint64_t dma_bytes = 0;
  uint64_t dma_queue_peak = 0;
  uint64_t writes_under_way_peak = 0;
  int64_t writes_under_way_ps = 0;  // time in flight, summed over the writes
  uint64_t packet_buffer_peak_bytes = 0;
  uint64_t host_line_fetches = 0;
  uint64_t host_line_writebacks = 0;
  uint64_t prepared_blocks = 0;  // blocks that the host walks before the first message, for checkpoints or lists
  // These six are for ro-cp and rw-cp.
  uint64_t checkpoints = 0;
  uint64_t checkpoint_bytes = 0;        // the bytes of one copy
  uint64_t paper_checkpoint_bytes = 0;  // the bytes of one copy in the SC'19 paper's configuration
  uint64_t interval_packets = 0;
  bool interval_exceeds_epsilon = false;
  bool interval_memory_decided = false;

  std::vector<uint8_t> destination;
  std::vector<uint8_t> event_log;

  // Recordings that were asked for, in the world's time.
  simulated::Trace trace;
  simulated::DepthSeries dma_queue;
  int64_t first_byte_ps = 0;  // the time when the first byte was at the NIC; time_ps counts from there
};

[[nodiscard]] Result<DdtResult> run_ddt(const DdtConfig& config);

}  // namespace spinloom::app
