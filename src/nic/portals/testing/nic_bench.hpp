// Bench - drives a NIC's engine by hand, for tests: each call keeps its actions, so that a test can compare them
// exactly.
//
// Contract: helpers for the usual objects (queue 0, portal 0) and messages; actions<T>() are those of the last call.
//   Each call checks the NIC's invariants.
// Threads: one owner. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "nic/portals/nic.hpp"
#include "nic/spin/testing/replay.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

inline std::string replay(uint64_t seed) { return spin::replay(seed, "nic"); }

inline NicLimits small_limits() {
  NicLimits limits;
  limits.payload_bytes = 16;
  limits.hpus = 2;
  limits.packet_buffer_bytes = 256;
  limits.nic_memory_bytes = 4096;
  limits.early_packets = 4;
  limits.unexpected_headers = 4;
  return limits;
}

// The acknowledgement that the target of a put sends.
inline Packet ack_for(const Packet& sent, uint64_t manipulated, Fail failure = Fail::ok) {
  Packet ack;
  ack.operation = Operation::ack;
  ack.fields.ack_request = AckRequest::ack;
  ack.source = sent.target;
  ack.target = sent.source;
  ack.message = sent.message;
  ack.fields.manipulated_bytes = manipulated;
  ack.fields.fail = static_cast<uint8_t>(failure);
  return ack;
}

class Bench {
 public:
  static constexpr uint64_t memory_bytes = 1024;

  explicit Bench(const NicLimits& limits = small_limits(), HostMemory* host = nullptr)
      : nic(Rank{1}, limits, host), memory(memory_bytes, 0xee) {
    good(QueueAlloc{queue, 64});
    good(PortalAlloc{portal, queue});
  }

  // Commands.
  Result<uint64_t> give(const CommandBody& body, std::optional<Trigger> trigger = {}) {
    out.clear();
    nic.on_command(Command{body, trigger, 7}, out);
    nic.check_invariants();
    for (const Action& action : out.list) {
      if (const auto* answer = std::get_if<Answer>(&action)) return answer->result;
    }
    return fail(Code::stalled, "no answer");
  }
  uint64_t good(const CommandBody& body, std::optional<Trigger> trigger = {}) {
    const auto result = give(body, trigger);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? *result : 0;
  }
  std::string error(const CommandBody& body, Code code, std::optional<Trigger> trigger = {}) {
    const auto result = give(body, trigger);
    EXPECT_FALSE(result.ok());
    if (result.ok()) return "";
    EXPECT_EQ(name_of(result.error().code), std::string(name_of(code))) << result.error().message;
    return result.error().message;
  }

  Entry entry(uint64_t match_bits = 5) {
    Entry made;
    made.start = memory.data();
    made.length = memory.size();
    made.match_bits = match_bits;
    made.user_ptr = 100 + match_bits;
    return made;
  }
  EntryId append(const Entry& given, ListKind list = ListKind::priority) {
    const EntryId id{next_entry++};
    good(Append{id, portal, list, given});
    return id;
  }
  ContextId context(Context made = {}) {
    const ContextId id{next_context++};
    if (!made.header_entry && !made.payload_entry && !made.completion_entry) made.payload_entry = 1;
    good(ContextCreate{id, made});
    return id;
  }

  // A packet of a message from rank 0. Its payload bytes are arbitrary, because the engine never reads them.
  Packet packet(uint64_t message, uint64_t length, uint64_t offset, uint64_t match_bits = 5) const {
    Packet made;
    made.source = Rank{0};
    made.target = Rank{1};
    made.message = message;
    made.message_length = length;
    made.offset = offset;
    made.payload.space = PayloadRef::Space::local;
    made.payload.bytes = source + offset;
    made.payload.length = std::min<uint64_t>(nic.limits().payload_bytes, length - offset);
    if (made.is_header()) {
      made.fields.portal_index = portal.value;
      made.fields.match_bits = match_bits;
      made.fields.hdr_data = 1000 + message;
      made.fields.ack_request = ack_request;
      made.fields.remote_offset = remote_offset;
    }
    return made;
  }
  void arrive(const Packet& given) {
    out.clear();
    nic.on_packet(given, out);
    nic.check_invariants();
  }
  void arrive(uint64_t message, uint64_t length, uint64_t offset, uint64_t match_bits = 5) {
    arrive(packet(message, length, offset, match_bits));
  }

  // Handlers.
  void her_ready(HerId her) {
    out.clear();
    nic.on_her_ready(her, out);
    nic.check_invariants();
  }
  bool call(HerId her, const HandlerCall& request) {
    out.clear();
    const bool stops = nic.on_handler_call(her, request, out);
    nic.check_invariants();
    return stops;
  }
  void done(HerId her, uint32_t code = SUCCESS, HandlerEnd end = HandlerEnd::returned) {
    out.clear();
    nic.on_handler_done(her, end, code, out);
    nic.check_invariants();
  }
  void dma_done(DmaId dma) {
    out.clear();
    nic.on_dma_done(dma, out);
    nic.check_invariants();
  }
  void go_on() {
    out.clear();
    nic.on_continue(out);
    nic.check_invariants();
  }
  HandlerCall dma_call(uint64_t offset, uint64_t length, uint32_t options = PTL_DMA_NO_EVENT,
                       LocalMemory from = LocalMemory::packet) {
    HandlerCall made;
    made.call = SPL_CALL_DMA_TO_HOST_NB;
    made.options = options;
    made.local_memory = from;
    made.local = const_cast<uint8_t*>(source);
    made.offset = offset;
    made.length = length;
    return made;
  }
  // Starts the handler of a one-packet or further packet and returns its HER.
  HerId start(uint64_t message, uint64_t length, uint64_t offset, uint64_t match_bits = 5) {
    arrive(message, length, offset, match_bits);
    const HerId her = only<BufferPacket>().her;
    her_ready(her);
    EXPECT_EQ(only<RunHandler>().her.id, her);
    return her;
  }
  DmaId issue(HerId her, const HandlerCall& request) {
    EXPECT_FALSE(call(her, request));
    return only<DmaWrite>().dma;
  }

  // Actions of the last call.
  template <class T>
  std::vector<T> actions() const {
    std::vector<T> found;
    for (const Action& action : out.list) {
      if (const auto* one = std::get_if<T>(&action)) found.push_back(*one);
    }
    return found;
  }
  template <class T>
  T only() const {
    const auto found = actions<T>();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? T{} : found.front();
  }
  std::vector<EventKind> kinds() const {
    std::vector<EventKind> found;
    for (const auto& post : actions<PostEvent>()) found.push_back(post.event.kind);
    return found;
  }
  Event event(EventKind kind) const {
    for (const auto& post : actions<PostEvent>()) {
      if (post.event.kind == kind) return post.event;
    }
    ADD_FAILURE() << "no event of kind " << static_cast<int>(kind);
    return {};
  }
  // Completes every DMA of the last call; returns the events of all of them.
  std::vector<Event> land() {
    std::vector<Event> events;
    for (const auto& write : actions<DmaWrite>()) {
      dma_done(write.dma);
      for (const auto& post : actions<PostEvent>()) events.push_back(post.event);
    }
    return events;
  }

  // Expects that nothing is under way and nothing has leaked.
  void expect_idle() const {
    const NicState now = nic.state();
    EXPECT_EQ(now.packet_buffer_used, 0u);
    EXPECT_EQ(now.hpus_busy, 0u);
    EXPECT_EQ(now.hers_waiting, 0u);
    EXPECT_EQ(now.messages_open, 0u);
    EXPECT_EQ(now.early_packets, 0u);
    EXPECT_EQ(now.dmas_open, 0u);
    EXPECT_EQ(now.messages_outgoing, 0u);
  }

  Nic nic;
  Actions out;
  QueueId queue{0};
  PortalIndex portal{0};
  AckRequest ack_request = AckRequest::none;
  uint64_t remote_offset = 0;
  std::vector<uint8_t> memory;
  uint32_t next_entry = 0;
  uint32_t next_context = 0;
  uint8_t source[memory_bytes] = {};
};

}  // namespace spinloom::nic
