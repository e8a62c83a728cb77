// Node - the live driver: one process's NIC engine in real time, over its transports.
//
// Contract: the Port of the portals floor. Commands go to the engine at once, and its actions are performed at once:
//   bytes are copied, packets handed to a transport, events put where take_event() finds them. drive() takes what the
//   transports have, and makes the calls to the engine that follow. wait() drives until something has changed; where
//   nothing happens for a while, it sleeps meanwhile, and may then return without a change.
// Invariants: (1) every caller holds the owner lock, except where a function says otherwise; wait() releases it while
//   it sleeps or lets others in; (2) actions are performed in their order and never call the engine: calls that follow
//   from them are queued (`follow_ups_`), so that no chain of triggered operations grows the stack; (3) a packet
//   without room in the engine waits, and only answers pass it; a peer of which much waits is told to stop, and where
//   it does not, its further packets are dropped; (4) an idle process sleeps, but for the timers of its transports; (5)
//   a peer's loss (on_peer_lost) reaches the engine behind the packets that came before it. That the peer is
//   unreachable reaches it at once.
// Threads: any, under the lock; a helper thread drives when nobody waits, a watcher sees peers end (progress.hpp).
// Time: the monotonic clock.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "live/node/backlog.hpp"
#include "live/node/guarded_memory.hpp"
#include "live/node/hpu_pool.hpp"
#include "live/node/owner_lock.hpp"
#include "live/node/publications.hpp"
#include "live/node/segment.hpp"
#include "live/node/transport.hpp"
#include "nic/portals/nic.hpp"
#include "nic/spin/fifo.hpp"
#include "portals/interface/mailbox.hpp"
#include "portals/interface/port.hpp"

namespace spinloom::live {

class Node final : public portals::Port, public TransportClient, public HandlerOwner, private nic::Publisher {
 public:
  Node(nic::Rank rank, uint32_t ranks, const nic::NicLimits& limits, Segment& own);
  ~Node() override;

  // Sends all packets to `peer` by this transport, which outlives the node's work.
  void set_route(nic::Rank peer, Transport& transport) { routes_.at(peer.value) = &transport; }
  void add_transport(Transport& transport) { transports_.push_back(&transport); }

  // Sets the pool that runs handlers. Without a pool, contexts must not be created.
  void set_pool(HpuPool& pool) { pool_ = &pool; }
  // Starts and resumes no handler from now on: the pool is about to end. Its threads may call the node until it has.
  void forget_pool() { pool_ = nullptr; }

  [[nodiscard]] OwnerLock& lock() { return lock_; }
  // Does what can go on now; returns whether there was anything.
  bool drive();
  // Drives for a caller that looks without waiting, and may do so again and again: the helper leaves the work to it for
  // a while. Returns whether anything went on.
  bool poll();
  // True if the helper can leave the work to callers: one has looked or waited since the last call of this function, or
  // one polls now. May be called without the lock.
  [[nodiscard]] bool consume_activity() { return was_polled_.exchange(false) || waiting_ > asleep_; }
  [[nodiscard]] bool was_polled() const { return was_polled_; }
  // Grows whenever something has changed for callers, or somebody interrupts them.
  [[nodiscard]] uint64_t changes() const { return mail_.changes() + interrupts_; }
  // Waits until something has changed for this host, until the deadline, or until interrupt(). After a sleep it may
  // also return for no reason.
  void wait_until(Time deadline);
  // Makes all waiting callers return. Takes the lock itself, so it may be called by any thread that does not hold it.
  void interrupt();
  // True if nothing of this process is on its way out.
  [[nodiscard]] bool drained() const;
  // The packets that this peer has not taken yet. For this rank itself: one packet, counted as a note, while work is
  // left.
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const;
  // The latest time for the next drive().
  [[nodiscard]] Time timer() const;
  // True if drive() may find something to do.
  [[nodiscard]] bool has_news() const;
  [[nodiscard]] bool somebody_waits() const { return waiting_ > 0; }
  [[nodiscard]] Doorbell& doorbell() { return own_.header().doorbell; }
  [[nodiscard]] const nic::Nic& engine() const { return engine_; }
  // Packets that have come and wait for room in the engine.
  [[nodiscard]] const Backlog& backlog() const { return backlog_; }
  // Wakes sleeping callers if something has changed for them, or if the node must be driven sooner than they know.
  // Calls the listener if something has changed.
  void tell_sleepers();
  // Sets a function for callers that wait for several nodes: tell_sleepers() calls it, under the lock, if something has
  // changed for callers.
  using Listener = std::function<void()>;
  void set_listener(Listener listener) { listener_ = std::move(listener); }
  // Leaves the driving to the helper: the caller comes back only when the listener has been called. Returns whether
  // there is something to do at once.
  [[nodiscard]] bool leave_to_helper();
  // Says that nobody polls any more, so that rings wake the helper. The caller looks once more after this, because
  // earlier rings may have woken nobody.
  void stop_polling();
  // Sets a function that is called when work may be left that nobody looks after: after every call and end of a
  // handler, and by leave_to_helper().
  using OnWorkLeft = std::function<void()>;
  void set_on_work_left(OnWorkLeft on_work_left) { on_work_left_ = std::move(on_work_left); }
  // From now on peers reach into this process's memory by packets only.
  void end_publications() { publications_.end(); }
  // Sets the time for which a waiting caller polls before it sleeps; 0 if ranks share processors.
  void set_patience(Time spin) { patience_ = spin; }
  [[nodiscard]] bool has_patience() const { return patience_ > Time{}; }

  // portals::Port
  [[nodiscard]] nic::Rank rank() const override { return rank_; }
  [[nodiscard]] Time now() const override { return monotonic_now(); }
  void submit(const nic::Command& command) override;
  void put(const nic::Put& put) override;
  bool put_quickly(const nic::QuickPut& put) override;
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return mail_.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return mail_.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override {
    nic::CounterValue value = mail_.counter(counter);
    value.success += publications_.uncounted(counter);
    return value;
  }
  [[nodiscard]] nic::HostMemory* memory() override { return &memory_; }
  Status wait() override;
  Status host_work(const portals::HostWork&) override { return {}; }  // the work has already taken its time

  // HandlerOwner, called by the pool's threads
  [[nodiscard]] CallResult call(nic::HerId her, const nic::HandlerCall& call) override;
  void ended(nic::HerId her, const spin::HandlerOutcome& outcome) override;

  // TransportClient
  [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t loan) override;
  void sent(const SendCompletion& completion) override;
  void fetched(uint64_t token, bool succeeded) override;
  void lost(nic::Rank peer) override;
  [[nodiscard]] bool is_disconnected(nic::Rank peer) const override;
  void reconnected(nic::Rank peer) override;

 private:
  // A call to the engine that follows from an action.
  struct FollowUp {
    enum class Kind : uint8_t {
      dma_end,
      dma_failed,
      sent,
      left,
      her_ready,
      go_on,
      unreachable,
      lost,
      to_self,
      direct_end
    };
    Kind kind = Kind::go_on;
    uint64_t id = 0;
    const uint8_t* bytes = nullptr;  // the buffered packet, if her_ready
  };

  // A packet that arrives, and the transport that can read its payload.
  struct Arrival {
    Transport* from = nullptr;
    const nic::Packet* packet = nullptr;
  };

  // nic::Publisher
  [[nodiscard]] bool close(nic::PortalIndex portal) override { return publications_.close(portal); }
  void note_change(nic::PortalIndex portal) override { publications_.note_change(portal); }

  void bring_counts();
  void note_settled();
  void end_direct();
  template <class Change>
  void perform_alone(const Change& change);
  [[nodiscard]] bool land_quickly(const nic::Packet& packet);
  void publish(const nic::QuickCount& count) {
    if (count.counter.exists()) mail_.set(count.counter, count.value);
  }
  void settle();
  void settle_now();
  void execute(const FollowUp& one);
  void arrive_from_self();
  void dma_ended(nic::DmaId dma);
  void perform();
  void perform(nic::Send& send);
  void perform(const nic::DmaWrite& write);
  void perform(const nic::PostCounter& post) { mail_.set(post.counter, post.value); }
  void perform(const nic::PostEvent& post) { mail_.add(post.queue, post.event); }
  void perform(nic::Answer& answer) { mail_.answer(answer.token, std::move(answer.result)); }
  void perform(const nic::Continue&) { follow_ups_.push({FollowUp::Kind::go_on}); }
  void perform(const nic::BufferPacket& buffer);
  void perform(const nic::RunHandler& start);
  void perform(const nic::Resume& resume);
  void perform(const nic::DebugLine&) {}  // live nodes print no debug lines
  void perform(const nic::DmaRead& read);
  void perform(const nic::DmaAtomic& atomic);
  void perform(const nic::ApplyAtomic& apply);
  void perform(const nic::StorePacket& store);
  [[nodiscard]] bool feed(Transport* from, nic::Packet& rest, uint64_t window);
  [[nodiscard]] uint64_t next_part_bytes(const nic::Packet& rest) const;
  [[nodiscard]] bool fetch_part(Transport* from, nic::Packet& part, uint64_t window, nic::PayloadRef& read);
  void abort_message(const nic::Packet& rest);
  [[nodiscard]] bool is_stray(const nic::Packet& packet) const;
  void give_to_engine(Transport* from, const nic::Packet& packet);
  [[nodiscard]] bool add_to_backlog(Transport& from, const nic::Packet& rest, uint64_t loan);
  void drain_backlog();
  void finish_entry(const BacklogEntry& one);
  void fetch_dma(const nic::DmaWrite& write);
  void sleep_without_news(Time deadline);
  void leave_to_sleepers();
  void poll_now_and_then();
  void throttle(nic::Rank target);
  [[nodiscard]] bool congested(nic::Rank target) const;
  void note_polled();

  nic::Rank rank_;
  GuardedMemory memory_;
  nic::Nic engine_;
  Segment& own_;
  Publications publications_;
  OwnerLock lock_;
  OnWorkLeft on_work_left_;
  Listener listener_;
  HpuPool* pool_ = nullptr;
  std::vector<Transport*> transports_;
  std::vector<Transport*> routes_;
  Time patience_{100'000'000};  // 100 us

  nic::Actions actions_;
  nic::Fifo<FollowUp> follow_ups_;
  bool settling_ = false;  // the follow-ups are being done
  std::deque<nic::Send> to_self_;  // packets to this process, one for each FollowUp of kind to_self
  std::deque<std::vector<uint8_t>> at_once_;  // copied payloads of the Sends in to_self_ that are `at_once`
  std::deque<DirectEnd> direct_ends_;  // one for each FollowUp of kind direct_end
  Arrival arrival_;
  nic::QuickLanding landing_;
  std::vector<uint8_t> nic_memory_;
  std::vector<std::unique_ptr<uint8_t[]>> packet_memory_;  // buffered packets, by HER
  std::vector<uint8_t> window_;  // bytes of a peer's payload on their way to handlers
  Backlog backlog_;

  portals::Mailbox mail_;
  uint32_t puts_ = 0;
  uint64_t reported_changes_ = 0;
  uint64_t interrupts_ = 0;
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint32_t> asleep_{0};  // waiting callers that sleep
  Time asleep_until_{};  // the time when the first sleeping caller wakes by itself
  std::atomic<bool> was_polled_{false};
};

}  // namespace spinloom::live
