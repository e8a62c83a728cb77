// EventQueues - the event queues of the host, as far as the NIC knows them: their slots, and who posts to them.
//
// Contract: post() gives the driver an event and counts it. Events for no queue, or for one that is freed, are dropped.
//   Portal table entries with flow control hold() the queue that they post to; when such a queue is full, the Watcher is
//   told, at once.
// Invariants: (1) with flow control a message is taken only if its events have room: expect() keeps it, settle() ends
//   that; (2) what the host asked for itself (HostAsked) is never overwritten under flow control: it gets slots of its
//   own.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/limits.hpp"
#include "nic/action.hpp"
#include "nic/command.hpp"
#include "nic/table.hpp"

namespace spinloom::nic {

class EventQueues {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // All slots of this queue but the reserved ones are taken.
    virtual void queue_filled(QueueId queue, Actions& out) = 0;
  };

  explicit EventQueues(Watcher& watcher) : watcher_(watcher) {}

  [[nodiscard]] Status alloc(const QueueAlloc& given);
  [[nodiscard]] Status free(QueueId id);
  [[nodiscard]] bool exists(QueueId id) const { return queues_.find(id) != nullptr; }

  // `fill`: makes the event, where the queue exists.
  template <class Fill>
  void post_made(QueueId id, Actions& out, Fill fill) {
    const Queue* const queue = queues_.find(id);
    if (queue == nullptr) return;
    if (host_asked_ > 0) give_slot(*queue);
    PostEvent& post = out.add<PostEvent>();
    post.queue = id;
    fill(post.event);
    count(id, *queue, out);
  }
  void post(QueueId id, const Event& event, Actions& out) {
    post_made(id, out, [&](Event& made) { made = event; });
  }
  // Of an event that reaches the host by another way.
  void count_posted(QueueId id) {
    const Queue& queue = *queues_.find(id);
    if (queue.index) queue.index->posted.fetch_add(1, std::memory_order_release);
  }

  // Flow control.
  void hold(QueueId id) { ++queues_.find(id)->holders; }
  void let_go(QueueId id);
  [[nodiscard]] bool is_held(QueueId id) const { return queues_.find(id)->holders > 0; }
  // Whether so many events more have room.
  [[nodiscard]] bool has_room(QueueId id, uint32_t events) const;
  void expect(QueueId id) { ++queues_.find(id)->events_due; }
  void settle(QueueId id);

  // While one is here, what is posted was asked for by the host.
  class HostAsked {
   public:
    explicit HostAsked(EventQueues& queues) : queues_(queues) { ++queues_.host_asked_; }
    ~HostAsked() { --queues_.host_asked_; }
    HostAsked(const HostAsked&) = delete;
    HostAsked& operator=(const HostAsked&) = delete;

   private:
    EventQueues& queues_;
  };

 private:
  struct Queue {
    uint32_t events_max = 0;  // without the reserved slots
    uint32_t holders = 0;  // portal table entries with flow control that post here
    uint32_t events_due = 0;  // of messages for these, and of entries that such messages made leave
    std::shared_ptr<QueueIndex> index;
  };

  // One event more, which the host cannot see yet.
  void count(QueueId id, const Queue& queue, Actions& out) {
    if (!queue.index) return;
    queue.index->posted.fetch_add(1, std::memory_order_release);
    if (queue.holders > 0 && queue.index->waiting() >= queue.events_max) watcher_.queue_filled(id, out);
  }
  // It does not take the room that is kept for messages under way.
  static void give_slot(const Queue& queue) {
    if (queue.holders == 0 || !queue.index) return;
    if (queue.index->waiting() + queue.events_due < queue.events_max) return;
    queue.index->added.fetch_add(1, std::memory_order_release);
  }

  Watcher& watcher_;
  Table<QueueId, Queue> queues_{"queue", limits::queue_count_max, "limits::queue_count_max"};
  uint32_t host_asked_ = 0;
};

}  // namespace spinloom::nic
