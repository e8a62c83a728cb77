// Engine: one-sided operations land at their target, come back, and are counted.
#include <utility>

#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {

using schedule::Kind;

// Messages of one-sided operations, those that come back too, have the `operation` and the `shape` of the initiator.
void Engine::land(uint64_t now, uint32_t event) {
  const Event message = queue_[event];
  const Kind kind = costs_[message.shape].kind;
  if (message.message_kind == MessageKind::reply) {
    queue_.release(event);
    end(now, message.rank, message.operation);
    return;
  }
  if (message.message_kind == MessageKind::put)
    count_arrival(now, message.rank, message.source, message.operation, message.shape);
  if (kind == Kind::put || kind == Kind::atomic) {
    queue_.release(event);
    return;
  }
  Event& back = queue_[event];
  std::swap(back.source, back.rank);
  back.message_kind = MessageKind::reply;
  push(now, event, EventKind::leave);
}

// A get has been done at its target when the last byte has left.
void Engine::push_served(uint64_t at_ps, const Event& reply) {
  const uint32_t event = queue_.add();
  queue_[event] = reply;
  queue_[event].is_leader = false;
  push(at_ps, event, EventKind::served);
}

void Engine::served(uint64_t now, uint32_t event) {
  const Event reply = queue_[event];
  queue_.release(event);
  count_arrival(now, reply.source, reply.rank, reply.operation, reply.shape);
}

void Engine::count_arrival(uint64_t now, uint32_t rank, uint32_t source, uint32_t operation, uint32_t shape) {
  for (const uint32_t done : arrivals_.count(rank, costs_[shape].tag)) {
    --unmatched_;
    if (record_ != nullptr) [[unlikely]] {
      OperationTimes& trace = record_->of(rank, done);
      trace.partner_rank = source;
      trace.partner = operation;
      trace.arrived_ps = now;
    }
    end(now, rank, done);
  }
}

// The wait needs no CPU.
void Engine::arrived(uint64_t now, uint32_t event) {
  const Event current = queue_[event];
  const Costs& costs = costs_[current.shape];
  queue_.release(event);
  if (record_ != nullptr) [[unlikely]]
    record_->of(current.rank, current.operation).begin_ps = now;
  begin(now, current.rank, current.operation);
  if (arrivals_.arrived(current.rank, costs.tag) >= costs.size) {
    end(now, current.rank, current.operation);
    return;
  }
  ++unmatched_;
  arrivals_.wait(current.rank, costs.tag, costs.size, current.operation);
}

}  // namespace spinloom::goal
