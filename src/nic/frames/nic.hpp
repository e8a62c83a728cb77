// Nic - an Ethernet NIC that runs handlers, sans-I/O: matching, packet memory, messages, scheduling, egress.
//
// A frame from the wire that no rule set takes goes to the host's stack. One that a rule set takes is copied to a slot
// of packet memory; handlers of the rule set's context then run for it, or it is written to host memory. Source:
// FPsPIN, deliverable D4.7, section 4 (data path 4.2.2 to 4.2.5, changes proposed in 4.4); message queues as PsPIN's.
//
// Contract: the driver calls on_... in the order in which service starts at each unit and performs the actions; the
//   engine owns counts and allocation, the driver owns bytes and durations. The same calls with the same arguments give
//   the same actions. Context number n belongs to rule set number n.
// Invariants: (1) every frame is counted once under its fate; (2) a message's header handler runs alone before its
//   payload handlers, its completion handler alone after them, with the last frame; (3) a packet slot is free when the
//   handlers of its frame have ended and their DMAs and sends are done; (4) a payload handler that faults costs its
//   frame only, a header handler the frames of its message; (5) a configuration is replaced as a whole: no frame sees
//   half of one; (6) each call does bounded work; (7) mail runs its handler once, in the context that it names, or is
//   refused.
// Threads: exactly one owner. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/frames/action.hpp"
#include "nic/frames/counts.hpp"
#include "nic/frames/packet_allocator.hpp"
#include "nic/frames/rule_set.hpp"
#include "nic/spin/handler_call.hpp"
#include "nic/spin/scheduler.hpp"
#include "nic/spin/telemetry.hpp"

namespace spinloom::frames {

struct Limits {
  MatcherLimits matcher;
  std::vector<SlotClass> slots = PacketAllocator::board();
  uint32_t frame_bytes_max = 1518;  // the length with a VLAN tag, without the checksum
  uint32_t hpus = 16;
  uint32_t message_queues = 16;  // messages with header or completion handlers, at once
  uint32_t idle_frames = 1 << 16;  // a message that had no frame among the last matched ones may lose its queue
  uint64_t nic_memory_bytes = 1 << 20;
  Arbitration arbitration = Arbitration::handlers_first;
  uint32_t egress_depth = 2;
  uint32_t host_frames = 64;  // frames of the host that may wait for the wire
  uint32_t mails = 64;  // requests of handlers that a context may have at once
  Fairness fairness = Fairness::oldest;
};

// Frames that are written to host memory without a handler: a ring of entries, each a RingHeader and the frame.
struct RingHeader {
  uint32_t sequence = 0;  // counts from 1; written last
  uint32_t length = 0;
  uint32_t message = 0;
  uint32_t rule_set = 0;
};
inline constexpr uint32_t ring_entry_bytes = 2048;

struct ContextOptions {
  Context handlers;  // host memory: handler_host_start and handler_host_length
  bool frames_to_memory = false;  // no handlers: its host memory is a ring
};

// A snapshot of everything under way.
struct State {
  uint32_t packets = 0;  // slots of packet memory in use
  uint32_t messages = 0;  // messages that have begun and not ended
  uint32_t hers = 0;
  uint32_t hpus_busy = 0;
  uint32_t dmas_open = 0;
  uint32_t egress_waiting = 0;
};

class Nic {
 public:
  static Result<std::unique_ptr<Nic>> create(const Limits& limits);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // ---- the host configures ----
  [[nodiscard]] Status configure(std::vector<RuleSet> rule_sets);
  // Makes a context that takes no frames yet. Its windows must lie in NIC memory.
  [[nodiscard]] Status install(ContextId id, const ContextOptions& options);
  // Runs its initialisation handler; Initialised follows. The context must not be active.
  [[nodiscard]] Status initialise(ContextId id, Actions& out);
  [[nodiscard]] Status activate(ContextId id, bool active = true);
  // Removes a context that is inactive and of which nothing is under way.
  [[nodiscard]] Status remove(ContextId id);
  // Runs the payload handler without a frame, its `message` as given (deliverable D4.7, section 4.4.7).
  [[nodiscard]] Status invoke(ContextId id, uint32_t message, Actions& out);
  // Ends the open messages of a context that have no frame under way, without their completion handlers.
  [[nodiscard]] Status end_messages(ContextId id);
  // Notes that the host has read `entries` entries of the context's ring.
  void on_host_read(ContextId id, uint32_t entries);

  // ---- frames ----
  // Takes a frame from the wire. Its bytes must stay until its StoreFrame or ToHost has been performed.
  void on_frame(const PayloadRef& bytes, Actions& out);
  // Takes a frame from the host's stack. False: refused, and counted; the host may try again after an on_transmitted or
  // on_not_sent.
  [[nodiscard]] bool on_host_frame(const PayloadRef& bytes, uint64_t token, Actions& out);
  // The frame is in packet memory, at `place`.
  void on_stored(PacketId packet, uint8_t* place, Actions& out);
  void on_transmitted(const EgressFrame& frame, Actions& out);
  // The wire does not take this frame: its bytes are free, and it does not count as sent.
  void on_not_sent(const EgressFrame& frame, Actions& out);

  // ---- handlers ----
  // True: the handler must stop, because its call does not exist here. False: a Resume answers, now or later.
  [[nodiscard]] bool on_handler_call(HerId her, const HandlerCall& call, Actions& out);
  void on_handler_done(HerId her, HandlerEnd end, uint32_t code, Actions& out, uint64_t cycles = 0);
  void on_dma_done(DmaId dma, Actions& out);
  void on_dma_read(DmaId dma, Actions& out);

  [[nodiscard]] const Context* context(ContextId id) const;
  [[nodiscard]] bool is_active(ContextId id) const;
  [[nodiscard]] const Counts& counts() const;
  [[nodiscard]] uint64_t count(Count which) const { return counts()[static_cast<uint8_t>(which)]; }
  [[nodiscard]] const TelemetryCounts* telemetry(ContextId id) const;
  [[nodiscard]] const PacketAllocator& packet_memory() const;
  [[nodiscard]] State state() const;
  // One line for people: what is under way.
  [[nodiscard]] std::string describe_waiting() const;
  [[nodiscard]] const Limits& limits() const;
  // Throws InternalError if an invariant is broken. For tests: looks at all that is open.
  void check_invariants() const;

 private:
  struct Impl;
  explicit Nic(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::frames
