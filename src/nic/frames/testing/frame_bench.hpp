// Test support - a NIC whose driver performs at once what the test does not want to see, and keeps the rest.
//
// Contract: arrive() gives a frame; store() ends its way to packet memory. Handlers start by themselves; done() ends
//   one. What the NIC has asked for since the last call is in `actions`; runs() are the handlers that have started.
// Threads: one owner. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "nic/frames/nic.hpp"
#include "nic/spin/testing/replay.hpp"
#include "spinloom/handler.h"

namespace spinloom::frames {

struct Bench {
  explicit Bench(const Limits& limits = {}) {
    auto made = Nic::create(limits);
    EXPECT_TRUE(made.ok()) << made.error().message;
    nic = std::move(*made);
    memory.resize(nic->packet_memory().bytes());
    host.resize(1 << 16);
  }

  // Rule set `number` takes frames whose first byte is `number`; frames with 0x80 in byte 1 are the last of a message.
  void rules(uint32_t sets) {
    std::vector<RuleSet> given;
    for (uint32_t set = 0; set < sets; ++set) {
      given.push_back({RuleMode::all, {{0, 0xff, set, set}}, {0, 0x8000, 0x8000, 0x8000}});
    }
    ASSERT_TRUE(nic->configure(given).ok());
  }
  static Context handlers(bool header, bool payload, bool completion) {
    Context context;
    if (header) context.header_entry = 1;
    if (payload) context.payload_entry = 2;
    if (completion) context.completion_entry = 3;
    return context;
  }
  void install(uint32_t id, Context context) {
    context.handler_host_start = reinterpret_cast<uint64_t>(host.data());
    context.handler_host_length = host.size();
    const Status made = nic->install(ContextId{id}, {context, false});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(nic->activate(ContextId{id}).ok());
  }

  // A frame for rule set `set`; `message` goes where the matching unit looks for the identifier.
  static std::vector<uint8_t> frame(uint8_t set, uint32_t message, bool last, uint32_t length = 64) {
    std::vector<uint8_t> bytes(length);
    for (uint32_t i = 2; i < length; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + message);
    bytes[0] = set;
    bytes[1] = last ? 0x80 : 0;
    for (uint32_t i = 0; i < 4 && 44 + i < length; ++i) bytes[44 + i] = static_cast<uint8_t>(message >> 8 * i);
    return bytes;
  }

  void arrive(const std::vector<uint8_t>& bytes, bool at_once = true) {
    PayloadRef reference;
    reference.space = PayloadRef::Space::local;
    reference.bytes = bytes.data();
    reference.length = bytes.size();
    nic->on_frame(reference, actions);
    if (at_once) settle();
  }
  // Copies frames to packet memory and keeps everything else.
  void settle() {
    for (size_t next = 0; next < actions.list.size(); ++next) {
      if (const auto* store = std::get_if<StoreFrame>(&actions.list[next])) {
        const StoreFrame copy = *store;
        std::copy_n(copy.bytes.bytes, copy.bytes.length, memory.data() + copy.address);
        nic->on_stored(copy.packet, memory.data() + copy.address, actions);
      }
    }
    for (const Action& action : actions.list) {
      if (const auto* run = std::get_if<RunHandler>(&action)) running.push_back(run->her);
      if (!std::holds_alternative<StoreFrame>(action)) seen.push_back(action);
    }
    actions.clear();
    nic->check_invariants();
  }
  void done(const Her& her, uint32_t code = SUCCESS, HandlerEnd end = HandlerEnd::returned, uint64_t cycles = 10) {
    nic->on_handler_done(her.id, end, code, actions, cycles);
    settle();
  }
  Her next() {
    if (running.empty()) {
      ADD_FAILURE() << "no handler has started: " << nic->describe_waiting();
      return {};
    }
    const Her her = running.front();
    running.pop_front();
    return her;
  }
  template <class Kind>
  std::vector<Kind> take() {
    std::vector<Kind> found;
    for (const Action& action : seen) {
      if (const auto* one = std::get_if<Kind>(&action)) found.push_back(*one);
    }
    seen.clear();
    return found;
  }
  void expect_quiet() const {
    const State state = nic->state();
    EXPECT_EQ(state.packets, 0u);
    EXPECT_EQ(state.hers, 0u);
    EXPECT_EQ(state.dmas_open, 0u);
    EXPECT_EQ(state.hpus_busy, 0u);
    EXPECT_EQ(state.egress_waiting, 0u);
  }

  std::unique_ptr<Nic> nic;
  std::vector<uint8_t> memory;
  std::vector<uint8_t> host;
  Actions actions;
  std::vector<Action> seen;
  std::deque<Her> running;
};

}  // namespace spinloom::frames
