// Engine: packets between two NICs.
#include <algorithm>

#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {
namespace {

uint64_t pair_of(const Event& message) { return uint64_t{message.source} << 32 | message.rank; }

}  // namespace

// True for messages that the receiver matches, where packets may overtake: such messages must stay in order.
bool Engine::is_ordered(const Event& message) const {
  return model_.network->routing != network::Routing::fixed &&
         (message.message_kind == MessageKind::eager || message.message_kind == MessageKind::request);
}

// Returns at least 1, because a message without bytes must still arrive.
uint64_t Engine::bytes_of(const Event& message) const {
  return is_control(message.message_kind) ? 1 : std::max<uint64_t>(costs_of(message).size, 1);
}

uint64_t Engine::packet_bytes_of(uint64_t bytes) const {
  const uint64_t usual = model_.network->packet_bytes;
  return usual == 0 ? bytes : std::max(usual, bytes / network::packets_max + 1);
}

void Engine::send_packets(uint64_t now, uint32_t message) {
  const uint64_t bytes = bytes_of(queue_[message]);
  const uint64_t each = packet_bytes_of(bytes);
  uint64_t place = 0;
  if (is_ordered(queue_[message])) place = pairs_[pair_of(queue_[message])].sent++;
  queue_[message].number = place << 32 | (bytes / each + (bytes % each != 0));
  const uint32_t packet = queue_.add();
  Event& first = queue_[packet];
  first.rank = queue_[message].rank;
  first.source = network_->switch_of(queue_[message].source);
  first.operation = message;
  first.shape = 0;
  first.is_leader = false;
  push(now + model_.L_ps, packet, EventKind::enter);
}

// The next packet comes when this one has left: the times of packets of a message add up to that of its bytes.
void Engine::enter(uint64_t now, uint32_t packet) {
  const Event entered = queue_[packet];
  const uint64_t bytes = bytes_of(queue_[entered.operation]);
  const uint64_t each = packet_bytes_of(bytes);
  const uint64_t before = entered.shape * each;
  if (bytes - before > each) {
    const uint64_t after_ps = time_ps(model_.G, before + each) - time_ps(model_.G, before);
    const uint32_t next = queue_.add();
    queue_[next] = entered;
    ++queue_[next].shape;
    push(now + after_ps, next, EventKind::enter);
  }
  Event& first = queue_[packet];
  if (first.source != network_->switch_of(first.rank)) {
    first.rank = network_->heading(now, first.source, first.rank, costs_of(queue_[first.operation]).nic);
  }
  travel(now, packet);
}

// The rank of a packet's event is its next goal: on a detour, the address of a switch.
void Engine::travel(uint64_t now, uint32_t packet) {
  Event& moved = queue_[packet];
  if (network_->turns(moved.source, moved.rank)) moved.rank = queue_[moved.operation].rank;
  if (moved.rank < network_->ranks() && moved.source == network_->switch_of(moved.rank)) {
    take_packet(now, packet);
    return;
  }
  const Event& message = queue_[moved.operation];
  const uint64_t bytes = bytes_of(message);
  const uint64_t each = packet_bytes_of(bytes);
  const network::Network::Move move =
      network_->move(now, moved.source, moved.rank, std::min(bytes - moved.shape * each, each), costs_of(message).nic);
  moved.source = move.to;
  push(move.at_ps, packet, EventKind::travel);
}

// The last packet ends with its last byte, and then comes the gap.
void Engine::take_packet(uint64_t now, uint32_t packet) {
  const Event taken = queue_[packet];
  queue_.release(packet);
  Event& message = queue_[taken.operation];
  Nic& nic = nic_of(message.rank, costs_of(message));
  const uint64_t begin_ps = std::max(now, nic.receiving_until_ps);
  const uint64_t bytes = bytes_of(message);
  const uint64_t each = packet_bytes_of(bytes);
  const uint64_t before = taken.shape * each;
  const bool is_last = bytes - before <= each;
  const uint64_t end_ps = begin_ps + (is_last ? time_ps(model_.G, bytes - 1) - time_ps(model_.G, before)
                                              : static_cast<uint64_t>(model_.G.ps_down(each)));
  nic.receiving_until_ps = clamped(end_ps + (is_last ? model_.g_ps : 0));
  if (static_cast<uint32_t>(--message.number) != 0) return;
  if (is_ordered(message)) {
    complete_in_order(end_ps, taken.operation, static_cast<uint32_t>(message.number >> 32));
  } else {
    push(end_ps, taken.operation, EventKind::complete);
  }
}

// Messages from one rank to another match in the order in which they left.
void Engine::complete_in_order(uint64_t at_ps, uint32_t message, uint32_t place) {
  const auto found = pairs_.find(pair_of(queue_[message]));
  Pair& pair = found->second;
  pair.early.emplace(place, std::pair(at_ps, message));
  uint64_t last_ps = 0;
  for (auto next = pair.early.begin(); next != pair.early.end() && next->first == pair.completed;) {
    last_ps = std::max(last_ps, next->second.first);
    push(last_ps, next->second.second, EventKind::complete);
    next = pair.early.erase(next);
    ++pair.completed;
  }
  if (pair.completed == pair.sent) pairs_.erase(found);
}

}  // namespace spinloom::goal
