// Inbound: arrivals wait for the parser and matching unit, which takes them in order.
#include <algorithm>
#include <utility>

#include "sim/node.hpp"
#include "sim/node_codes.hpp"

namespace spinloom::sim {

void Node::on_arrival(std::unique_ptr<Arrival> arrival) {
  const nic::Operation operation = arrival->packet.operation;
  if (operation != nic::Operation::ack && operation != nic::Operation::get) {
    ++statistics_.packets;
    if (statistics_.first_byte == Time::never()) statistics_.first_byte = events_.now();
  }
  if (trace_ != nullptr) {
    trace_->span({Track::wire, 0, arrival->packet.offset, events_.now(), arrival->last_byte});
  }
  inbound_.push_back(std::move(arrival));
  parse_next();
}

// Service starts: the engine decides now, what it decided appears when service ends.
void Node::parse_next() {
  if (parsing_ || inbound_.empty()) return;
  if (!nic_.can_accept(inbound_.front()->packet)) {
    // Packets ahead of their header may fill the buffer: the header behind them is what makes room again. Answers pass,
    // because handlers wait for them.
    const bool early = nic_.state().early_packets > 0;
    const auto passes = std::find_if(inbound_.begin(), inbound_.end(), [this, early](const auto& waiting) {
      const nic::Packet& packet = waiting->packet;
      return packet.is_answer() || (early && packet.is_header() && nic_.can_accept(packet));
    });
    if (passes == inbound_.end()) return;
    std::rotate(inbound_.begin(), passes, passes + 1);
  }
  const Arrival& arrival = *inbound_.front();
  parsing_ = true;
  parsed_actions_.clear();
  nic_.on_packet(events_.now(), arrival.packet, parsed_actions_);
  const Time duration = parsed_actions_.work.matched_by_message ? profile_.match.packet : profile_.match.header;
  if (trace_ != nullptr) {
    trace_->span({Track::parser, 0, arrival.packet.offset, events_.now(), events_.now() + duration});
  }
  events_.at(events_.now() + duration, *this, parse_ends, 0);
}

void Node::parsed() {
  std::unique_ptr<Arrival> arrival = std::move(inbound_.front());
  inbound_.pop_front();
  parsing_ = false;
  parsed_last_byte_ = arrival->last_byte;
  held_.push_back(std::move(arrival));
  nic::Actions actions;
  std::swap(actions, parsed_actions_);
  perform(actions);
  std::swap(actions, parsed_actions_);
  parsed_last_byte_ = Time{};
  parse_next();
}

// When no message is open and no DMA under way, nothing refers to the packets' bytes any more.
void Node::release_arrivals() {
  if (held_.empty() || dmas_.size() > 0) return;
  const nic::NicState state = nic_.state();
  if (state.messages_open == 0 && state.early_packets == 0 && state.dmas_open == 0) held_.clear();
}

}  // namespace spinloom::sim
