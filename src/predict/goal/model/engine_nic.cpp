// Engine: messages leave NICs, arrive at NICs, are there, and match.
#include <algorithm>
#include <utility>

#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {

using schedule::Kind;

// An answer and data have the receive's operation as `shape`, so their costs are found by the send.
const Engine::Costs& Engine::costs_of(const Event& message) const {
  if (message.message_kind == MessageKind::answer) return costs_of(message.rank, message.operation);
  return message.message_kind == MessageKind::data ? costs_of(message.source, message.operation)
                                                   : costs_[message.shape];
}

void Engine::leave(uint64_t now, uint32_t event) {
  const Event message = queue_[event];
  const Costs& costs = costs_of(message);
  Nic& nic = nic_of(message.source, costs);
  const uint64_t begin_ps = std::max(now, nic.sending_until_ps);
  const uint64_t bytes_ps = is_control(message.message_kind) ? 0 : costs.bytes_ps;
  nic.sending_until_ps = clamped(begin_ps + bytes_ps + model_.g_ps);
  if (record_ != nullptr && !is_control(message.message_kind) && message.message_kind != MessageKind::reply)
      [[unlikely]] {
    record_->of(message.source, message.operation).departed_ps = begin_ps;
  }
  if (sink_ != nullptr && outside_ranks_.has(message.rank)) [[unlikely]] {
    queue_.release(event);
    sink_->on_message(begin_ps, message);
  } else if (network_.has_value()) {
    send_packets(begin_ps, event);
  } else {
    push(begin_ps + model_.L_ps, event, EventKind::arrive);
  }
  if (message.message_kind >= MessageKind::data) finish_send(begin_ps + bytes_ps, message, costs);
}

// Ends or counts the operations for which it is enough that the last byte of this message has left.
void Engine::finish_send(uint64_t at_ps, const Event& message, const Costs& costs) {
  if (message.message_kind == MessageKind::data ||
      (message.message_kind == MessageKind::put && costs.kind != Kind::fetch)) {
    end(at_ps, message.source, message.operation);
  }
  if (message.message_kind == MessageKind::reply && costs.kind == Kind::get) push_served(at_ps, message);
}

void Engine::arrive(uint64_t now, uint32_t event) {
  const Event& message = queue_[event];
  const Costs& costs = costs_of(message);
  Nic& nic = nic_of(message.rank, costs);
  const uint64_t begin_ps = std::max(now, nic.receiving_until_ps);
  const uint64_t bytes_ps = is_control(message.message_kind) ? 0 : costs.bytes_ps;
  nic.receiving_until_ps = clamped(begin_ps + bytes_ps + model_.g_ps);
  push(begin_ps + bytes_ps, event, EventKind::complete);
}

// Occupies the rank's first NIC with a part of a message, as take_packet() does. Returns when the part is there.
uint64_t Engine::receive_part(uint64_t now, uint32_t rank, uint64_t first, uint64_t end, uint64_t total) {
  Nic& nic = nics_[rank * nics_each_];
  const uint64_t begin_ps = std::max(now, nic.receiving_until_ps);
  const bool is_last = end == total;
  const uint64_t bytes_ps = is_last ? time_ps(model_.G, std::max<uint64_t>(total, 1) - 1) - time_ps(model_.G, first)
                                    : static_cast<uint64_t>(model_.G.ps_down(end - first));
  nic.receiving_until_ps = clamped(begin_ps + bytes_ps + (is_last ? model_.g_ps : 0));
  return begin_ps + bytes_ps;
}

void Engine::add_arrived(uint64_t at_ps, const Event& message) {
  const uint32_t event = queue_.add();
  queue_[event] = message;
  queue_[event].is_leader = false;
  push(at_ps, event, EventKind::complete);
}

bool Engine::complete(uint64_t now, uint32_t event) {
  Event& message = queue_[event];
  ++event_count_;
  if (message.message_kind >= MessageKind::put) {
    land(now, event);
    return true;
  }
  if (message.message_kind == MessageKind::answer) {
    std::swap(message.source, message.rank);
    message.message_kind = MessageKind::data;
    push(now, event, EventKind::leave);
    return true;
  }
  uint32_t receive = message.shape;  // data have their receive here
  if (message.message_kind == MessageKind::data) {
    message.shape = schedule_.program(message.source).operation(message.operation).shape;
  } else {
    Rank& state = ranks_[message.rank];
    const uint32_t tag = costs_[message.shape].tag;
    Matching::Item posted;
    if (!matching_.take(state.posted, message.source, tag, posted)) {
      matching_.add(state.arrived, {message.source, tag, message.operation, message.shape});
      ++unmatched_;
      if (record_ != nullptr && message.message_kind != MessageKind::request) [[unlikely]] {
        record_->of(message.source, message.operation).arrived_ps = now;
      }
      queue_.release(event);
      return true;
    }
    --unmatched_;
    receive = posted.operation;
    if (record_ != nullptr) [[unlikely]] {
      record_->match(now, message.rank, receive, message.source, message.operation, false);
    }
    if (message.message_kind == MessageKind::request) {
      answer(now, event, receive);
      return true;
    }
  }
  if (record_ != nullptr) [[unlikely]]
    record_->of(message.rank, receive).arrived_ps = now;
  message.operation = receive;
  message.kind = EventKind::deliver;
  return deliver(now, event);
}

void Engine::answer(uint64_t now, uint32_t event, uint32_t receive) {
  Event& message = queue_[event];
  std::swap(message.source, message.rank);
  message.shape = receive;
  message.message_kind = MessageKind::answer;
  message.is_leader = false;
  push(now, event, EventKind::leave);
}

}  // namespace spinloom::goal
