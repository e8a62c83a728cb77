// The parts of the Ethernet NIC's engine, for its sources. nic.hpp has the contract.
//
// A frame in packet memory is a Packet; so are mail, a call by the host and an initialisation, which have no frame. Its
// `uses` counts the handlers that run or will run on it, and one more while its message keeps it for the completion
// handler; at zero its slot is free.
#pragma once

#include <array>

#include "nic/frames/nic.hpp"
#include "nic/spin/dma_tracker.hpp"
#include "nic/spin/executions.hpp"
#include "nic/spin/handler_requests.hpp"
#include "nic/spin/message_index.hpp"
#include "nic/spin/packet_buffer.hpp"
#include "nic/spin/slab.hpp"
#include "nic/spin/table.hpp"

namespace spinloom::frames {

struct Packet {
  std::optional<PacketAllocator::Slot> slot;  // none: mail, or a handler that the host runs
  PayloadRef bytes;  // bytes in packet memory
  ContextId context;
  uint32_t message = no_slot;  // the message's slot; none: frames of this context are handled one by one
  uint32_t identifier = 0;  // the message's identifier; mail: its value
  bool first = false;
  bool last = false;
  bool by_host = false;
  ContextId sender;  // mail: the context that sent it
  uint64_t argument = 0;  // mail: the word that its sender passes to the handler
  uint32_t uses = 0;
  uint32_t next = no_slot;  // the packet that waits behind this one
  DmaQueue dmas;
  RingHeader ring;  // frames that go to host memory
};

// The header handler's verdict on the frames of its message.
enum class Verdict : uint8_t { process, drop, to_host };

// A message goes through the phases of PsPIN's message queues: begins -> header -> payload -> draining -> completion.
enum class Phase : uint8_t { begins, header, payload, draining, completion };

struct Message {
  ContextId context;
  uint32_t identifier = 0;
  Phase phase = Phase::begins;
  Verdict verdict = Verdict::process;
  uint32_t first_waiting = no_slot;  // packets in packet memory, linked by `next`
  uint32_t last_waiting = no_slot;
  uint32_t storing = 0;  // packets on their way to packet memory
  uint32_t running = 0;  // handlers that are ready or run
  uint32_t last_packet = no_slot;  // the last frame's packet, until the completion handler has seen it
  uint64_t newest_frame = 0;  // its newest frame, by number among all matched frames

  [[nodiscard]] bool is_idle() const { return storing == 0 && running == 0 && first_waiting == no_slot; }
};

struct Ring {
  uint64_t written = 0;
  uint64_t read = 0;
};

struct InstalledContext {
  ContextOptions options;
  TelemetryCounts telemetry{};
  Ring ring;
  uint32_t packets = 0;  // packets under way
  uint32_t mails = 0;  // mails among `packets`
  bool active = false;
  bool initialising = false;

  void tally(Telemetry which, uint64_t by = 1) { telemetry[static_cast<uint8_t>(which)] += by; }
  [[nodiscard]] bool has_messages() const {
    return options.handlers.header_entry.has_value() || options.handlers.completion_entry.has_value();
  }
};

struct Nic::Impl {
  Impl(const Limits& limits_, PacketAllocator allocator);

  // nic.cpp: frames
  void receive_frame(const PayloadRef& bytes, Actions& out);
  void frame_stored(uint32_t packet, uint8_t* place, Actions& out);
  void bypass(const PayloadRef& bytes, Count reason, Actions& out);
  [[nodiscard]] std::optional<uint32_t> find_message(ContextId context, uint32_t identifier);
  void to_memory(uint32_t packet, Actions& out);
  void transmit(Actions& out);
  void egress_done(const EgressFrame& frame, Actions& out);

  // nic_message.cpp
  void push_waiting(Message& message, uint32_t packet);
  uint32_t pop_waiting(Message& message);
  [[nodiscard]] uint32_t begin_message(ContextId context, uint32_t identifier);
  void advance(uint32_t message, Actions& out);
  void give_packet(uint32_t message, uint32_t packet, Actions& out);
  void end_message(uint32_t message, Actions& out);
  [[nodiscard]] bool free_oldest_queue();
  void forget_message(uint32_t message);

  // nic_handler.cpp
  void ready(HandlerKind kind, uint32_t packet);
  void dispatch(Actions& out);
  void handler_done(HerId her, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out);
  void apply_outcome(const Execution& execution, HandlerEnd end, uint32_t code, Actions& out);
  void handler_finished(uint32_t packet, HandlerKind kind, Actions& out);
  void release(const Execution& execution, Actions& out);
  void end_use(uint32_t packet);

  // nic_calls.cpp
  [[nodiscard]] CallResult answer_call(Execution& caller, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult send_call(Execution& caller, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult mail_call(const Execution& caller, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult telemetry_call(const Execution& caller, const HandlerCall& call, Actions& out) const;
  void dma_done(DmaId dma, Actions& out);

  // nic_invariants.cpp
  void check_invariants() const;

  void tally(Count which, uint64_t by = 1) { counts[static_cast<uint8_t>(which)] += by; }
  void tally(ContextId context, Telemetry which, uint64_t by = 1) { contexts.find(context)->tally(which, by); }

  Limits limits;
  Matcher matcher;
  PacketAllocator packet_memory;
  Egress egress;
  Counts counts{};
  Table<ContextId, InstalledContext> contexts;
  Slab<Packet> packets;
  Slab<Message> messages;
  MessageIndex<ContextId> message_index;  // the key is the context and the identifier
  PacketBuffer no_buffer{0};  // executions count no bytes: slots are counted by the allocator
  Executions executions{no_buffer};
  Scheduler scheduler;
  DmaTracker dmas;
  HandlerRequests requests{dmas};
  uint64_t matched = 0;  // frames matched so far
};

}  // namespace spinloom::frames
