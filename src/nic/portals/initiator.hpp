// Initiator - sends puts, requests and replies of this NIC, in packets, and takes the answers to them.
//
// Contract: check() says what is wrong with an operation; callers start only operations that passed it. Packets leave
//   by Send actions, at most limits::packets_per_call_max of them a call; emit_due() says that more wait. Headers
//   leave in the order of the puts, because receivers match in that order. A message whose header has left lets
//   others pass while it waits for its bytes. An operation ends by its events and counts; then its descriptor is
//   free.
// Invariants: (1) `outbound_` holds messages in the order of their puts, until they are done or wait for packets with
//   their header sent; `flowing_` holds messages of the latter kind that have packets again, and replies that went past
//   a waiting header; (2) an acknowledgement's event comes after the send event, in whatever order the two are
//   reported; (3) among process-puts that want slots of the outbound buffer, only the first has any; (4) nothing waits
//   for a lost peer.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/limits.hpp"
#include "nic/portals/action.hpp"
#include "nic/portals/context_table.hpp"
#include "nic/portals/event_queues.hpp"
#include "nic/portals/handler_work.hpp"
#include "nic/portals/host_memory.hpp"
#include "nic/portals/nic_limits.hpp"
#include "nic/portals/portal_table.hpp"
#include "nic/portals/quick.hpp"
#include "nic/portals/triggers.hpp"
#include "nic/spin/executions.hpp"
#include "nic/spin/fifo.hpp"
#include "nic/spin/host_range.hpp"
#include "nic/spin/outbound_buffer.hpp"

namespace spinloom::nic {

// The objects that handlers may use for operations on other NICs: those of the matched entry, or of the put whose
// packets they fill.
struct HandlerObjects {
  PortalIndex portal;
  QueueId queue;
  CounterId counter;
  HostRange memory;
};

// The source of a put: the host, or a handler of this NIC.
struct Origin {
  bool by_handler = false;
  bool on_nic = false;  // the bytes of the put lie on the NIC
  HerId waiting_handler;  // the handler to resume when the bytes have been read, if any
};

// The reply of a target to a request. packet_sent() gives `user_ptr` back when the bytes have been read.
struct Reply {
  Rank target;
  uint64_t answers = 0;  // the initiator's name for the request
  const uint8_t* local = nullptr;  // null: the bytes are in `list`, from `offset` on
  IovecView list;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool on_nic = false;  // `local` lies on the NIC
  Outcome result;
  uint64_t user_ptr = 0;
};

class Initiator {
 public:
  // The parts, and `config` (the NIC's limits), outlive the initiator.
  struct Parts {
    EventQueues& queues;
    Triggers& triggers;
    const PortalTable& portals;
    ContextTable& contexts;
    Executions& executions;
    DmaTracker& dmas;
    HostMemory* memory;  // null is allowed
  };
  Initiator(Rank rank, const NicLimits& config, const Parts& parts);

  [[nodiscard]] Status check(const Put& put) const;
  [[nodiscard]] Status check(const Get& get) const;
  [[nodiscard]] Status check(const Atomic& atomic) const;
  [[nodiscard]] Status check(const ProcessPut& request) const;

  // `reply_waits`: a handler that goes on when the reply is there.
  void put(const Put& put, Actions& out, const Origin& origin = {});
  void get(const Get& get, Actions& out, const Origin& origin = {}, HerId reply_waits = {});
  void atomic(const Atomic& atomic, Actions& out, const Origin& origin = {}, HerId reply_waits = {});
  void process_put(const ProcessPut& request, Actions& out);
  // Streaming puts. Errors also concern the regions.
  [[nodiscard]] Status stream(const StreamStart& start, Actions& out);
  [[nodiscard]] Status stream(const StreamAppend& append, Actions& out);
  void reply(const Reply& reply, Actions& out);
  // Sends an acknowledgement whose fields the caller fills. Left empty, they only say that nothing more comes.
  MessageFields& acknowledge(Rank target, uint64_t message, Actions& out) const;
  // A name for a message of this NIC that is not a put.
  [[nodiscard]] uint64_t new_name() { return message_name(next_sequence_++, no_slot); }
  // The number of messages that this NIC has begun so far.
  [[nodiscard]] uint64_t messages_begun() const { return next_sequence_; }
  // True if the message with this name, which is still under way, is one of the first `count` that this NIC has begun.
  [[nodiscard]] bool is_among_first(uint64_t count, uint64_t message) const {
    const auto age = static_cast<uint32_t>(next_sequence_ - (message >> 32));
    return count > 0 && age > next_sequence_ - count;
  }

  // True if the memory of an operation of this NIC is there. Only memory that may have holes (`sparse`) is in doubt.
  [[nodiscard]] bool is_accessible(bool sparse, const uint8_t* local, uint64_t length, Access access) const {
    return !sparse || memory_ == nullptr || length == 0 || memory_->reaches(local, length, access);
  }
  // Quick puts (quick.hpp). may_put_quickly() says whether one is possible, next_name() names it, count_quick() notes
  // that it has left.
  [[nodiscard]] bool may_put_quickly(uint64_t length) const {
    return length <= config_.at_once_bytes && outbound_.empty() && flowing_.empty() && lost_.empty();
  }
  [[nodiscard]] uint64_t next_name() const { return message_name(next_sequence_, no_slot); }
  void count_quick() { ++next_sequence_; }

  // True if packets wait for a call of emit().
  [[nodiscard]] bool emit_due() const { return emit_due_; }
  void emit(Actions& out);
  // The driver has read the last packet from its buffer. Returns the user_ptr of a reply.
  [[nodiscard]] std::optional<uint64_t> packet_sent(uint64_t message, Actions& out);
  // A packet of the outbound buffer has left.
  void packet_left(OutboundSlotId slot, Actions& out);

  // Take answers. False: no operation waits for the answer, or a reply has more bytes than were asked for or a second
  // header. That is a fault of the peer, and the packet is refused.
  [[nodiscard]] bool take_ack(const Packet& packet, Actions& out);
  [[nodiscard]] bool take_reply(const Packet& packet, Actions& out);
  // A request of this NIC to itself has ended at its target, whose events come before that of the reply.
  void request_served(uint64_t name, Actions& out);
  // Bytes of a reply have landed, or could not. `slot` is that of the DMA's owner.
  void reply_landed(uint32_t slot, Actions& out);
  void fail_reply(uint32_t slot, Fail failure);

  // Ends all operations that wait for this peer. Nothing reaches the peer until readmit().
  void lose_peer(Rank peer, Actions& out);
  // True if lose_peer() has been called for this peer, readmit() has not, and no operation with the peer is left.
  [[nodiscard]] bool is_quiescent(Rank peer) const;
  [[nodiscard]] AwaitedReplies awaited_replies(Rank peer) const;
  void readmit(Rank peer) { std::erase(lost_, peer); }

  // Process-puts, as their handlers see them. `slot` is that of their owner.
  [[nodiscard]] HandlerWork& process_put_work(uint32_t slot) { return process_puts_[slot]; }
  [[nodiscard]] const HandlerWork& process_put_work(uint32_t slot) const { return process_puts_[slot]; }
  [[nodiscard]] HandlerObjects handler_objects(uint32_t slot) const;
  [[nodiscard]] uint64_t user_ptr_of(uint32_t slot) const {
    return outgoing_[process_puts_[slot].outgoing].put.user_ptr;
  }
  // The packet is filled: its handler has ended, or will never start, and nothing writes to the packet any more.
  void packet_filled(OutboundSlotId slot);
  // The packet at this offset and those behind it do not leave, and no further handler starts.
  void cut_message(uint32_t slot, uint64_t offset);

  // Operations whose buffers have not been read yet, or that have not been answered yet.
  [[nodiscard]] uint32_t size() const { return outgoing_.size() + fetches_.size(); }
  [[nodiscard]] const OutboundBuffer& outbound_buffer() const { return buffer_; }
  // Calls visit(slot, work) for each process-put whose last packet has not been handed to the driver.
  template <class Visit>
  void for_each_process_put(Visit visit) const {
    process_puts_.for_each([&](uint32_t slot, const HandlerWork& work) { visit(slot, work); });
  }
  // Throws InternalError if an invariant is broken. For tests: looks at all that is open.
  void check_invariants() const;

 private:
  struct Stream {
    uint64_t memory_bytes = 0;  // size of the memory at put.local
    uint64_t named_bytes = 0;  // bytes of the regions that the host has named so far
    bool ended = false;  // the host has named the last region
    Fifo<PutRegion> regions;  // regions that are not in packets yet
  };
  struct Outgoing {
    Put put;  // a get or a reply has the fields that it shares with a put
    Origin origin = {};
    Operation operation = Operation::put;
    Request request = {};  // a reply has only the name of the request that it answers
    Outcome result = {};  // the outcome of a reply
    uint32_t sequence = 0;
    uint64_t emitted = 0;  // bytes in packets that have been handed to the driver
    bool sent = false;  // the driver has read the last byte
    bool ack_wanted = false;
    bool ack_lost = false;  // an acknowledgement was asked for, and never comes
    bool acked = false;
    Outcome ack = {};  // an ack that came before the send event
    bool queued = true;  // the message is in `outbound_` or `flowing_`
    bool may_wait = false;  // the message is in `outbound_`, and its next bytes may not be there yet
    IovecView list = {};  // the bytes from list_offset on, where put.local is null
    uint64_t list_offset = 0;
    std::unique_ptr<Stream> stream = {};  // streaming put, until its last packet is handed to the driver
    uint32_t process_put = no_slot;  // its slot in `process_puts_`, until its last packet is handed to the driver
    Fail failure = Fail::ok;
  };
  // A process-put, until its last packet is handed to the driver.
  struct ProcessPutWork : HandlerWork {
    uint32_t outgoing = no_slot;
    uint64_t memory_bytes = 0;  // size of the memory at put.local
    uint64_t assigned = 0;  // bytes of packets that have got slots so far
    uint64_t cut_offset = UINT64_MAX;  // packets from this offset on do not leave
    OutboundQueue packets;
  };
  // A get or a fetching atomic of this NIC that waits for its reply.
  struct Fetch {
    ReplyTo reply;
    Rank target;
    uint64_t length = 0;
    uint32_t sequence = 0;
    uint64_t bytes_in = 0;
    uint32_t dmas_open = 0;
    bool header_in = false;
    bool target_done = true;  // the target's part has ended, as far as its events are on this NIC
    uint64_t reply_bytes = 0;
    Outcome result;
    HerId waiting_handler;  // a handler that waits for the reply, which lands in its memory
  };
  // The result of one call of emit() for a message.
  enum class EmitResult : uint8_t {
    all,  // sent its last packet, or gave the rest up
    some,  // sent as many packets as a call may send
    waits,  // its next packet is not there yet
  };

  // A message's name, unique at its sender while the message is under way.
  [[nodiscard]] static constexpr uint64_t message_name(uint64_t sequence, uint32_t slot) {
    return sequence << 32 | slot;
  }

  // initiator.cpp
  [[nodiscard]] bool goes_at_once(const Put& put, const Origin& origin) const;
  void put_at_once(const Put& put, const Origin& origin, Actions& out);
  [[nodiscard]] uint32_t open_message(const Put& put);
  void start(uint32_t slot, Actions& out);
  [[nodiscard]] bool take_turn(uint32_t slot);
  [[nodiscard]] EmitResult emit_read(uint32_t slot, uint32_t& packets_left, Actions& out);
  void make_packet(uint32_t slot, Packet& packet) const;
  [[nodiscard]] bool is_source_accessible(const Put& put) const;
  static void end_unsent(Outgoing& message, Fail reason);
  void tell_sent(const Put& put, Fail failure, bool ack_lost, Actions& out);
  void refuse(uint32_t slot, Actions& out);
  void finish(uint32_t slot, Actions& out);
  void finish_ack(uint32_t slot, Actions& out);
  [[nodiscard]] bool is_lost(Rank peer) const;

  // initiator_stream.cpp
  [[nodiscard]] static bool is_next_packet_complete(const Outgoing& message, uint64_t length);
  [[nodiscard]] static std::vector<PayloadRef> take_pieces(Outgoing& message, uint64_t length);

  // initiator_process_put.cpp
  void fill_packets(Actions& out);
  [[nodiscard]] EmitResult emit_process_put(uint32_t slot, uint32_t& packets_left, Actions& out);
  void close_process_put(Outgoing& message);

  // initiator_fetch.cpp
  [[nodiscard]] Status check_reply(const char* what, const ReplyTo& reply, uint64_t length) const;
  void send_request(Operation operation, const Put& put, const Request& request, const Origin& origin, bool accessible,
                    Actions& out);
  [[nodiscard]] uint64_t open_fetch(const ReplyTo& reply, Rank target, uint64_t length, HerId waits);
  void write_reply(uint32_t slot, uint8_t* local, const PayloadRef& source, Actions& out);
  void finish_fetch(uint32_t slot, Actions& out);
  [[nodiscard]] bool is_destination_accessible(const ReplyTo& reply, uint64_t length) const;
  void lose_fetch(uint64_t name, Fail reason, Actions& out);

  Rank rank_;
  const NicLimits& config_;
  EventQueues& queues_;
  Triggers& triggers_;
  const PortalTable& portals_;
  ContextTable& contexts_;
  Executions& executions_;
  DmaTracker& dmas_;
  HostMemory* memory_;

  Slab<Outgoing> outgoing_;
  Slab<Fetch> fetches_;
  std::vector<Rank> lost_;  // peers to which nothing gets through
  uint64_t next_sequence_ = 0;  // names have its lower 32 bits
  Fifo<uint32_t> outbound_;
  Fifo<uint32_t> flowing_;
  uint32_t waiting_headers_ = 0;  // messages with `may_wait`: streaming puts and process-puts in `outbound_`
  bool emit_due_ = false;
  Table<StreamId, uint32_t> streams_{"streaming put", limits::stream_count_max, "limits::stream_count_max"};
  Slab<ProcessPutWork> process_puts_;
  Fifo<uint32_t> wanting_slots_;  // slots in `process_puts_` of messages that want slots of the outbound buffer
  OutboundBuffer buffer_;
};

}  // namespace spinloom::nic
