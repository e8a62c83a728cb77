#include <algorithm>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

using schedule::Awaits;
using schedule::Kind;

bool RankEmitter::is_late(uint32_t leg) const {
  return costs_.late_receives.has_value() && late_ != nullptr && (*late_)[leg];
}

bool RankEmitter::is_synchronous(uint32_t leg) const {
  return !script_.synchronous.empty() && script_.synchronous[leg];
}

void RankEmitter::receive(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& starts, Cursor& ends) {
  bill_.received_bytes += leg.part.bytes;
  const bool is_late = this->is_late(number);
  const MessageCost cost = costs_.message_cost(leg.part.bytes);
  const EndCost end_cost = is_late && !asks_first(leg) ? late_receive_cost(leg) : end_cost_of(leg);
  uint32_t received = asks_first(leg) ? add_message(Kind::receive, request_bytes, leg, Stage::request, entry)
                                      : add_message(Kind::receive, leg.part.bytes, leg, Stage::eager, entry);
  starts.push_back({received, Awaits::start});
  receives_[number] = received;
  if (asks_first(leg) && costs_.handshake != Handshake::fetch) {
    const uint32_t read = charge_cpu(answer_ps(is_late), received);
    const uint32_t answered = add_message(Kind::send, request_bytes, leg, Stage::answer, {{read, Awaits::end}});
    received = add_message(Kind::receive, leg.part.bytes, leg, Stage::data, {{answered, Awaits::start}});
  } else if (!asks_first(leg) && is_synchronous(number)) {  // says that it has matched
    const uint32_t confirmed = charge_cpu(control_cost().send_cpu_ps, received);
    add_message(Kind::send, request_bytes, leg, Stage::answer, {{confirmed, Awaits::end}});
  }
  const uint32_t last_operation =
      add_delay(cost.extra_latency_ps, pass_nic(end_cost, {{received, Awaits::end}}).front().operation);
  bill_.layouts_ps += end_cost.cpu_ps;
  bill_.messages_ps += cost.receive_cpu_ps;
  const uint64_t cpu_ps = cost.receive_cpu_ps + end_cost.cpu_ps;
  const uint32_t done =
      cpu_ps == 0 ? last_operation : add_computation(cpu_ps, host_cpu, {{last_operation, Awaits::end}});
  if (asks_first(leg) && costs_.handshake == Handshake::fetch) {
    add_message(Kind::send, request_bytes, leg, Stage::answer, {{done, Awaits::end}});
  }
  ends.push_back({done, Awaits::end});
}

MessageCost RankEmitter::control_cost() const {
  return costs_.handshake == Handshake::nic ? MessageCost() : costs_.message_cost(request_bytes);
}

uint64_t RankEmitter::answer_ps(bool is_late) const {
  if (costs_.handshake == Handshake::nic) return is_late ? costs_.late_receives->answer_ps : 0;
  return control_cost().receive_cpu_ps + control_cost().send_cpu_ps;
}

EndCost RankEmitter::late_receive_cost(const Leg& leg) const {
  const uint64_t copied = time_of(costs_.copy_rate, leg.part.bytes);
  return {.cpu_ps = costs_.late_receives->find_ps + std::max(copied, host_ps(leg.part, Side::receive))};
}

void RankEmitter::send(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& ends, bool by_host) {
  ++bill_.sent_messages;
  bill_.sent_bytes += leg.part.bytes;
  const uint64_t call_ps = by_host ? costs_.message_cost(leg.part.bytes).send_cpu_ps : 0;
  const EndCost end_cost = end_cost_of(leg);
  bill_.layouts_ps += end_cost.cpu_ps;
  bill_.messages_ps += call_ps;
  Cursor ready = entry;
  const bool is_answered = asks_first(leg) && costs_.handshake != Handshake::fetch;
  // NICs need no CPU when the answer comes: it has packed before.
  const bool packs_first = costs_.handshake == Handshake::nic;
  if (packs_first) ready = add_work(call_ps + end_cost.cpu_ps, ready);
  if (is_answered) {
    ready = {
        {request_answer(leg, add_work(control_cost().send_cpu_ps, ready), control_cost().receive_cpu_ps), Awaits::end}};
    bill_.messages_ps += control_cost().send_cpu_ps;
  }
  if (!packs_first) ready = add_work(call_ps + end_cost.cpu_ps, ready);
  ready = pass_nic(end_cost, ready);
  if (asks_first(leg) && !is_answered) {
    ends.push_back({request_answer(leg, ready, 0), Awaits::end});
    return;
  }
  const uint32_t sent = add_message(Kind::send, leg.part.bytes, leg, is_answered ? Stage::data : Stage::eager, ready);
  if (!is_answered) last_send_ = sent;
  ends.push_back({sent, Awaits::end});
  if (asks_first(leg) || !is_synchronous(number)) return;
  const uint32_t confirmation = add_message(Kind::receive, request_bytes, leg, Stage::answer, {{sent, Awaits::start}});
  ends.push_back({charge_cpu(control_cost().receive_cpu_ps, confirmation), Awaits::end});
}

uint32_t RankEmitter::request_answer(const Leg& leg, const Cursor& ready, uint64_t read_ps) {
  last_send_ = add_message(Kind::send, request_bytes, leg, Stage::request, ready);
  return charge_cpu(read_ps,
                    add_message(Kind::receive, request_bytes, leg, Stage::answer, {{last_send_, Awaits::start}}));
}

EndCost RankEmitter::end_cost_of(const Leg& leg) const {
  if (const PairCost* const pair = pair_cost_of(leg)) {
    return {.cpu_ps = leg.side == Side::send ? pair->send_ps : pair->receive_ps};
  }
  if (leg.part.type == trace::none || leg.part.bytes == 0) return {};
  const auto entry = costs_.layout_costs.find({leg.part.type, leg.part.count, leg.side});
  if (entry != costs_.layout_costs.end()) return entry->second;
  return {.cpu_ps = time_of(costs_.unknown_layout_rate, leg.part.bytes)};
}

const PairCost* RankEmitter::pair_cost_of(const Leg& leg) const {
  if (costs_.pair_costs.empty()) return nullptr;
  const auto entry = costs_.pair_costs.find(pair_key(leg));
  return entry == costs_.pair_costs.end() ? nullptr : &entry->second;
}

uint64_t RankEmitter::copy_ps(const Copy& copy) const {
  const auto pair = costs_.pair_costs.find({copy.to.bytes, layout_of(copy.from), layout_of(copy.to)});
  if (pair != costs_.pair_costs.end() && pair->second.own_block_ps.has_value()) return *pair->second.own_block_ps;
  const uint64_t from = host_ps(copy.from, Side::send);
  const uint64_t to = host_ps(copy.to, Side::receive);
  return from + to != 0 ? from + to : time_of(costs_.copy_rate, copy.to.bytes);
}

uint64_t RankEmitter::host_ps(const Part& part, Side side) const {
  if (part.type == trace::none) return 0;
  const auto entry = costs_.host_layout_ps.find({part.type, part.count, side});
  return entry != costs_.host_layout_ps.end() ? entry->second : time_of(costs_.unknown_layout_rate, part.bytes);
}

}  // namespace spinloom::predict
