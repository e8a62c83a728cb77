// EventQueues - the NIC's state of the host's event queues: their slots, and the table entries that post to them.
//
// Contract: post() gives the driver an event and counts it. Events for no queue, or for a freed queue, are dropped.
//   Portal table entries with flow control hold() the queue that they post to. When a held queue is full, the Watcher
//   hears of it at once.
// Invariants: (1) with flow control a message is taken only if its events have room: reserve() takes the room,
//   unreserve() returns it; (2) events that the host asked for (HostRequestScope) are never overwritten under flow
//   control: they get slots of their own.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/limits.hpp"
#include "nic/portals/action.hpp"
#include "nic/portals/command.hpp"
#include "nic/spin/slot_counts.hpp"
#include "nic/spin/table.hpp"

namespace spinloom::nic {

class EventQueues {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // Called when all slots of this queue but the reserved ones are taken.
    virtual void queue_filled(QueueId queue, Actions& out) = 0;
  };

  explicit EventQueues(Watcher& watcher) : watcher_(watcher) {}

  [[nodiscard]] Status alloc(const QueueAlloc& request);
  [[nodiscard]] Status free(QueueId id);
  [[nodiscard]] bool exists(QueueId id) const { return queues_.find(id) != nullptr; }

  // `fill` fills in the new event; it is called only if the queue exists.
  template <class Fill>
  void post_with(QueueId id, Actions& out, Fill fill) {
    const Queue* const queue = queues_.find(id);
    if (queue == nullptr) return;
    if (host_requests_ > 0) add_slot(*queue);
    PostEvent& post = out.add<PostEvent>();
    post.queue = id;
    fill(post.event);
    count(id, *queue, out);
  }
  void post(QueueId id, const Event& event, Actions& out) {
    post_with(id, out, [&](Event& posted) { posted = event; });
  }
  // Counts an event that reaches the host by another way.
  void count_posted(QueueId id) {
    const Queue& queue = *queues_.find(id);
    if (queue.index) queue.index->posted.fetch_add(1, std::memory_order_release);
  }

  // A portal table entry with flow control begins to post to the queue.
  void hold(QueueId id) { ++queues_.find(id)->holders; }
  void unhold(QueueId id);
  [[nodiscard]] bool is_held(QueueId id) const { return queues_.find(id)->holders > 0; }
  // True if the queue has room for `events` more events. An empty queue has room, however small it is.
  [[nodiscard]] bool has_room(QueueId id, uint32_t events) const;
  void reserve(QueueId id) { ++queues_.find(id)->events_reserved; }
  void unreserve(QueueId id);

  // While such an object exists, posted events count as asked for by the host.
  class HostRequestScope {
   public:
    explicit HostRequestScope(EventQueues& queues) : queues_(queues) { ++queues_.host_requests_; }
    ~HostRequestScope() { --queues_.host_requests_; }
    HostRequestScope(const HostRequestScope&) = delete;
    HostRequestScope& operator=(const HostRequestScope&) = delete;

   private:
    EventQueues& queues_;
  };

  // Throws InternalError if an invariant is broken, for tests. `holders` and `reserved` say of each queue how often it
  // must be held, and for how many events it must keep room.
  void check_invariants(const SlotCounts& holders, const SlotCounts& reserved) const;

 private:
  struct Queue {
    uint32_t events_max = 0;  // slots of the queue without the reserved ones
    uint32_t holders = 0;  // portal table entries with flow control that post here
    uint32_t events_reserved = 0;  // room kept for messages of the holders, and for entries that such messages unlink
    std::shared_ptr<QueueIndex> index;
  };

  // Counts one more event, which the host cannot see yet.
  void count(QueueId id, const Queue& queue, Actions& out) {
    if (!queue.index) return;
    queue.index->posted.fetch_add(1, std::memory_order_release);
    if (queue.holders > 0 && queue.index->waiting() >= queue.events_max) watcher_.queue_filled(id, out);
  }
  // Adds a slot for an event of the host, so that it takes no room from messages under way.
  static void add_slot(const Queue& queue) {
    if (queue.holders == 0 || !queue.index) return;
    if (queue.index->waiting() + queue.events_reserved < queue.events_max) return;
    queue.index->added.fetch_add(1, std::memory_order_release);
  }

  Watcher& watcher_;
  Table<QueueId, Queue> queues_{"queue", limits::queue_count_max, "limits::queue_count_max"};
  uint32_t host_requests_ = 0;
};

}  // namespace spinloom::nic
