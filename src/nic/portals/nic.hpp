// Nic - the NIC itself, sans-I/O: Portals 4 matching, sPIN scheduling, events, counters, triggering.
//
// Contract: the driver calls on_... in the order in which service starts at each unit, and performs the
//   actions that come back; effects appear when the driver says that service has ended. The engine owns
//   counts and allocation (HPUs, packet buffer, NIC memory), the driver owns durations. The same calls
//   with the same arguments give the same actions.
// Invariants: (1) each byte of a message is delivered or counted as dropped exactly once; (2) completion counts bytes
//   received: packets may come in any order, and packets ahead of their header wait (named limit); (3) a DMA with an
//   event completes after all earlier DMAs of its message; (4) a packet's slot is free when its handler has ended and
//   its DMAs are done; (5) a message completes when its bytes are in, its handlers have ended and its DMAs are done;
//   (6) a use-once entry leaves its list before its event is posted; (7) each call does bounded work: a fired
//   triggered command is a queued Continue, never recursion.
// Threads: exactly one owner. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/portals/action.hpp"
#include "nic/portals/command.hpp"
#include "nic/portals/host_memory.hpp"
#include "nic/portals/nic_limits.hpp"
#include "nic/portals/publication.hpp"
#include "nic/portals/quick.hpp"
#include "nic/spin/handler_call.hpp"

namespace spinloom::nic {

// A snapshot of everything under way, for stall reports, tests and tables.
struct NicState {
  uint64_t packet_buffer_used = 0;
  uint64_t packet_buffer_peak = 0;
  uint64_t nic_memory_used = 0;
  uint64_t nic_memory_peak = 0;
  uint32_t hpus_busy = 0;
  uint32_t hers_waiting = 0;
  uint32_t messages_open = 0;
  uint32_t early_packets = 0;
  uint32_t dmas_open = 0;
  uint64_t dropped_messages = 0;
  uint32_t messages_outgoing = 0;    // messages not yet read from their buffers, or not yet acknowledged
  uint32_t outbound_packets = 0;     // slots of the outbound buffer in use
  uint32_t outbound_packets_peak = 0;
  uint32_t unexpected_headers = 0;
  uint32_t triggered_waiting = 0;
  uint64_t refused_packets = 0;      // malformed, repeated, or given although can_accept() said no
  uint64_t failed_commands = 0;      // errors without an answer: no token, or fired by a counter
};

class Nic {
 public:
  // Without `memory`, which outlives the NIC, all memory counts as there.
  Nic(Rank rank, const NicLimits& limits, HostMemory* memory = nullptr);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // False while there is no room for this packet. Its payload may have to be buffered and does not fit into the packet
  // buffer; or limits().early_packets packets already wait for their headers and this one would, too; or its entry has
  // handlers, which work on limits().handler_messages messages already (not under flow control). Each on_... call may
  // change the answer. If the driver gives the packet to on_packet all the same, it is dropped and counted
  // (refused_packets).
  [[nodiscard]] bool can_accept(const Packet& packet) const;

  // Service of a packet starts at the parser and matching unit. Work: one walk over the lists (another one while
  // handlers work on as many messages as they may), and the packets of the message that came ahead of this header
  // (limits().early_packets).
  void on_packet(const Packet& packet, Actions& out);
  // A command from the host. Work: one command.
  void on_command(const Command& command, Actions& out);
  // True if a message, or the rest of a message that has begun, must come in packets of payload_bytes because handlers
  // need them. False: packets of any size will do.
  [[nodiscard]] bool wants_packets(const Packet& packet) const;
  // True if the header of the message has been here and the message has not ended. False for a put that takes the short
  // way (nic_delivery).
  [[nodiscard]] bool has_begun(Rank source, uint64_t message) const;
  // True if packets of this message have been here and the message has not ended, so that the engine may refer to
  // their bytes. False for a put that takes the short way (nic_delivery): only the actions of its on_packet refer to
  // its bytes.
  [[nodiscard]] bool is_open(Rank source, uint64_t message) const;
  // Does what a Command with this put, without token and trigger, does.
  void on_put(const Put& put, Actions& out);
  // Quick puts (quick.hpp). quick_put() returns the name that this put would have, or nothing if it is not quick.
  // quick_sent() counts the put when its bytes have been read. quick_landing() says whether this packet needs no more
  // than what it writes to `landing`. Work: one entry is compared.
  [[nodiscard]] std::optional<uint64_t> quick_put(const QuickPut& put) const;
  [[nodiscard]] QuickCount quick_sent(const QuickPut& put);
  [[nodiscard]] bool quick_landing(const Packet& packet, QuickLanding& landing);
  // Publication (publication.hpp). publish() publishes the plain entries at the beginning of the portal's priority
  // list, at most `most`, and returns them. None: no more entries are plain than are published already, or a peer that
  // is stopped uses these. is_settled() says that no message that has come is open. Work of publish(): all entries.
  void set_publisher(Publisher& publisher);
  [[nodiscard]] std::vector<PlainEntry> publish(PortalIndex portal, uint32_t most);
  [[nodiscard]] bool is_settled() const;
  // A buffered packet has reached the scheduler. Work: one HER. `bytes` is its place in the packet buffer, where it
  // stays until the HER's id is given out again; null if it stays where it came from.
  void on_her_ready(HerId her, Actions& out, const uint8_t* bytes = nullptr);
  // A running handler calls. Work: one call. False: a Resume answers the call, among these actions or later ones. True:
  // the handler must stop, because the call or its options do not exist here (docs/handlers.md); there is no Resume,
  // and the driver ends the handler with on_handler_done(her, HandlerEnd::fault).
  [[nodiscard]] bool on_handler_call(HerId her, const HandlerCall& call, Actions& out);
  // A running handler has ended; `code` is used only if `end` is `returned`. Work: frees an HPU, and starts the
  // handlers for which an HPU is idle; after a header handler, all packets that waited for its decision. `cycles` is
  // the handler's run time, for telemetry.
  void on_handler_done(HerId her, HandlerEnd end, uint32_t code, Actions& out, uint64_t cycles = 0);
  // `failure` says why the bytes are not where they should be; the message, or the request that a reply answers, then
  // fails with it. The DMA of a put that takes the short way (nic_delivery) cannot fail.
  void on_dma_done(DmaId dma, Actions& out, Fail failure = Fail::ok);
  // The source of a write that blocks its handler has been read.
  void on_dma_read(DmaId dma, Actions& out);
  // The last packet of an outgoing message has been read from its buffer.
  void on_packet_sent(uint64_t message, Actions& out);
  // A packet of the outbound buffer has left, so its slot is free. Work: at most as many packets as there are slots.
  void on_packet_left(OutboundSlotId slot, Actions& out);
  // Follows the action Continue. Work: limits::packets_per_call_max packets, and one fired command.
  void on_continue(Actions& out);
  // A peer is lost: nothing comes from this rank any more, nor reaches it. Acknowledgements, replies and messages
  // that wait for the peer end as undeliverable; so does what is sent to it later, once it has been read. Work: all
  // that is open.
  void on_peer_lost(Rank peer, Actions& out);
  // Nothing sent to this rank arrives any more, but packets that it has sent are still to come. on_peer_lost follows.
  void on_peer_unreachable(Rank peer, Actions& out);
  // True if the peer is lost and nothing is left, at this NIC, of what was under way with it. Work: all that is open.
  [[nodiscard]] bool is_quiescent(Rank peer) const;
  // The replies of the peer that are still to come, or to be written to memory. Work: all that is open.
  [[nodiscard]] AwaitedReplies awaited_replies(Rank peer) const;
  // A lost peer is there again. This NIC is_quiescent() with it, and the peer with this NIC. Work: all entries.
  void on_peer_back(Rank peer, Actions& out);

  [[nodiscard]] const Context* context(ContextId id) const;
  [[nodiscard]] std::optional<CounterValue> counter(CounterId id) const;  // none: there is no such counter
  [[nodiscard]] NicState state() const;
  // One line for people: what is waiting (messages, HERs, DMAs, triggered commands).
  [[nodiscard]] std::string describe_waiting() const;
  [[nodiscard]] const NicLimits& limits() const;
  // Throws InternalError if an invariant is broken. For tests: looks at all that is open.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::nic
