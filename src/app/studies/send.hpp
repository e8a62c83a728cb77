// Send - one cell of the sender's side: sends a datatype under one strategy to a contiguous receive, and checks it.
//
// Contract: run_send() builds a world of a sender and a receiver, sends one message, and compares the receiver's
//   memory (every byte and the guards around) with the packed bytes of the type map, as the oracle packs them. Only
//   then it reports numbers. Code::mismatch carries the first differing byte.
// Invariants: (1) everything in a SendResult but `destination`, `event_log` and `trace` is a modelled number; (2) the
//   same config gives the same result on every machine; (3) recording (`trace`) changes none of it.
// Threads: any number of calls side by side. Time: modelled, in ps; send_time_ps counts from the sender's call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "base/result.hpp"
#include "portals/strategies/send.hpp"
#include "simulated/node/trace.hpp"

namespace spinloom::app {

struct SendConfig : Setup {
  std::string type;  // text form
  int64_t count = 1;
  strategies::SendStrategy strategy = strategies::SendStrategy::outbound_seek;
  bool trace = false;  // record spans of the sending node
};

struct SendResult {
  int64_t size_bytes = 0;
  int64_t blocks = 0;
  int64_t regions = 0;  // blocks; each packet boundary inside a block adds a region
  int64_t packets = 0;
  int64_t pieces = 0;        // runs of the blob's walk; each packet boundary inside a run adds a piece
  int64_t send_time_ps = 0;  // the call at the sender until the last byte is in the receiver's memory
  int64_t free_time_ps = 0;  // the call at the sender until its program can read that it may change the memory
  int64_t host_busy_ps = 0;  // the time in which the sender's program packs, walks, and posts calls
  int64_t line_time_ps = 0;  // the time that the link needs for the message's bytes
  uint64_t host_calls = 0;
  uint64_t nic_memory_bytes = 0;
  uint64_t handlers = 0;
  uint64_t handler_cycles = 0;
  uint64_t handler_cycles_max = 0;
  uint64_t handler_instructions = 0;
  uint64_t dma_reads = 0;
  uint64_t dma_read_bytes = 0;
  uint64_t dma_reads_peak = 0;
  uint64_t outbound_packets_peak = 0;
  uint64_t host_line_fetches = 0;
  uint64_t host_line_writebacks = 0;
  uint64_t prepared_blocks = 0;

  std::vector<uint8_t> destination;
  std::vector<uint8_t> event_log;

  simulated::Trace trace;  // a recording in the world's time, if SendConfig::trace
  int64_t called_ps = 0;  // the time when the sender called; send_time_ps counts from there
};

[[nodiscard]] Result<SendResult> run_send(const SendConfig& config);

}  // namespace spinloom::app
