#include "nic/portals/event_queues.hpp"

namespace spinloom::nic {

Status EventQueues::alloc(const QueueAlloc& request) {
  if (request.slots == 0) return fail(Code::invalid, "queue ", request.queue, ": 0 slots; it needs at least 1");
  SPL_ASSIGN(Queue * queue, queues_.create(request.queue));
  queue->events_max = request.slots - std::min(request.slots, request.reserved);
  queue->index = request.index;
  return {};
}

Status EventQueues::free(QueueId id) {
  SPL_ASSIGN([[maybe_unused]] const Queue* queue, queues_.get(id));
  queues_.remove(id);
  return {};
}

void EventQueues::unhold(QueueId id) {
  Queue& queue = *queues_.find(id);
  SPL_ASSERT(queue.holders > 0, "queue ", id);
  --queue.holders;
}

bool EventQueues::has_room(QueueId id, uint32_t events) const {
  const Queue& queue = *queues_.find(id);
  return !queue.index || queue.index->waiting() + queue.events_reserved + events <= std::max(queue.events_max, events);
}

void EventQueues::unreserve(QueueId id) {
  Queue* const queue = queues_.find(id);
  if (queue == nullptr) return;  // the host has freed the queue
  SPL_ASSERT(queue->events_reserved > 0, "queue ", id);
  --queue->events_reserved;
}

}  // namespace spinloom::nic
