// Nic::Impl - the NIC built of its parts, and the messages that arrive.
//
// Contract: the parts have private state and one noun each: event queues, triggers, contexts, the portal table, the
//   initiator; and, without a word of Portals, packet buffer, executions, DMAs, scheduler, handler requests. Nic::Impl
//   connects them: it takes a message from its first packet to its end. Each verb has a file. Arrivals: nic_receive
//   (packets, matching), nic_delivery (whole puts), nic_quick (puts that find nothing to decide), nic_scatter (scatter
//   lists). Handlers: nic_header (header handlers), nic_handler (handlers start and end), nic_calls and nic_requests
//   (handlers' requests). The rest: nic_reply (gets and atomics at their target), nic_message (the end), nic_lost (lost
//   peers, handlers that the host invokes), nic_command (the host's commands). A public call of Nic that may leave work
//   queued ends with settle().
// Invariants: (1) a message slot lives from its first packet until complete() or lose_message(); executions and DMAs
//   refer to it only while it counts them; (2) the packet buffer holds the bytes of executions, DMAs and early packets,
//   and no others; (3) the NIC asks for a Continue whenever work is queued and no Continue is under way.
// Threads: one owner. Time: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/portals/context_table.hpp"
#include "nic/portals/event_queues.hpp"
#include "nic/portals/handler_work.hpp"
#include "nic/portals/initiator.hpp"
#include "nic/portals/nic.hpp"
#include "nic/portals/portal_table.hpp"
#include "nic/portals/triggers.hpp"
#include "nic/portals/whole_put.hpp"
#include "nic/spin/dma_tracker.hpp"
#include "nic/spin/executions.hpp"
#include "nic/spin/handler_requests.hpp"
#include "nic/spin/message_index.hpp"
#include "nic/spin/packet_buffer.hpp"
#include "nic/spin/scheduler.hpp"

namespace spinloom::nic {

struct Nic::Impl {
  struct IovecCursor {  // the place in the entry's scatter list behind the newest bytes
    uint64_t position = 0;
    uint64_t index = 0;
    uint64_t within = 0;
    uint64_t held = 0;  // the number of the block of config.iovec_entries elements that the NIC holds
  };
  enum class Path : uint8_t {
    waiting,  // packets are here, their header is not
    undecided,  // the header handler has not ended: packets wait in the packet buffer
    direct,  // straight to memory
    handlers,  // packets go to payload handlers
    dropped,  // the header handler dropped the message, or failed: counted as dropped
    discard,  // no entry takes the message: counted, not kept
  };
  struct Message : HandlerWork {
    Rank source;
    uint64_t id = 0;
    Operation operation = Operation::put;
    uint64_t length = 0;
    uint64_t requested = 0;  // rlength: the length, or the bytes that a get asks for
    uint64_t bytes_in = 0;
    Path path = Path::waiting;
    bool header_started = false;
    bool completion_wanted = false;
    bool completion_started = false;
    bool pending = false;  // the header or the completion handler returned a PENDING code
    bool ack_disabled = false;  // the entry wants no acknowledgement
    PortalIndex portal;
    uint32_t entry = no_slot;
    PortalTable::Attached attached;  // the message's attachment to its entry
    MessageFields fields;
    uint64_t offset = 0;  // offset in the entry
    uint64_t landing_bytes = 0;  // mlength: room_bytes if they go straight to memory; for payload handlers, all bytes
    uint64_t room_bytes = 0;  // bytes of the message for which the entry has room
    uint32_t parked_first = no_slot;  // undecided: buffered packets, linked by Execution::next
    uint32_t parked_last = no_slot;
    IovecCursor iovec;
    uint64_t dropped_bytes = 0;
    std::vector<Packet> early;
    bool reply_started = false;
    bool reply_open = false;  // the reply has not been read from its buffer yet
    std::unique_ptr<uint8_t[]> values_before;  // fetch_atomic: the target's values before
    std::vector<uint8_t> invoked_bytes;  // the bytes of a message of the host itself
    uint64_t missing = 0;  // bytes that never come, because the sender gave up or is lost
    bool nothing_landed = false;  // a transfer to or from the entry's memory has failed
  };

  // A put that came in one packet, while it goes straight to its entry's memory.
  struct Delivery : WholePut {
    uint32_t entry = no_slot;
    uint64_t message = 0;
    AckRequest ack_request = AckRequest::none;
  };
  // The result of a walk over a priority list, kept for the general way.
  struct Walk {
    bool done = false;
    uint32_t entry = no_slot;
    uint32_t searched = 0;
  };

  Impl(Rank rank_, const NicLimits& limits_, HostMemory* memory_);

  Rank rank;
  NicLimits config;
  HostMemory* memory;  // null is allowed

  EventQueues queues;
  Triggers triggers;
  ContextTable contexts;
  PortalTable portals;
  PacketBuffer buffer;
  Executions executions;
  DmaTracker dmas;
  Scheduler scheduler;
  HandlerRequests requests;
  Initiator initiator;

  Slab<Message> messages;
  MessageIndex<Rank> message_slots;
  Slab<Delivery> deliveries;
  uint32_t handler_messages = 0;  // messages with a context, among `messages`
  uint32_t early_packets = 0;
  // The number of messages that this NIC had begun when each part of the portal table was set up.
  std::array<uint64_t, limits::portal_tables> begun_at_setup{};
  uint64_t dropped_messages = 0;
  uint64_t refused_packets = 0;
  uint64_t failed_commands = 0;
  std::string last_failure;
  bool continue_asked = false;

  // nic.cpp
  void settle(Actions& out);

  // nic_receive.cpp
  [[nodiscard]] bool is_for_older_table(const Packet& packet) const;
  [[nodiscard]] const PortalTable::Portal* portal_of(const Packet& packet) const;
  // `slot` is that of the packet's message, if it has one.
  [[nodiscard]] bool has_room(const Packet& packet, uint32_t slot) const;
  [[nodiscard]] bool waits_for_place(const Packet& packet) const;
  [[nodiscard]] bool wants_packets(const Packet& packet) const;
  [[nodiscard]] bool well_formed(const Packet& packet) const;
  void receive(const Packet& packet, Actions& out);
  void receive_header(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out);
  void match(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out);
  void attach(uint32_t slot, uint32_t entry, const MatchKey& key);
  void discard(Message& message, Fail failure);
  void refuse(Message& message, Fail failure);
  void disable_portal(Message& message, const PortalTable::Portal& portal, bool post_event);
  [[nodiscard]] bool is_accessible(const ListedEntry& listed, uint64_t offset, uint64_t length, Access access) const;
  void fail_if_memory_is_missing(Message& message) const;
  void accept_payload(uint32_t slot, const Packet& packet, bool buffered, Actions& out);
  void land(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes, Actions& out);

  // nic_lost.cpp
  [[nodiscard]] Status invoke(const Invoke& command, Actions& out);
  void lose_peer(Rank peer, Actions& out);
  void lose_message(uint32_t slot, Actions& out);
  [[nodiscard]] bool is_quiescent(Rank peer) const;
  void readmit(Rank peer, Actions& out);

  // nic_delivery.cpp
  bool deliver(const Packet& packet, Walk& walk, Actions& out);
  void delivered(uint32_t delivery, Actions& out);

  // nic_scatter.cpp
  void scatter(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes, Actions& out);

  // nic_header.cpp
  void route(HerId her, Actions& out);
  void start_header_handler(uint32_t slot, const PayloadRef& first_payload);
  void header_done(uint32_t slot, HandlerEnd end, uint32_t code, Actions& out);

  // nic_handler.cpp
  [[nodiscard]] HandlerWork& work_of(Owner owner);
  [[nodiscard]] const HandlerWork& work_of(Owner owner) const;
  void enqueue(Execution& execution);
  void dispatch(Actions& out);
  void run(HerId her, HpuId hpu, Actions& out);
  void return_hpu(const Scheduler::Place& place, Actions& out);
  bool skip_if_stopped(HerId her, Actions& out);
  void drop_execution(HerId her);
  void release(const Execution& execution);
  void handler_done(HerId her, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out);
  void incoming_done(Message& message, const Execution& execution, HandlerEnd end, uint32_t code, Actions& out);
  void dma_done(DmaId id, Actions& out);
  void fail_dma(DmaId id, Fail failure);
  [[nodiscard]] Event dma_event(Owner owner) const;

  // nic_calls.cpp
  [[nodiscard]] bool handler_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult answer_call(Execution& caller, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult counter_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] HandlerObjects handler_objects(Owner owner) const;
  [[nodiscard]] HostRange entry_range(const Message& message) const;
  [[nodiscard]] HostRange host_range(Owner owner, uint32_t options) const;
  [[nodiscard]] bool is_memory_missing(Owner owner, const HandlerCall& call, uint64_t length, Access access) const;
  [[nodiscard]] static CallResult refuse_dma(HerId her, Actions& out);
  void fail_call(const Execution& caller);

  // nic_requests.cpp
  [[nodiscard]] std::optional<uint8_t*> bytes_of(HerId her, const HandlerCall& call, bool writes) const;
  [[nodiscard]] bool is_too_long(const HandlerCall& call) const;
  [[nodiscard]] Put put_of(HerId her, const HandlerCall& call, uint8_t* local) const;
  [[nodiscard]] CallResult put_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult process_put_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult get_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult atomic_call(HerId her, const HandlerCall& call, Actions& out);
  [[nodiscard]] CallResult answer_failed(HerId her, const Error& error, Actions& out);

  // nic_reply.cpp
  void apply_atomic(uint32_t slot, const PayloadRef& payload, uint64_t buffer_bytes, Actions& out);
  void start_reply(uint32_t slot, Actions& out);
  void reply_sent(uint32_t slot, Actions& out);

  // nic_message.cpp
  void advance(uint32_t slot, Actions& out);
  void complete(uint32_t slot, Actions& out);
  void post_put(const Message& message, uint64_t manipulated, Actions& out);
  void send_ack(const Message& message, ListKind list, uint64_t manipulated, Actions& out) const;
  [[nodiscard]] Event event_of(const Message& message, EventKind kind) const;

  // nic_command.cpp
  void command(const Command& request, Actions& out);
  void put(const Put& put, Actions& out);
  [[nodiscard]] Status wait_for_counter(const Command& request);
  [[nodiscard]] Status close_counting(CounterId counter);
  [[nodiscard]] Result<uint64_t> execute(const CommandBody& body, Actions& out);
  [[nodiscard]] bool answers_later(const Command& request, uint64_t answer);
  void run_fired(Actions& out);
  void note_failure(const Error& error);

  // nic_invariants.cpp
  void check_invariants() const;
};

}  // namespace spinloom::nic
