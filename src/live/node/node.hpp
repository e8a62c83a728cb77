// Node - the live driver: one process's NIC engine in real time, over its transports.
//
// Contract: the Port of the portals floor. Commands go to the engine at once, and its actions are performed at once:
//   bytes are copied, packets handed to a transport, events put where take_event() finds them. drive() performs what
//   the transports and the handlers have; wait() does so until something has changed, then sleeps.
// Invariants: (1) every caller holds the owner lock; wait() releases it while it waits; (2) actions are performed in
//   their order and never call the engine: calls that follow from them are queued (`follow_ups_`), so that no chain
//   of triggered operations grows the stack; (3) a packet without room in the engine waits, and only answers pass it;
//   a peer of whom much waits is told to stop; (4) an idle process uses no processor time; (5) a peer's loss reaches
//   the engine behind the packets that came before it.
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
#include "live/node/segment.hpp"
#include "live/node/transport.hpp"
#include "nic/portals/nic.hpp"
#include "nic/spin/fifo.hpp"
#include "portals/interface/mailbox.hpp"
#include "portals/interface/port.hpp"

namespace spinloom::live {

class Node final : public portals::Port, public TransportClient, public HandlerOwner {
 public:
  Node(nic::Rank rank, uint32_t ranks, const nic::NicLimits& limits, Segment& own);
  ~Node() override;

  // Sends all packets to `peer` by this transport, which outlives the node's work.
  void route(nic::Rank peer, Transport& transport) { routes_.at(peer.value) = &transport; }
  void add(Transport& transport) { transports_.push_back(&transport); }

  // Sets the pool that runs handlers. Without a pool, contexts must not be created.
  void set_pool(HpuPool& pool) { pool_ = &pool; }
  // Called after the pool's end, when no handler runs.
  void forget_pool() { pool_ = nullptr; }

  [[nodiscard]] OwnerLock& lock() { return lock_; }
  // Does everything that can go on now; returns whether anything did.
  bool drive();
  // A caller looks without waiting, and may do so again and again: the helper leaves the work to it for a while.
  // Returns whether anything went on.
  bool poll();
  // True if the helper can leave the work to callers: one has looked since the last call of this function, or one polls
  // now. May be called without the lock.
  [[nodiscard]] bool take_active() { return polled_.exchange(false) || waiting_ > asleep_; }
  [[nodiscard]] bool polled() const { return polled_; }
  // Grows whenever something has changed for callers, or somebody interrupts them.
  [[nodiscard]] uint64_t changes() const { return mail_.changes() + interrupts_; }
  // Waits until something has changed for this host, until the deadline, or until interrupt().
  void wait_until(Time deadline);
  // Wakes all waiting callers, from any thread.
  void interrupt();
  // True if nothing of this process is on its way out.
  [[nodiscard]] bool drained() const;
  // The packets that this peer has not taken yet; for this rank itself, the work that is left.
  [[nodiscard]] Untaken untaken(nic::Rank peer) const;
  // The latest time for the next drive().
  [[nodiscard]] Time timer() const;
  // True if drive() may find something to do.
  [[nodiscard]] bool has_news() const;
  void peer_died(nic::Rank peer);
  [[nodiscard]] bool somebody_waits() const { return waiting_ > 0; }
  [[nodiscard]] Doorbell& doorbell() { return own_.header().doorbell; }
  [[nodiscard]] const nic::Nic& engine() const { return engine_; }
  // Packets that have come and wait for room in the engine.
  [[nodiscard]] const Backlog& backlog() const { return blocked_; }
  // Wakes sleeping callers if something has changed for them, or if the node must be driven sooner than they know.
  void tell_sleepers();
  // Called under the lock when something has changed for callers, for those who wait for several nodes.
  using Listener = std::function<void()>;
  void set_listener(Listener listener) { listener_ = std::move(listener); }
  // The caller will not come back before the helper has called the listener. Returns whether there is something to do
  // at once.
  [[nodiscard]] bool leave_to_helper();
  // Nobody polls any more: the helper hears the bell. Look once more after this: earlier rings may have woken nobody.
  void stop_polling();
  // Called when a handler's thread has left work that nobody looks after.
  using After = std::function<void()>;
  void set_after(After after) { after_ = std::move(after); }
  // The time for which a waiting caller polls before it sleeps; nearly zero if ranks share processors.
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
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return mail_.counter(counter); }
  [[nodiscard]] nic::HostMemory* memory() override { return &memory_; }
  Status wait() override;
  Status host_work(const portals::HostWork&) override { return {}; }  // the work has already taken its time

  // HandlerOwner, called by the pool's threads
  [[nodiscard]] Called call(nic::HerId her, const nic::HandlerCall& call) override;
  void ended(nic::HerId her, const spin::HandlerOutcome& outcome) override;

  // TransportClient
  [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t loan) override;
  void sent(const Reading& reading) override;
  void fetched(uint64_t token, bool well) override;
  void lost(nic::Rank peer) override;
  [[nodiscard]] bool is_parted(nic::Rank peer) const override;
  void back(nic::Rank peer) override;

 private:
  // A call to the engine that follows from an action.
  struct FollowUp {
    enum class Kind : uint8_t { dma_end, dma_failed, sent, left, her_ready, go_on, unreachable, lost, to_self };
    Kind kind = Kind::go_on;
    uint64_t id = 0;
    const uint8_t* bytes = nullptr;  // for her_ready
  };

  // A packet that arrives, and the transport that can read its payload.
  struct Arrival {
    Transport* from = nullptr;
    const nic::Packet* packet = nullptr;
  };

  [[nodiscard]] bool land_quickly(const nic::Packet& packet);
  void publish(const nic::QuickCount& count) {
    if (count.counter.exists()) mail_.set(count.counter, count.value);
  }
  void settle();
  void settle_now();
  void do_one(const FollowUp& one);
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
  [[nodiscard]] uint64_t part_of(const nic::Packet& rest) const;
  [[nodiscard]] bool bring_here(Transport* from, nic::Packet& part, uint64_t window, nic::PayloadRef& read);
  void give_up(const nic::Packet& rest);
  [[nodiscard]] bool is_stray(const nic::Packet& packet) const;
  void enter(Transport* from, const nic::Packet& packet);
  [[nodiscard]] bool block(Transport& from, const nic::Packet& rest, uint64_t loan);
  void unblock();
  void finish(const Blocked& one);
  void bring(const nic::DmaWrite& write);
  void doze(Time deadline);
  void stay_asleep();
  void look_now_and_then();
  void let_catch_up(nic::Rank target);
  [[nodiscard]] bool congested(nic::Rank target) const;
  void leave();

  nic::Rank rank_;
  GuardedMemory memory_;
  nic::Nic engine_;
  Segment& own_;
  OwnerLock lock_;
  After after_;
  Listener listener_;
  HpuPool* pool_ = nullptr;
  std::vector<Transport*> transports_;
  std::vector<Transport*> routes_;
  Time patience_{100'000'000};  // 100 us

  nic::Actions actions_;
  nic::Fifo<FollowUp> follow_ups_;
  bool settling_ = false;  // the follow-ups are being done
  std::deque<nic::Send> to_self_;  // one for each FollowUp of that kind
  std::deque<std::vector<uint8_t>> at_once_;  // payloads of those Sends that the engine takes for read
  Arrival arrival_;
  nic::QuickLanding landing_;
  std::vector<uint8_t> nic_memory_;
  std::vector<std::unique_ptr<uint8_t[]>> packet_memory_;  // by HER
  std::vector<uint8_t> window_;  // bytes of a peer's payload on their way to handlers
  Backlog blocked_;

  portals::Mailbox mail_;
  uint32_t puts_ = 0;
  uint64_t told_changes_ = 0;
  uint64_t interrupts_ = 0;
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint32_t> asleep_{0};  // waiting callers that sleep
  Time asleep_until_{};  // when the first of these looks by itself
  std::atomic<bool> polled_{false};
};

}  // namespace spinloom::live
