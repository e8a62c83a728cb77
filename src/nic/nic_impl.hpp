// Nic::Impl - the engine's state, shared by the files that hold its verbs.
//
// Contract: each verb has a file: nic_receive (packets, matching), nic_delivery (whole puts), nic_quick (those that
// find
//   nothing to decide), nic_iovec (scatter
// lists), nic_lost (peers that are gone),
//   nic_entry (append, unlink, events of entries),
//   nic_message (completion), nic_header (header handlers), nic_schedule (HPUs), nic_handler (ends of handlers),
//   nic_calls and nic_requests (what handlers ask for), nic_dma, nic_send, nic_stream, nic_process_put, nic_fetch
//   (gets, atomics, replies), nic_trigger, nic_command. A public call of Nic is one function here and ends with
//   settle().
// Invariants: (1) a message slot lives from its first packet until complete(); HERs and DMAs refer to it only
//   while it counts them; (2) packet_buffer_used is the sum of buffer_bytes over HERs, DMAs and early packets;
//   (3) a Continue is asked for whenever work is queued and none is under way; (4) an HPU is idle, or runs
//   exactly one HER; (5) a virtual HPU is idle, or in the runnable queue once, or on one HPU; (6) `outbound`
//   holds outgoing messages in the order of their puts, until nothing more will come of one or it waits for packets
//   with its header sent; `flowing` holds those while some are there; (7) `filling` holds the process-puts that want
//   packet slots; only its first one has any.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "nic/fifo.hpp"
#include "nic/match_list.hpp"
#include "nic/message_index.hpp"
#include "nic/nic.hpp"
#include "nic/nic_memory.hpp"
#include "nic/slab.hpp"
#include "nic/table.hpp"

namespace spinloom::nic {

// Physical HPUs without work; the lowest index first.
class IdleHpus {
 public:
  explicit IdleHpus(uint32_t count) {
    for (uint32_t hpu = 0; hpu < count; ++hpu) add(hpu);
  }
  void add(uint32_t hpu) {
    SPL_ASSERT((words_[hpu / 64] >> (hpu % 64) & 1) == 0, "HPU ", hpu, " is idle already");
    words_[hpu / 64] |= uint64_t{1} << (hpu % 64);
    ++count_;
  }
  [[nodiscard]] bool any() const { return count_ > 0; }
  [[nodiscard]] bool any_of(const HpuMask& mask) const {
    for (uint32_t word = 0; word < words_.size(); ++word) {
      if ((words_[word] & mask.words[word]) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] uint32_t count() const { return count_; }
  // `mask`: null, or of those in it.
  uint32_t take_lowest(const HpuMask* mask) {
    for (uint32_t word = 0; word < words_.size(); ++word) {
      const uint64_t here = mask == nullptr ? words_[word] : words_[word] & mask->words[word];
      if (here == 0) continue;
      const uint32_t bit = static_cast<uint32_t>(std::countr_zero(here));
      words_[word] &= ~(uint64_t{1} << bit);
      SPL_ASSERT(count_ > 0, "HPU ", bit);
      --count_;
      return word * 64 + bit;
    }
    SPL_ASSERT(false, "no idle HPU");
  }

 private:
  std::array<uint64_t, limits::hpu_count_max / 64> words_{};
  uint32_t count_ = 0;
};

// A message's name: unique at its sender while something of it is under way.
[[nodiscard]] constexpr uint64_t message_id(uint32_t sequence, uint32_t slot) {
  return uint64_t{sequence} << 32 | slot;
}

struct Nic::Impl {
  struct QueueState {
    uint32_t events_max = 0;  // without the reserved slots
    uint32_t flow_portals = 0;   // portal table entries with flow control that post here
    uint32_t events_due = 0;     // of messages for these, and of entries that such messages made leave
    std::shared_ptr<QueueIndex> index;
  };

  struct Waiting {  // a triggered command, by its place in the counter's heap
    uint64_t threshold = 0;
    uint64_t sequence = 0;
    uint32_t slot = no_slot;
  };
  struct CounterState {
    CounterValue value;
    std::vector<Waiting> heap;  // lowest (threshold, sequence) first
    uint32_t triggered_max = UINT32_MAX;
    uint32_t operations_waiting = 0;  // of the heap, and those that rest
    uint32_t coming_back = 0;         // persistent commands that are fired
    uint64_t resets_at = 0;  // 0: never
    uint64_t round = 0;      // resets so far
    uint64_t begun = 0;      // what has waited since before this sequence is forgotten
    std::vector<uint32_t> resting;  // commands that have run in this round and run again in the next
  };

  struct PortalState {
    QueueId queue;
    bool flow_control = false;
    bool enabled = true;
    bool disabled_event_due = false;
    std::vector<uint64_t> disablers;  // tokens of hosts that wait until its messages have ended
    uint32_t messages_open = 0;
    MatchList priority;
    MatchList overflow;
    LinkedList<UnexpectedHeader> unexpected;
  };

  struct TableState {
    TableSetup setup;
    uint32_t entries = 0;
    std::array<uint64_t, 3> refused{};  // by Refusal
  };
  // The part of the portal table that an index belongs to, also one that names no entry of it.
  [[nodiscard]] static constexpr uint32_t table_of(uint32_t portal_index) {
    constexpr uint32_t each = limits::portal_table_max / limits::portal_tables;
    return portal_index < limits::portal_table_max ? portal_index / each : portal_index % limits::portal_tables;
  }

  struct VirtualHpu {
    uint32_t ready_first = no_slot;  // HERs, linked by Execution::next
    uint32_t ready_last = no_slot;
    uint32_t hpu = no_slot;  // where it runs
    bool queued = false;     // in the runnable queue
  };
  // One thing that wants an HPU: a HER of its own, or a virtual HPU with ready HERs.
  struct Runnable {
    uint32_t execution = no_slot;
    ContextId context;
    uint32_t vhpu = no_slot;
    uint64_t sequence = 0;  // of its readiness
  };
  struct ContextState {
    Context context;
    uint32_t entries = 0;
    uint32_t messages = 0;
    std::vector<VirtualHpu> vhpus;
    Fifo<Runnable> runnable;           // of a context with a mask
    std::vector<uint64_t> iovec_ends;  // handler_host_iovec: where each element ends
    TelemetryCounts counts{};
  };

  struct IovecCursor {  // where the bytes after the newest ones go in the entry's scatter list
    uint64_t position = 0;
    uint64_t index = 0;
    uint64_t within = 0;
    uint64_t held = 0;  // which config.iovec_entries elements the NIC holds
  };
  enum class Path : uint8_t {
    waiting,   // packets are here, the header is not
    undecided, // the header handler has not ended: packets wait in the packet buffer
    direct,    // straight to memory
    handlers,  // payload handlers
    dropped,   // by the header handler: counted as dropped
    discard,   // no entry: counted, not kept
  };
  struct Message {
    Rank source;
    uint64_t id = 0;
    Operation operation = Operation::put;
    uint64_t length = 0;
    uint64_t requested = 0;  // rlength: the length, or what a get asks for
    uint64_t bytes_in = 0;
    Path path = Path::waiting;
    Fail failure = Fail::ok;
    bool stopped = false;  // a handler faulted or ran past its budget: none of this message starts any more
    bool header_started = false;
    bool completion_wanted = false;
    bool completion_started = false;
    bool pending = false;        // the header or the completion handler returned a PENDING code
    bool ack_disabled = false;   // by the entry
    bool unlinked_entry = false;  // this message made its entry leave its list
    PortalIndex portal;
    uint32_t entry = no_slot;
    ContextId context;
    MessageFields fields;
    uint64_t offset = 0;   // in the entry
    uint64_t landing = 0;  // mlength: bytes that the entry takes
    uint64_t room = 0;     // what landing is where bytes go straight to memory
    uint32_t parked_first = no_slot;  // undecided: buffered packets, linked by Execution::next
    uint32_t parked_last = no_slot;
    IovecCursor iovec;
    uint64_t dropped_bytes = 0;
    uint32_t hers_open = 0;
    uint32_t dmas_open = 0;
    uint32_t dma_first = no_slot;  // in order of issue
    uint32_t dma_last = no_slot;
    uint32_t unexpected = no_slot;
    std::vector<Packet> early;
    bool reply_started = false;
    bool reply_open = false;              // not read from its buffer yet
    std::unique_ptr<uint8_t[]> fetched;  // fetch_atomic: the values before
    std::vector<uint8_t> invoked;        // the host's own message
    uint64_t missing = 0;         // bytes at its end that its sender never sends
    uint32_t outgoing = no_slot;  // a process-put's, which handlers of this NIC fill: nothing of it is received
    uint64_t cut = UINT64_MAX;    // process-put: packets from this offset on do not leave
  };

  enum class Stage : uint8_t { buffering, ready, running, ended };
  struct Execution {  // a HER and its packet slot
    Her her;
    uint32_t message = no_slot;
    uint64_t packet_offset = 0;
    uint64_t buffer_bytes = 0;
    uint32_t dmas_open = 0;
    uint32_t next = no_slot;
    uint32_t outbound = no_slot;  // the packet that its handler fills
    Stage stage = Stage::buffering;
  };

  struct Dma {
    uint32_t message = no_slot;
    uint32_t execution = no_slot;  // none: direct path
    uint32_t previous = no_slot;
    uint32_t next = no_slot;
    bool event = false;
    bool done = false;
    bool blocks = false;    // its handler waits, for the source to be read or for the answer to be there
    bool waited = false;    // its handler waits for its end
    uint32_t serial = 0;    // of all DMAs: part of the handle
    uint64_t buffer_bytes = 0;  // of an early packet on the direct path
    uint64_t offset = 0;        // events only
    uint64_t length = 0;
    uint64_t start = 0;
    uint32_t fetch = no_slot;     // bytes of a reply; of no message
    uint32_t delivery = no_slot;  // of no message either
    uint32_t whole = no_slot;  // one piece of this DMA, which is over a list
    uint32_t pieces = 0;       // not done yet
    uint32_t pieces_unread = 0;
  };

  // A put that came whole, on its way straight to its entry's memory: what its end tells.
  struct Delivery {
    Rank source;
    uint32_t entry = no_slot;
    uint64_t message = 0;
    uint64_t match_bits = 0;
    uint64_t remote_offset = 0;
    uint64_t hdr_data = 0;
    uint64_t requested = 0;
    uint64_t taken = 0;
    uint64_t offset = 0;  // in the entry
    uint32_t user = 0;
    AckRequest ack_request = AckRequest::none;
  };
  // A walk over a priority list, for the one that matches after all.
  struct Walk {
    bool done = false;
    uint32_t found = no_slot;
    uint32_t searched = 0;
  };

  // Something that this NIC asked for and that comes by a reply.
  struct Fetch {
    ReplyTo reply;
    Rank target;
    uint64_t length = 0;
    uint32_t sequence = 0;
    uint64_t bytes_in = 0;
    uint32_t dmas_open = 0;
    bool header_in = false;
    uint64_t reply_bytes = 0;
    Outcome result;
    HerId waits;  // a handler that waits for it, in whose memory it lands
  };

  struct Stream {
    uint64_t memory_bytes = 0;  // at put.local
    uint64_t given = 0;         // bytes of the regions so far
    bool ended = false;
    Fifo<PutRegion> regions;    // not in packets yet
  };
  struct Outgoing {
    Put put;
    uint32_t sequence = 0;
    uint64_t emitted = 0;
    bool sent = false;
    bool ack_wanted = false;
    bool acked = false;
    HerId waits = {};  // a handler that waits until the packet has been read
    Outcome ack = {};  // kept while the ack is ahead of the send event
    bool queued = true;              // in `outbound` or `flowing`
    bool may_wait = false;           // in `outbound`, for bytes that are not there yet
    std::unique_ptr<Stream> stream = {};  // streaming put: until its last packet is handed to the driver
    // Process-put: the message of its handlers, until the last packet is handed to the driver.
    uint32_t processed = no_slot;
    uint64_t memory_bytes = 0;  // at put.local
    uint64_t assigned = 0;      // bytes whose packets have slots, or had them
    uint32_t packet_first = no_slot;  // packets that have not been handed to the driver, in order
    uint32_t packet_last = no_slot;
    Fail failure = Fail::ok;
  };
  struct OutboundPacket {  // a slot of the outbound buffer
    uint32_t outgoing = no_slot;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint32_t next = no_slot;
    bool filled = false;  // its handler has ended, or will never start, and its DMAs are done
    bool last = false;    // of its message, as it leaves
  };
  // What became of a message's packets in one call.
  enum class Emitted : uint8_t {
    all,    // nothing more will come of it
    some,   // this call has done enough
    waits,  // its next packet is not there yet
  };

  Impl(Rank rank_, const NicLimits& limits_);

  Rank rank;
  NicLimits config;

  Table<QueueId, QueueState> queues{"queue", limits::queue_count_max, "limits::queue_count_max"};
  Table<CounterId, CounterState> counters{"counter", limits::counter_count_max, "limits::counter_count_max"};
  Table<PortalIndex, PortalState> portals{"portal table entry", limits::portal_table_max, "limits::portal_table_max"};
  std::array<TableState, limits::portal_tables> tables{};
  Table<ContextId, ContextState> contexts{"context", limits::context_count_max, "limits::context_count_max"};
  Table<EntryId, uint32_t> entry_slots{"entry", limits::entry_count_max, "limits::entry_count_max"};
  Slab<ListedEntry> entries;
  Slab<UnexpectedHeader> headers;
  uint64_t next_entry_sequence = 1;

  Slab<Message> messages;
  MessageIndex message_slots;
  Slab<Execution> executions;
  Slab<Dma> dmas;
  Slab<Delivery> deliveries;
  uint32_t next_dma_serial = 0;
  Slab<Outgoing> outgoing;
  Slab<Fetch> fetches;
  std::vector<Rank> lost;  // peers that are gone
  uint32_t next_message_sequence = 0;
  Fifo<uint32_t> outbound;  // messages with packets to emit
  Fifo<uint32_t> flowing;   // those whose header has left and that have waited since
  uint32_t waiting_headers = 0;  // of `outbound`: those that may wait
  bool emit_due = false;
  Table<StreamId, uint32_t> streams{"streaming put", limits::stream_count_max, "limits::stream_count_max"};
  Slab<OutboundPacket> outbound_packets;
  std::vector<std::unique_ptr<uint8_t[]>> outbound_bytes;  // by slot of the outbound buffer
  uint32_t outbound_packets_peak = 0;
  Fifo<uint32_t> filling;
  uint32_t messages_processed = 0;  // of `messages`: those of process-puts

  Fifo<Runnable> runnable;  // of contexts without a mask
  std::vector<ContextId> masked_contexts;
  uint64_t next_runnable_sequence = 0;
  uint32_t handler_messages = 0;  // incoming ones with a context
  IdleHpus idle;
  uint32_t hers_waiting = 0;

  Slab<Command> waiting_commands;
  uint64_t next_trigger_sequence = 0;
  Fifo<uint32_t> fired;
  bool continue_asked = false;

  // While one lives, events are those of what the host asked for.
  struct HostAsked {
    explicit HostAsked(Impl& nic_) : nic(nic_) { ++nic.host_asked; }
    ~HostAsked() { --nic.host_asked; }
    HostAsked(const HostAsked&) = delete;
    HostAsked& operator=(const HostAsked&) = delete;
    Impl& nic;
  };
  uint32_t host_asked = 0;

  NicMemory memory;
  TelemetryCounts counts{};
  uint64_t buffer_used = 0;
  uint64_t buffer_peak = 0;
  uint32_t early_packets = 0;
  uint64_t dropped_messages = 0;
  uint64_t refused_packets = 0;
  uint64_t failed_commands = 0;
  std::string last_failure;

  // nic.cpp
  void post_event(QueueId queue, const Event& event, Actions& out);
  void note_posted(QueueId id, const QueueState& queue, Actions& out);
  void disable_portals(QueueId queue, Actions& out);
  void post_disabled(PortalIndex index, PortalState& portal, Actions& out);
  void tally(ContextId context, Telemetry which, uint64_t by = 1);
  void settle(Actions& out);
  void buffer_take(uint64_t bytes);
  void buffer_release(uint64_t bytes);

  // nic_receive.cpp
  // `slot`: of its message, where there is one.
  [[nodiscard]] bool has_room(const Packet& packet, uint32_t slot) const;
  [[nodiscard]] bool waits_for_place(const Packet& packet) const;
  [[nodiscard]] bool well_formed(const Packet& packet) const;
  void receive(const Packet& packet, Actions& out);
  void receive_header(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out);
  void match(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out);
  bool use(uint32_t entry, uint64_t taken);
  void attach(uint32_t slot, uint32_t entry, const MatchKey& key);
  [[nodiscard]] Status invoke(const Invoke& command, Actions& out);
  [[nodiscard]] Result<uint64_t> search(const Search& command, Actions& out);
  void tell_overflow(uint32_t header, const ListedEntry& claimer, Actions& out);
  void count_overflow(const Entry& entry, const Event& event, Actions& out);
  [[nodiscard]] Event event_of(const UnexpectedHeader& header, const ListedEntry& claimer, EventKind kind) const;
  [[nodiscard]] uint32_t forget_header(uint32_t header);
  void refuse_message(Message& message, Fail failure);
  void run_out(Message& message, PortalIndex index, PortalState& portal, bool told);
  [[nodiscard]] bool is_full(const PortalState& portal, const Entry& entry) const;
  void land(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes, Actions& out);
  void accept_payload(uint32_t slot, const Packet& packet, bool buffered, Actions& out);

  [[nodiscard]] bool wants_packets(const Packet& packet) const;

  // nic_lost.cpp
  void part_from(Rank peer, Actions& out);
  void lose_peer(Rank peer, Actions& out);
  [[nodiscard]] bool is_lost(Rank peer) const;
  void lose_unacknowledged(Rank peer, Actions& out);
  void lose_fetch(uint64_t name, Actions& out);
  void lose_message(uint32_t slot, Actions& out);

  // nic_delivery.cpp
  bool deliver(const Packet& packet, Walk& walk, Actions& out);
  void delivered(uint32_t delivery, Actions& out);

  // nic_quick.cpp
  [[nodiscard]] bool only_adds(CounterId id) const;
  QuickCount add_quickly(CounterId id, uint64_t by);

  // nic_iovec.cpp
  void scatter(uint32_t slot, const Packet& packet, bool buffered, Actions& out);
  [[nodiscard]] static IovecView list_of(const ListedEntry& listed);
  [[nodiscard]] static uint64_t start_of(const ListedEntry& listed, uint64_t offset);
  [[nodiscard]] std::vector<PayloadRef> listed_pieces(const Put& put, uint64_t offset, uint64_t length) const;

  // nic_entry.cpp
  [[nodiscard]] Result<uint64_t> append(const Append& command, Actions& out);
  [[nodiscard]] Result<uint64_t> unlink(const Unlink& command);
  void link_entry(uint32_t slot, Actions& out);
  void unlink_entry(uint32_t slot);
  void claim_headers(uint32_t slot, Actions& out);
  void post_overflow(uint32_t header, Actions& out);
  void post_unlinked(uint32_t slot, Actions& out);
  void settle_unlink(ListedEntry& listed);
  void release_entry(uint32_t slot, Actions& out);
  void forget_entry(uint32_t slot);

  // nic_message.cpp
  void advance(uint32_t slot, Actions& out);
  void complete(uint32_t slot, Actions& out);
  void leave(PortalIndex index, Actions& out);
  void post_put(const Message& message, uint64_t manipulated, Actions& out);
  [[nodiscard]] Event event_of(const Message& message, EventKind kind) const;
  static void record_failure(Message& message, Fail failure) {
    if (message.failure == Fail::ok) message.failure = failure;
  }

  // nic_header.cpp
  void place(uint32_t execution, Actions& out);
  void start_header_handler(uint32_t slot, const PayloadRef& first);
  void header_done(uint32_t slot, HandlerEnd end, uint32_t code, Actions& out);
  void take_out(uint32_t execution);

  // nic_schedule.cpp
  void enqueue(uint32_t execution);
  void dispatch(Actions& out);
  void make_runnable(Runnable one);
  [[nodiscard]] Fifo<Runnable>* next_to_run();
  void run(uint32_t execution, uint32_t hpu, Actions& out);
  void free_hpu(const Execution& execution, Actions& out);
  [[nodiscard]] uint32_t take_ready(VirtualHpu& vhpu, Actions& out);
  bool skip_if_stopped(uint32_t execution, Actions& out);
  void release_execution(uint32_t execution);

  // nic_calls.cpp
  bool handler_call(HerId her, const HandlerCall& call, Actions& out);
  bool dma_call(uint32_t execution, const HandlerCall& call, Actions& out);
  bool dma_atomic(uint32_t execution, const HandlerCall& call, Actions& out);
  bool dma_wait(uint32_t execution, const HandlerCall& call, Actions& out);
  bool local_atomic(uint32_t execution, const HandlerCall& call, Actions& out);
  bool counter_call(uint32_t execution, const HandlerCall& call, Actions& out);
  bool debug_call(uint32_t execution, const HandlerCall& call, Actions& out);
  struct HostRange {
    uint8_t* start = nullptr;
    uint64_t length = 0;
    IovecView list = {};  // a list's range: no start
  };
  [[nodiscard]] static std::optional<uint8_t*> contiguous(const HostRange& range, uint64_t offset, uint64_t length);
  [[nodiscard]] static std::vector<IovecElement> pieces_of(const HostRange& range, uint64_t offset, uint64_t length);
  [[nodiscard]] HostRange host_range(const Message& message, uint32_t options) const;
  void refuse_call(uint32_t execution, uint32_t answer, Actions& out);

  // nic_requests.cpp
  [[nodiscard]] std::optional<uint8_t*> memory_of(uint32_t execution, const HandlerCall& call, bool writes,
                                                  Actions& out);
  [[nodiscard]] Put put_of(uint32_t execution, const HandlerCall& call, uint8_t* local) const;
  bool put_call(uint32_t execution, const HandlerCall& call, Actions& out);
  bool get_call(uint32_t execution, const HandlerCall& call, Actions& out);
  bool atomic_call(uint32_t execution, const HandlerCall& call, Actions& out);
  void answer_failed(uint32_t execution, const Error& error, Actions& out);

  // nic_handler.cpp
  void fail_message(Message& message, HandlerEnd end, uint32_t code);
  void handler_done(HerId her, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out);

  // nic_dma.cpp
  uint32_t issue_dma(uint32_t message, uint32_t execution);
  void issue_pieces(uint32_t whole, uint8_t* local, const std::vector<IovecElement>& pieces, bool to_host,
                    Actions& out);
  void dma_done(DmaId id, Actions& out);
  void fail_dma(DmaId id, Fail failure);
  void dma_read(DmaId id, Actions& out);
  [[nodiscard]] uint32_t handle_of(uint32_t dma) const;
  [[nodiscard]] uint32_t dma_of(uint32_t handle, uint32_t execution) const;
  void forget_dma(Message& message, uint32_t slot);

  // nic_send.cpp
  [[nodiscard]] Status check_put(const Put& put) const;
  static void end_operation(Put& put);
  [[nodiscard]] static bool listed(const DescriptorRef& descriptor, uint64_t offset, uint64_t length);
  void start_put(const Put& put, Actions& out, HerId waits = {});
  [[nodiscard]] bool goes_at_once(const Put& put, HerId waits) const;
  void put_at_once(const Put& put, Actions& out);
  [[nodiscard]] uint32_t open_put(const Put& put);
  [[nodiscard]] bool is_next(uint32_t slot);
  void emit_packets(Actions& out);
  [[nodiscard]] Emitted emit_read(uint32_t slot, uint32_t& left, Actions& out);
  void fill_packet(uint32_t slot, Packet& packet) const;
  void packet_sent(uint64_t message, Actions& out);
  void finish_send(uint32_t slot, Actions& out);
  void receive_ack(const Packet& packet, Actions& out);
  void finish_ack(uint32_t slot, Actions& out);
  void send_ack(const Message& message, ListKind list, uint64_t manipulated, Actions& out);
  MessageFields& add_ack(Rank target, uint64_t message, Actions& out);

  // nic_stream.cpp
  [[nodiscard]] Status start_stream(const StreamStart& start, Actions& out);
  [[nodiscard]] Status stream(const StreamAppend& append, Actions& out);
  [[nodiscard]] static bool packet_is_there(const Outgoing& message, uint64_t length);
  [[nodiscard]] static std::vector<PayloadRef> take_pieces(Outgoing& message, uint64_t length);

  // nic_process_put.cpp
  [[nodiscard]] Status check_process_put(const ProcessPut& given) const;
  void start_process_put(const ProcessPut& given, Actions& out);
  void fill_packets(Actions& out);
  [[nodiscard]] Emitted emit_processed(uint32_t slot, uint32_t& left, Actions& out);
  void packet_filled(uint32_t index);
  void packet_left(OutboundSlotId id, Actions& out);
  void outbound_handler_done(uint32_t execution, HandlerEnd end, uint32_t code, Actions& out);
  void cut(uint32_t execution);
  void close_processed(Outgoing& message);
  // What a handler's message offers to its calls: the matched entry's, or that of the put whose packets it fills.
  struct Offer {
    PortalIndex portal;
    QueueId queue;
    CounterId counter;
    HostRange memory;
  };
  [[nodiscard]] Offer offer_of(const Message& message) const;

  // nic_fetch.cpp
  [[nodiscard]] Status check_reply(const char* what, const ReplyTo& reply, uint64_t length) const;
  [[nodiscard]] Status check_get(const Get& get) const;
  [[nodiscard]] Status check_atomic(const Atomic& atomic) const;
  uint64_t open_fetch(const ReplyTo& reply, Rank target, uint64_t length, HerId waits);
  void start_get(const Get& get, Actions& out, HerId waits = {}, bool by_handler = false);
  void start_atomic(const Atomic& atomic, Actions& out, HerId source_waits = {}, HerId reply_waits = {});
  void receive_reply(const Packet& packet, Actions& out);
  void land_reply(uint32_t slot, uint8_t* local, const PayloadRef& source, Actions& out);
  void reply_landed(DmaId id, Actions& out);
  void finish_fetch(uint32_t slot, Actions& out);
  void apply_atomic(uint32_t slot, const PayloadRef& payload, uint64_t buffer_bytes, Actions& out);
  void start_reply(uint32_t slot, Actions& out);
  void reply_sent(uint32_t slot, Actions& out);

  // nic_trigger.cpp
  [[nodiscard]] Status wait_for_counter(const Command& command);
  void arm(uint32_t slot);
  void release_triggered(CounterState& counter);
  void changed(CounterState& counter);
  [[nodiscard]] Status auto_reset(const CounterAutoReset& body);
  void count(CounterId id, CounterValue by, Actions& out);
  [[nodiscard]] static bool is_operation(const CommandBody& body);
  void set_counter(CounterId id, CounterValue to, Actions& out);
  void run_fired(Actions& out);

  // nic_command.cpp
  void command(const Command& given, Actions& out);
  [[nodiscard]] Result<uint64_t> execute(const CommandBody& body, Actions& out);
  [[nodiscard]] Status free_queue(const QueueFree& body);
  [[nodiscard]] Status alloc_portal(const PortalAlloc& body);
  [[nodiscard]] Status free_portal(const PortalFree& body, Actions& out);
  [[nodiscard]] bool answers_later(const Command& given);
  [[nodiscard]] Result<uint64_t> create_context(const ContextCreate& body);
  [[nodiscard]] Status activate_context(const ContextActivate& body, Actions& out);
  [[nodiscard]] Result<uint64_t> read_refusals(const RefusalsRead& body) const;
  [[nodiscard]] Result<uint64_t> read_telemetry(const TelemetryRead& body) const;
  [[nodiscard]] Status check_window(const char* name, const MemoryWindow& window) const;
  void note_failure(const Error& error);
  static void forget(const CommandBody& body);
  void forget_waiting(CounterState& counter);
};

}  // namespace spinloom::nic
