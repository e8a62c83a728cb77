// HandlerRun - sends messages to an entry whose context is one handler image, and reports all that can be seen.
//
// Contract: run_handler() builds a world of two ranks. Rank 0 puts the messages, one behind the other, to the first
//   byte of rank 1's entry (match bits 1), and has an entry that takes every answer. Rank 1's context has the
//   handlers that the image defines; without handlers (`image_name` empty) the bytes just land, for comparison. The
//   result has the final contents of memories, the events of the hosts with their times, and the handlers' actions.
//   The caller compares the bytes, because only the author of a handler knows the right ones.
//   go_on(), called every few thousand events, ends the run early if it returns false: the result then holds what has
//   happened by then, and is not complete.
// Errors: no message, an unknown image or one without handlers, NIC memory that does not suffice, and handlers that run
//   without end (limits::handlers_a_packet_max for each packet), as one that puts to its own entry may.
// Invariants: (1) the same config gives the same result on every machine; (2) any other misbehaviour of a handler is
//   part of the result, not an Error.
// Threads: any number of calls side by side. Time: modelled, in ps from the first put.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "simulated/node/handler_log.hpp"

namespace spinloom::app {

struct HandlerConfig : Setup {
  std::string image_name;  // one of `images`; empty: no handlers
  std::vector<uint8_t> message;
  uint32_t messages = 1;
  uint64_t hdr_data = 0;
  uint32_t user_header_bytes = 0;
  bool ask_ack = false;
  uint64_t budget_cycles = limits::handler_budget_cycles;
  // The contents of memories before the first message.
  std::vector<uint8_t> constants;
  std::vector<uint8_t> state;
  std::vector<uint8_t> entry;
  std::vector<uint8_t> handler_memory;
  std::vector<uint8_t> reply;  // the sender's entry for answers
  bool trace = false;
  bool profile_instructions = false;
};

struct HostEvent {
  int64_t time_ps = 0;  // the time when the host can read the event
  uint32_t rank = 0;
  nic::Event event;
};

struct HandlerResult {
  bool complete = true;
  Time start;  // the first put
  int64_t time_ps = 0;  // the time until rank 1's host knows that the last message has ended; -1 if it never does
  int64_t first_byte_ps = 0;  // the time of the first byte at rank 1's NIC; -1 if none came
  int64_t last_handler_ps = 0;  // its end; 0 if none ran
  int64_t data_landed_ps = 0;  // the time when the newest byte was in rank 1's memory; 0 if none came
  std::vector<HostEvent> events;
  nic::CounterValue counter;  // counter of rank 1's entry
  std::vector<uint8_t> state;
  std::vector<uint8_t> entry;
  std::vector<uint8_t> handler_memory;
  std::vector<uint8_t> reply;
  uint64_t packets = 0;
  uint64_t dma_writes = 0;
  uint64_t dma_bytes = 0;
  std::array<simulated::HandlerStatistics, 3> handlers;  // one for each nic::HandlerKind
  simulated::HandlerLog log;
  simulated::Trace trace;
  std::map<std::string, uint64_t> function_cycles;
  std::vector<hpu::InstructionProfile> instructions;  // one for the image; none without an image, or if not asked for
};

[[nodiscard]] Result<HandlerResult> run_handler(const HandlerConfig& config, const std::function<bool()>& go_on);

}  // namespace spinloom::app
