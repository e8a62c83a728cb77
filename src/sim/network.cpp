#include "sim/network.hpp"

#include <algorithm>
#include <numeric>

#include "base/log.hpp"
#include "base/random.hpp"

namespace spinloom::sim {

std::vector<uint32_t> departure_order(uint32_t count, const Ordering& ordering, nic::Rank source, uint64_t message) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  const uint32_t fixed = ordering.reorder_all ? 0 : 1;  // at each end
  if (ordering.window <= 1 || count < 2 * fixed + 2) return order;
  const uint32_t first = fixed;
  const uint32_t end = count - fixed;
  Random random(ordering.seed, text("network.order of message ", message, " of rank ", source.value));
  // Draws the next packet from a window that slides over the message.
  std::vector<uint32_t> window;
  uint32_t next = first;
  for (uint32_t place = first; place < end; ++place) {
    while (next < end && window.size() < ordering.window) window.push_back(next++);
    const size_t pick = random.below(window.size());
    order[place] = window[pick];
    window[pick] = window.back();
    window.pop_back();
  }
  return order;
}

Network::Network(EventQueue& events, const Profile& profile, const Ordering& ordering, Switches switches)
    : events_(events), link_(profile.link), ordering_(ordering), switches_(std::move(switches)) {}

Result<Network::Switches> Network::switches_of(const Profile& profile, const std::optional<network::Config>& config,
                                               uint32_t ranks) {
  if (!config.has_value()) return Switches{};
  if (config->routing == network::Routing::adaptive) {
    return fail(
        spinloom::Code::unsupported,
        "packets of the simulated NIC take fixed paths only, because headers match in the order in which they were "
        "sent; choose fixed routing");
  }
  SPL_ASSIGN(auto made, network::Network::make(*config, profile.link.byte_time, ranks));
  return Switches{std::move(made)};
}

void Network::attach(nic::Rank rank, Receiver& receiver) {
  if (receivers_.size() <= rank.value) {
    receivers_.resize(rank.value + 1, nullptr);
    injectors_.resize(rank.value + 1);
    ejectors_.resize(rank.value + 1);
  }
  SPL_ASSERT(receivers_[rank.value] == nullptr, "rank ", rank, " is attached twice");
  receivers_[rank.value] = &receiver;
}

Time Network::duration_of(const nic::Packet& packet) const {
  return link_.byte_time.time_of(Bytes{static_cast<int64_t>(packet.payload.length)});
}

void Network::inject(nic::Rank source, std::vector<nic::Packet> packets, Time ready, std::function<void()> sent) {
  SPL_ASSERT(!packets.empty(), "a message has at least one packet");
  const auto order = departure_order(static_cast<uint32_t>(packets.size()), ordering_, source, packets.front().message);
  inject_on(injectors_[source.value], std::move(packets), order, ready, std::move(sent));
}

void Network::enter(std::vector<nic::Packet> packets, Time ready, std::function<void()> sent) {
  std::vector<uint32_t> order(packets.size());
  std::iota(order.begin(), order.end(), 0u);
  Resource link;
  inject_on(link, std::move(packets), order, ready, std::move(sent));
}

void Network::inject_on(Resource& link, std::vector<nic::Packet> packets, const std::vector<uint32_t>& order,
                        Time ready, std::function<void()> sent) {
  Service service{};
  uint32_t slot = 0;
  for (const uint32_t index : order) {
    const nic::Packet& packet = packets[index];
    service = link.serve(ready, std::max(duration_of(packet), link_.gap));
    service.end = service.start + duration_of(packet);
    slot = departures_.take();
    departures_[slot].packet = packet;
    events_.at(service.start, *this, departs, slot);
  }
  departures_[slot].sent = std::move(sent);
  events_.at(service.end, *this, sent_all, slot);
}

void Network::depart(uint32_t slot) {
  const Departure& departure = departures_[slot];
  auto arrival = std::make_unique<Arrival>();
  arrival->packet = departure.packet;
  nic::PayloadRef& payload = arrival->packet.payload;
  if (payload.length > 0) {
    arrival->bytes.assign(payload.bytes, payload.bytes + payload.length);
    payload.bytes = arrival->bytes.data();
  }
  if (!departure.sent) departures_.give_back(slot);
  const Time head = events_.now() + link_.switch_latency + link_.wire;
  if (!switches_.has_value()) {
    eject(head, std::move(arrival));
    return;
  }
  const uint32_t crossing = crossings_.take();
  const uint32_t first = switches_->switch_of(arrival->packet.source.value);
  crossings_[crossing] = {std::move(arrival), first};
  events_.at(head, *this, crosses, crossing);
}

void Network::cross(uint32_t slot) {
  Crossing& crossing = crossings_[slot];
  const nic::Packet& packet = crossing.arrival->packet;
  if (packet.target.value >= receivers_.size() || crossing.at == switches_->switch_of(packet.target.value)) {
    std::unique_ptr<Arrival> arrival = std::move(crossing.arrival);
    crossings_.give_back(slot);
    eject(events_.now(), std::move(arrival));
    return;
  }
  const auto now_ps = static_cast<uint64_t>(events_.now().ps);
  const auto [at_ps, to] = switches_->move(now_ps, crossing.at, packet.target.value, packet.payload.length);
  crossing.at = to;
  events_.at(Time{static_cast<int64_t>(at_ps)}, *this, crosses, slot);
}

void Network::eject(Time head, std::unique_ptr<Arrival> arrival) {
  const uint32_t target = arrival->packet.target.value;
  const Time duration = duration_of(arrival->packet);
  if (is_attached(target)) head = ejectors_[target].serve(head, std::max(duration, link_.gap)).start;
  arrival->last_byte = head + duration;
  const uint32_t arriving = arrivals_.take();
  arrivals_[arriving] = std::move(arrival);
  events_.at(head, *this, arrives, arriving);
}

void Network::arrive(std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  Receiver* const receiver = is_attached(packet.target.value) ? receivers_[packet.target.value] : others_;
  if (receiver == nullptr) {
    log::emit(log::Level::error, "sim.network",
              text("packet of rank ", packet.source.value, " to rank ", packet.target.value, " dropped: no such rank"));
    return;
  }
  receiver->on_arrival(std::move(arrival));
}

void Network::on_event(uint32_t code, uint64_t argument) {
  const auto slot = static_cast<uint32_t>(argument);
  switch (code) {
    case departs: depart(slot); break;
    case sent_all: {
      const auto sent = std::move(departures_[slot].sent);
      departures_.give_back(slot);
      sent();
      break;
    }
    case crosses: cross(slot); break;
    case arrives: {
      std::unique_ptr<Arrival> arrival = std::move(arrivals_[slot]);
      arrivals_.give_back(slot);
      arrive(std::move(arrival));
      break;
    }
    default: SPL_ASSERT(false, "event code ", code);
  }
}

}  // namespace spinloom::sim
