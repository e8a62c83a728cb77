// Engine: one-sided operations land at their target, come back, and are counted.
#include <utility>

#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {

using schedule::Kind;

// Messages of one-sided operations, those that come back too, have the `operation` and the `shape` of the initiator.
void Engine::land(uint64_t now, uint32_t event) {
  const Event message = queue_[event];
  const Kind kind = costs_[message.shape].kind;
  if (message.carried == Carried::reply) {
    queue_.release(event);
    end(now, message.rank, message.operation);
    return;
  }
  if (message.carried == Carried::put)
    count_arrival(now, message.rank, message.source, message.operation, message.shape);
  if (kind == Kind::put || kind == Kind::atomic) {
    queue_.release(event);
    return;
  }
  Event& back = queue_[event];
  std::swap(back.source, back.rank);
  back.carried = Carried::reply;
  push(now, event, EventKind::leave);
}

// A get has been done at its target when the last byte has left.
void Engine::serve(uint64_t at_ps, const Event& reply) {
  const uint32_t event = queue_.add();
  queue_[event] = reply;
  queue_[event].leads = false;
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
      Trace& trace = record_->of(rank, done);
      trace.partner_rank = source;
      trace.partner = operation;
      trace.there_ps = now;
    }
    end(now, rank, done);
  }
}

// The wait needs no CPU.
void Engine::arrived(uint64_t now, uint32_t event) {
  const Event did = queue_[event];
  const Costs& costs = costs_[did.shape];
  queue_.release(event);
  if (record_ != nullptr) [[unlikely]]
    record_->of(did.rank, did.operation).begin_ps = now;
  begin(now, did.rank, did.operation);
  if (arrivals_.there(did.rank, costs.tag) >= costs.size) {
    end(now, did.rank, did.operation);
    return;
  }
  ++unmatched_;
  arrivals_.wait(did.rank, costs.tag, costs.size, did.operation);
}

}  // namespace spinloom::goal
