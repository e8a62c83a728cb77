#include "simulated/node/bridge.hpp"

#include <algorithm>

namespace spinloom::simulated {

Bridge::Bridge(EventQueue& events, const Profile& profile, const BridgeConfig& config, Deliver deliver)
    : events_(events), link_(profile.link), config_(config), deliver_(std::move(deliver)), gateways_(config.gateways) {
  const uint32_t fabrics = *std::max_element(config_.fabric.begin(), config_.fabric.end()) + 1;
  for (Gateway& gateway : gateways_) {
    gateway.in.resize(fabrics);
    gateway.out.resize(fabrics);
  }
}

Status Bridge::check(const BridgeConfig& config, uint32_t ranks) {
  if (config.fabric.size() != ranks || ranks == 0) {
    return fail(spinloom::Code::invalid, "a bridge says the fabrics of ", config.fabric.size(), " ranks, there are ",
                ranks);
  }
  if (config.gateways == 0) return fail(spinloom::Code::invalid, "a bridge has at least one gateway");
  if (config.forward < Time{} || config.hold_max < Time{}) {
    return fail(spinloom::Code::invalid, "a gateway's times are not below 0");
  }
  return {};
}

Time Bridge::duration_of(const nic::Packet& packet) const {
  return link_.byte_time.time_of(Bytes{static_cast<int64_t>(packet.payload.length)});
}

// Both directions of a pair of ranks take the same gateway.
Bridge::Gateway& Bridge::gateway_of(const nic::Packet& packet) {
  const uint32_t low = std::min(packet.source.value, packet.target.value);
  const uint32_t high = std::max(packet.source.value, packet.target.value);
  return gateways_[(uint64_t{low} + high) % gateways_.size()];
}

void Bridge::take(Time head, std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  const Time duration = duration_of(packet);
  Resource& link = gateway_of(packet).in[fabric_of(packet.source)];
  const Time start = link.serve(head, std::max(duration, link_.gap)).start;
  const uint32_t slot = arrivals_.take();
  arrivals_[slot] = std::move(arrival);
  events_.at(config_.stores ? start + duration : start, *this, comes, slot);
}

void Bridge::on_event(uint32_t code, uint64_t argument) {
  const auto slot = static_cast<uint32_t>(argument);
  if (code == is_due) {
    const Pair pair = deadlines_[slot];
    deadlines_.give_back(slot);
    release(pair);
    return;
  }
  std::unique_ptr<Arrival> arrival = std::move(arrivals_[slot]);
  arrivals_.give_back(slot);
  if (code == leaves) {
    deliver_(std::move(arrival));
  } else if (config_.stores) {
    store(std::move(arrival));
  } else {
    forward(std::move(arrival));
  }
}

// Keeps a packet until its message is whole or overdue. A message without bytes is one packet.
void Bridge::store(std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  const Pair pair{packet.source.value, packet.target.value};
  const MessageKey key{pair.first, pair.second, packet.message, packet.is_answer()};
  const uint64_t bytes = packet.payload.length;
  if (const auto passing = passing_.find(key); passing != passing_.end()) {
    if (packet.is_last() || packet.missing > 0) passing_.erase(passing);
    return forward(std::move(arrival));
  }
  std::deque<Message>& queue = stored_messages_[pair];
  auto found = std::find_if(queue.begin(), queue.end(),
                            [&](const Message& message) { return message.key == key && !message.is_whole; });
  if (found == queue.end()) {
    queue.push_back({key, 0, false, events_.now() + config_.hold_max, {}});
    found = std::prev(queue.end());
    const uint32_t slot = deadlines_.take();
    deadlines_[slot] = pair;
    events_.at(found->deadline, *this, is_due, slot);
  }
  found->come_bytes += bytes + packet.missing;
  found->is_whole = found->come_bytes >= packet.message_length;
  found->packets.push_back(std::move(arrival));
  held_bytes_ += bytes;
  statistics_.held_bytes_peak = std::max(statistics_.held_bytes_peak, held_bytes_);
  release(pair);
}

// Passes on the oldest messages of a pair, up to the first that is neither whole nor overdue.
void Bridge::release(const Pair& pair) {
  std::deque<Message>& queue = stored_messages_[pair];
  while (!queue.empty() && (queue.front().is_whole || events_.now() >= queue.front().deadline)) {
    Message message = std::move(queue.front());
    queue.pop_front();
    if (!message.is_whole) passing_.insert(message.key);
    for (std::unique_ptr<Arrival>& arrival : message.packets) {
      held_bytes_ -= arrival->packet.payload.length;
      forward(std::move(arrival));
    }
  }
}

void Bridge::forward(std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  Gateway& gateway = gateway_of(packet);
  const Time ready = gateway.processor.serve(events_.now(), config_.forward).end;
  const Time duration = std::max(duration_of(packet), link_.gap);
  const Time start = gateway.out[fabric_of(packet.target)].serve(ready, duration).start;
  ++statistics_.packets;
  statistics_.bytes += packet.payload.length;
  const uint32_t slot = arrivals_.take();
  arrivals_[slot] = std::move(arrival);
  events_.at(start, *this, leaves, slot);
}

BridgeStatistics Bridge::statistics() const {
  BridgeStatistics total = statistics_;
  for (const Gateway& gateway : gateways_) total.busy += gateway.processor.busy();
  return total;
}

}  // namespace spinloom::simulated
