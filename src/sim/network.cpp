#include "sim/network.hpp"

#include <numeric>

#include "base/log.hpp"

namespace spinloom::sim {

std::vector<uint32_t> departure_order(uint32_t count, const Ordering& ordering, Random& random) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (ordering.window <= 1) return order;
  const uint32_t first = ordering.reorder_all || count < 3 ? 0 : 1;
  const uint32_t end = ordering.reorder_all || count < 3 ? count : count - 1;
  if (!ordering.reorder_all && count < 3) return order;
  // Draw the next packet from a window that slides over the message.
  std::vector<uint32_t> window;
  uint32_t next = first;
  for (uint32_t place = first; place < end; ++place) {
    while (next < end && window.size() < ordering.window) window.push_back(next++);
    const size_t pick = random.below(window.size());
    order[place] = window[pick];
    window.erase(window.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return order;
}

Network::Network(EventQueue& events, const Profile& profile, const Ordering& ordering)
    : events_(events), link_(profile.link), ordering_(ordering), random_(ordering.seed, "network.order") {}

void Network::attach(nic::Rank rank, Receiver& receiver) {
  if (receivers_.size() <= rank.value) {
    receivers_.resize(rank.value + 1, nullptr);
    injectors_.resize(rank.value + 1);
  }
  SPL_ASSERT(receivers_[rank.value] == nullptr, "rank ", rank, " is attached twice");
  receivers_[rank.value] = &receiver;
}

void Network::inject(nic::Rank source, std::vector<nic::Packet> packets, Time ready, std::function<void()> sent) {
  SPL_ASSERT(!packets.empty(), "a message has at least one packet");
  const auto order = departure_order(static_cast<uint32_t>(packets.size()), ordering_, random_);
  for (size_t place = 0; place < order.size(); ++place) {
    const nic::Packet& packet = packets[order[place]];
    const Time duration = link_.byte_time.time_of(Bytes{static_cast<int64_t>(packet.payload.length)});
    const Service service = injectors_[source.value].serve(ready, duration);
    uint64_t slot = departures_.size();
    if (free_departures_.empty()) {
      departures_.emplace_back();
    } else {
      slot = free_departures_.back();
      free_departures_.pop_back();
    }
    const bool last = place + 1 == order.size();
    departures_[slot] = {packet, last ? std::move(sent) : nullptr};
    events_.at(service.start, *this, departs, slot);
    if (last) events_.at(service.end, *this, sent_all, slot);
  }
}

void Network::on_event(uint32_t code, uint64_t argument) {
  switch (code) {
    case departs: {
      Departure& departure = departures_[argument];
      auto arrival = std::make_unique<Arrival>();
      arrival->packet = departure.packet;
      nic::PayloadRef& payload = arrival->packet.payload;
      if (payload.length > 0) {
        arrival->bytes.assign(payload.bytes, payload.bytes + payload.length);
        payload.bytes = arrival->bytes.data();
      }
      const Time first_byte = events_.now() + link_.switch_latency + link_.wire;
      arrival->last_byte = first_byte + link_.byte_time.time_of(Bytes{static_cast<int64_t>(payload.length)});
      uint64_t slot = arrivals_.size();
      if (free_arrivals_.empty()) {
        arrivals_.emplace_back();
      } else {
        slot = free_arrivals_.back();
        free_arrivals_.pop_back();
      }
      arrivals_[slot] = std::move(arrival);
      events_.at(first_byte, *this, arrives, slot);
      if (!departures_[argument].sent) free_departures_.push_back(argument);
      break;
    }
    case sent_all: {
      const auto sent = std::move(departures_[argument].sent);
      departures_[argument].sent = nullptr;
      free_departures_.push_back(argument);
      sent();
      break;
    }
    case arrives: {
      std::unique_ptr<Arrival> arrival = std::move(arrivals_[argument]);
      free_arrivals_.push_back(argument);
      Receiver* receiver = arrival->packet.target.value < receivers_.size()
                               ? receivers_[arrival->packet.target.value]
                               : nullptr;
      if (receiver == nullptr) {
        log::emit(log::Level::error, "sim.network",
                  text("packet of rank ", arrival->packet.source.value, " to rank ", arrival->packet.target.value,
                       " dropped: no such rank"));
        break;
      }
      receiver->on_arrival(std::move(arrival));
      break;
    }
    default: SPL_ASSERT(false, "event code ", code);
  }
}

}  // namespace spinloom::sim
