// Packets that arrive wait for the parser and matching unit, which takes them in the order of
// portals::Order::headers_pass (portals/interface/admission.hpp).
#include <algorithm>
#include <utility>

#include "portals/interface/admission.hpp"
#include "simulated/node/node.hpp"
#include "simulated/node/node_codes.hpp"

namespace spinloom::simulated {

void Node::on_arrival(std::unique_ptr<Arrival> arrival) {
  const nic::Operation operation = arrival->packet.operation;
  if (operation != nic::Operation::ack && operation != nic::Operation::get) {
    ++statistics_.packets;
    if (statistics_.first_byte == Time::never()) statistics_.first_byte = events_.now();
  }
  if (trace_ != nullptr) {
    trace_->span({Track::wire, 0, arrival->packet.offset, events_.now(), arrival->last_byte});
  }
  inbound_answers_ += arrival->packet.is_answer() ? 1 : 0;
  inbound_.push_back(std::move(arrival));
  parse_next();
}

// Starts service: the engine decides now, and its actions are performed when service ends.
void Node::parse_next() {
  if (parsing_ || inbound_.empty()) return;
  const auto packet_of = [](const auto& waiting) -> const nic::Packet& { return waiting->packet; };
  const std::optional<size_t> next =
      portals::next(portals::Order::headers_pass, nic_, inbound_, packet_of, inbound_answers_ > 0);
  if (!next) return;
  const auto chosen = inbound_.begin() + static_cast<ptrdiff_t>(*next);
  std::rotate(inbound_.begin(), chosen, chosen + 1);
  const Arrival& arrival = *inbound_.front();
  parsing_ = true;
  parsed_actions_.clear();
  nic_.on_packet(arrival.packet, parsed_actions_);
  const Time duration = parsed_actions_.work.matched_by_message ? profile_.match.packet : profile_.match.header;
  if (trace_ != nullptr) {
    trace_->span({Track::parser, 0, arrival.packet.offset, events_.now(), events_.now() + duration});
  }
  events_.at(events_.now() + duration, *this, parse_ends, 0);
}

void Node::end_parsing() {
  std::unique_ptr<Arrival> arrival = std::move(inbound_.front());
  inbound_.pop_front();
  inbound_answers_ -= arrival->packet.is_answer() ? 1 : 0;
  parsing_ = false;
  parsed_last_byte_ = arrival->last_byte;
  keep_bytes(std::move(arrival));
  nic::Actions actions;
  std::swap(actions, parsed_actions_);
  perform(actions);
  std::swap(actions, parsed_actions_);
  parsed_last_byte_ = Time{};
  parse_next();
}

// Keeps the bytes of a packet as long as they are referred to: by the engine while the packet's message is open; or, if
// the message came whole in this packet or the packet is an answer, by the DMAs that its actions start.
void Node::keep_bytes(std::unique_ptr<Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  if (!packet.is_answer() && nic_.is_open(packet.source, packet.message)) {
    if (held_.size() >= release_at_) release_arrivals();
    held_.push_back(std::move(arrival));
    return;
  }
  const std::shared_ptr<const Arrival> shared = std::move(arrival);
  for (const nic::Action& action : parsed_actions_.list) {
    std::visit(
        [this, &shared](const auto& request) {
          if constexpr (requires { request.dma, request.source; })
            packet_of_dma_.insert_or_assign(request.dma.value, shared);
        },
        action);
  }
}

void Node::release_arrivals() {
  std::erase_if(held_, [this](const std::unique_ptr<Arrival>& arrival) {
    return !nic_.is_open(arrival->packet.source, arrival->packet.message);
  });
  release_at_ = std::max(held_at_least, held_.size() * 2);  // few searches, so each packet pays little
}

}  // namespace spinloom::simulated
