#include "nic/portals/event_queues.hpp"

namespace spinloom::nic {

Status EventQueues::alloc(const QueueAlloc& given) {
  if (given.slots == 0) return fail(Code::invalid, "queue ", given.queue, ": 0 slots; it needs at least 1");
  SPL_ASSIGN(Queue * queue, queues_.create(given.queue));
  queue->events_max = given.slots - std::min(given.slots, given.reserved);
  queue->index = given.index;
  return {};
}

Status EventQueues::free(QueueId id) {
  SPL_ASSIGN([[maybe_unused]] const Queue* queue, queues_.get(id));
  queues_.remove(id);
  return {};
}

void EventQueues::let_go(QueueId id) {
  Queue& queue = *queues_.find(id);
  SPL_ASSERT(queue.holders > 0, "queue ", id);
  --queue.holders;
}

bool EventQueues::has_room(QueueId id, uint32_t events) const {
  const Queue& queue = *queues_.find(id);
  return !queue.index || queue.index->waiting() + queue.events_due + events <= std::max(queue.events_max, events);
}

void EventQueues::settle(QueueId id) {
  Queue* const queue = queues_.find(id);
  if (queue == nullptr) return;  // the host has freed the queue
  SPL_ASSERT(queue->events_due > 0, "queue ", id);
  --queue->events_due;
}

}  // namespace spinloom::nic
