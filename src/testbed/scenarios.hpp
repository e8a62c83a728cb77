// Scenarios - small distributed programs over Interface that every driver must get right.
//
// Contract: run() drives all ranks of the testbed from one thread, with several messages in flight, checks bytes
//   (whole buffers with guard zones) and events, and returns a trace: for each message the order and the
//   fields of its events. Tags: `confluent`, the trace is the same under every driver and seed; `racy`, it may
//   differ, but what the scenario checks holds. Content and sizes follow from the seed.
// Handlers that a testbed provides by name (constants: two 32-bit words, block and stride in bytes):
//   scatter   payload: packed byte p goes to (p / block) * stride + p % block of the entry, one DMA without event
//             a piece; completion: an empty DMA with event
//   exchange  constants: rank and match bits; payload: gets the peer's bytes at the packet's offset, writes their
//             exclusive or with the packet there, adds 1 to both words of the peer's entry at match bits + 1
//   gather    payload, of a process-put: byte p of the message is (p / block) * stride + p % block of the put's memory
//   drop      payload: returns DROP
//   fail      payload: returns FAIL for packets at an offset above 0, else SUCCESS
//   fault     payload: makes a call that does not exist; completion: an empty DMA with event (which never comes)
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "testbed/testbed.hpp"

namespace spinloom::testbed {

enum class ScenarioTag : uint8_t { confluent, racy };

struct Scenario {
  const char* name = nullptr;
  ScenarioTag tag = ScenarioTag::confluent;
  uint32_t ranks = 2;
  Result<std::string> (*run)(Testbed& bed, uint64_t seed) = nullptr;
};

[[nodiscard]] std::span<const Scenario> scenarios();

}  // namespace spinloom::testbed
