// Scenarios - small distributed programs over Interface that every driver must get right.
//
// Contract: run() drives all ranks of the testbed from one thread, with several messages in flight. It checks bytes
//   (whole buffers with guard zones) and events, and returns a trace: for each message the order and the fields of
//   its events. The tag `confluent` means that the trace is the same under every driver and seed; `racy` means that
//   it may differ, and only what the scenario checks holds. Content, and in some scenarios sizes, follow from the seed.
//
// Handlers that a testbed provides by name. Their constants are two 32-bit words, block and stride in bytes, except for
// exchange, whose constants are a rank and match bits.
//   scatter   payload: the packed byte p goes to (p / block) * stride + p % block of the entry, by one DMA without
//             event for each piece; completion: an empty DMA with event
//   exchange  payload: gets the peer's bytes at the packet's offset, writes their exclusive or with the packet there,
//             and adds 1 to both words of the peer's entry at match bits + 1
//   gather    payload, of a process-put: byte p of the message is (p / block) * stride + p % block of the put's memory
//   drop      payload: returns DROP
//   fail      payload: returns FAIL for packets at an offset above 0, otherwise SUCCESS
//   fault     payload: makes a call that does not exist; completion: an empty DMA with event, which never comes
//
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "portals/testbed/testbed.hpp"

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
