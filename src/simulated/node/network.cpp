#include "simulated/node/network.hpp"

#include <algorithm>
#include <numeric>

#include "base/log.hpp"
#include "base/random.hpp"
#include "simulated/node/bridge.hpp"

namespace spinloom::simulated {

std::vector<uint32_t> departure_order(uint32_t count, const Ordering& ordering, nic::Rank source, uint64_t message) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  const uint32_t fixed = ordering.reorder_all ? 0 : 1;  // the number of packets at each end that keep their place
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

Network::Network(EventQueue& events, const Profile& profile, const Ordering& ordering, Switches switches,
                 const std::optional<BridgeConfig>& bridge)
    : events_(events), link_(profile.link), ordering_(ordering), switches_(std::move(switches)) {
  if (switches_.has_value()) carried_bytes_.resize(switches_->links());
  if (!bridge.has_value()) return;
  SPL_ASSERT(!switches_.has_value(), "a bridge joins fabrics of one switch each");
  bridge_ = std::make_unique<Bridge>(events, profile, *bridge, [this](std::unique_ptr<Arrival> arrival) {
    eject(events_.now() + link_.switch_latency + link_.wire, std::move(arrival));
  });
}

Network::~Network() = default;

Result<Network::Switches> Network::switches_of(const Profile& profile, const std::optional<network::Config>& config,
                                               uint32_t ranks) {
  if (!config.has_value()) return Switches{};
  if (config->routing != network::Routing::fixed) {
    return fail(
        spinloom::Code::unsupported,
        "packets of the simulated NIC take fixed paths only, because headers match in the order in which they were "
        "sent; choose fixed routing");
  }
  SPL_ASSIGN(auto switches, network::Network::make(*config, profile.link.byte_time, ranks));
  return Switches{std::move(switches)};
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

Status Network::install(uint32_t at_switch, const FlowRule& rule) {
  const bool exists = switches_.has_value() && at_switch < switches_->switches();
  const uint32_t rank = exists ? rank_of_switch(at_switch).value : 0;
  if (!exists || rank >= receivers_.size() || receivers_[rank] == nullptr) {
    return fail(spinloom::Code::invalid, "switch ", at_switch,
                " has no processors, so it takes no packets; equip it first");
  }
  if (ordering_.reorder_all) {
    return fail(spinloom::Code::unsupported,
                "a switch knows packets by the header of their message, which must come first; choose an order that "
                "keeps headers first (a window N instead of all:N)");
  }
  flows_.resize(std::max<size_t>(flows_.size(), at_switch + 1));
  flows_[at_switch].add(rule);
  return {};
}

Time Network::duration_of(const nic::Packet& packet) const {
  return link_.byte_time.time_of(Bytes{static_cast<int64_t>(packet.payload.length)});
}

void Network::inject(nic::Rank source, std::vector<nic::Packet> packets, Time ready, std::function<void()> sent) {
  SPL_ASSERT(!packets.empty(), "a message has at least one packet");
  if (is_switch(source)) {
    uint32_t slot = 0;
    for (const nic::Packet& packet : packets) {
      slot = departures_.take();
      departures_[slot].packet = packet;
      events_.at(ready, *this, leaves, slot);
    }
    departures_[slot].sent = std::move(sent);
    return;
  }
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

// Reads the payload.
std::unique_ptr<Arrival> Network::arrival_of(const nic::Packet& packet) const {
  auto arrival = std::make_unique<Arrival>();
  arrival->packet = packet;
  nic::PayloadRef& payload = arrival->packet.payload;
  if (payload.length > 0) {
    arrival->bytes.assign(payload.bytes, payload.bytes + payload.length);
    payload.bytes = arrival->bytes.data();
  }
  return arrival;
}

void Network::depart(uint32_t slot) {
  const Departure& departure = departures_[slot];
  std::unique_ptr<Arrival> arrival = arrival_of(departure.packet);
  if (!departure.sent) departures_.give_back(slot);
  const Time head = events_.now() + link_.switch_latency + link_.wire;
  if (bridge_ && bridge_->separates(arrival->packet.source, arrival->packet.target)) {
    bridge_->take(head, std::move(arrival));
    return;
  }
  if (!switches_.has_value()) {
    eject(head, std::move(arrival));
    return;
  }
  const uint32_t crossing = crossings_.take();
  const uint32_t first = switches_->switch_of(arrival->packet.source.value);
  crossings_[crossing] = {std::move(arrival), first};
  events_.at(head, *this, crosses, crossing);
}

void Network::leave(uint32_t slot) {
  const Departure& departure = departures_[slot];
  const uint32_t crossing = crossings_.take();
  crossings_[crossing] = {arrival_of(departure.packet), departure.packet.source.value - switches_->ranks()};
  const Time end = forward(crossing) + duration_of(departure.packet);
  if (departure.sent) {
    events_.at(end, *this, sent_all, slot);
  } else {
    departures_.give_back(slot);
  }
}

bool Network::is_taken(const Crossing& crossing) {
  const nic::Packet& packet = crossing.arrival->packet;
  if (is_switch(packet.target) && rank_of_switch(crossing.switch_number) == packet.target) return true;
  return crossing.switch_number < flows_.size() && flows_[crossing.switch_number].try_take(packet);
}

void Network::cross(uint32_t slot) {
  Crossing& crossing = crossings_[slot];
  if (!is_taken(crossing)) {
    forward(slot);
    return;
  }
  const uint32_t rank = rank_of_switch(crossing.switch_number).value;
  std::unique_ptr<Arrival> arrival = std::move(crossing.arrival);
  crossings_.give_back(slot);
  if (rank >= receivers_.size() || receivers_[rank] == nullptr) {
    drop(std::move(arrival), "that switch has no processors");
    return;
  }
  arrival->last_byte = events_.now() + duration_of(arrival->packet);
  receivers_[rank]->on_arrival(std::move(arrival));
}

Time Network::forward(uint32_t slot) {
  Crossing& crossing = crossings_[slot];
  const nic::Packet& packet = crossing.arrival->packet;
  const uint32_t target = packet.target.value;
  const auto leaves_network = [&] {
    std::unique_ptr<Arrival> arrival = std::move(crossing.arrival);
    crossings_.give_back(slot);
    return arrival;
  };
  network::Network::Move move{};
  const auto now_ps = static_cast<uint64_t>(events_.now().ps);
  if (is_switch(packet.target)) {
    const auto link = switches_->link_between(crossing.switch_number, target - switches_->ranks());
    if (!link.has_value()) return drop(leaves_network(), "a switch is addressed by its hosts and neighbours only");
    move = switches_->cross(now_ps, *link, packet.payload.length);
  } else {
    if (target >= receivers_.size() || crossing.switch_number == switches_->switch_of(target)) {
      return eject(events_.now(), leaves_network());
    }
    move = switches_->move(now_ps, crossing.switch_number, target, packet.payload.length);
  }
  crossing.switch_number = move.to;
  carried_bytes_[move.link] += packet.payload.length;
  events_.at(Time{static_cast<int64_t>(move.at_ps)}, *this, crosses, slot);
  return Time{static_cast<int64_t>(move.begin_ps)};
}

Time Network::drop(std::unique_ptr<Arrival> arrival, const char* why) const {
  const nic::Packet& packet = arrival->packet;
  log::emit(log::Level::error, "sim.network",
            text("packet of rank ", packet.source.value, " to rank ", packet.target.value, " dropped: ", why));
  return events_.now();
}

Time Network::eject(Time head, std::unique_ptr<Arrival> arrival) {
  const uint32_t target = arrival->packet.target.value;
  const Time duration = duration_of(arrival->packet);
  if (is_attached(target)) head = ejectors_[target].serve(head, std::max(duration, link_.gap)).start;
  arrival->last_byte = head + duration;
  delivered_bytes_ += arrival->packet.payload.length;
  const uint32_t arriving = arrivals_.take();
  arrivals_[arriving] = std::move(arrival);
  events_.at(head, *this, arrives, arriving);
  return head;
}

void Network::arrive(std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  Receiver* const receiver = is_attached(packet.target.value) ? receivers_[packet.target.value] : default_receiver_;
  if (receiver == nullptr) {
    drop(std::move(arrival), "no such rank");
    return;
  }
  receiver->on_arrival(std::move(arrival));
}

void Network::on_event(uint32_t code, uint64_t argument) {
  const auto slot = static_cast<uint32_t>(argument);
  switch (code) {
    case departs: depart(slot); break;
    case leaves: leave(slot); break;
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

}  // namespace spinloom::simulated
