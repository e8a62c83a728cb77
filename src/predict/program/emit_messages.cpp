#include <algorithm>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

using schedule::Awaits;
using schedule::Kind;

bool RankEmitter::is_late(uint32_t leg) const { return costs_.late.has_value() && late_ != nullptr && (*late_)[leg]; }

bool RankEmitter::is_synchronous(uint32_t leg) const {
  return !script_.synchronous.empty() && script_.synchronous[leg];
}

void RankEmitter::receive(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& starts, Cursor& ends) {
  bill_.received_bytes += leg.part.bytes;
  const bool is_late = this->is_late(number);
  const MessageCost cost = costs_.at(leg.part.bytes);
  const Price price = is_late && !asks_first(leg) ? unexpected_price_of(leg) : price_of(leg);
  uint32_t received = asks_first(leg) ? message(Kind::receive, request_bytes, leg, Stage::request, entry)
                                      : message(Kind::receive, leg.part.bytes, leg, Stage::eager, entry);
  starts.push_back({received, Awaits::start});
  receives_[number] = received;
  if (asks_first(leg) && costs_.handshake != Handshake::fetch) {
    const uint32_t read = charged(answer_ps(is_late), received);
    const uint32_t answered = message(Kind::send, request_bytes, leg, Stage::answer, {{read, Awaits::end}});
    received = message(Kind::receive, leg.part.bytes, leg, Stage::data, {{answered, Awaits::start}});
  } else if (!asks_first(leg) && is_synchronous(number)) {  // says that it has matched
    const uint32_t said = charged(small().send_cpu_ps, received);
    message(Kind::send, request_bytes, leg, Stage::answer, {{said, Awaits::end}});
  }
  const uint32_t there = delayed(cost.way_ps, through_nic(price, {{received, Awaits::end}}).front().operation);
  bill_.layouts_ps += price.cpu_ps;
  bill_.messages_ps += cost.receive_cpu_ps;
  const uint64_t cpu_ps = cost.receive_cpu_ps + price.cpu_ps;
  const uint32_t done = cpu_ps == 0 ? there : computation(cpu_ps, host_cpu, {{there, Awaits::end}});
  if (asks_first(leg) && costs_.handshake == Handshake::fetch) {
    message(Kind::send, request_bytes, leg, Stage::answer, {{done, Awaits::end}});
  }
  ends.push_back({done, Awaits::end});
}

MessageCost RankEmitter::small() const {
  return costs_.handshake == Handshake::nic ? MessageCost() : costs_.at(request_bytes);
}

uint64_t RankEmitter::answer_ps(bool is_late) const {
  if (costs_.handshake == Handshake::nic) return is_late ? costs_.late->answer_ps : 0;
  return small().receive_cpu_ps + small().send_cpu_ps;
}

Price RankEmitter::unexpected_price_of(const Leg& leg) const {
  const uint64_t copied = time_of(costs_.copy, leg.part.bytes);
  return {.cpu_ps = costs_.late->find_ps + std::max(copied, host_ps(leg.part, Side::receive))};
}

void RankEmitter::send(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& ends, bool by_host) {
  ++bill_.sent_messages;
  bill_.sent_bytes += leg.part.bytes;
  const uint64_t call_ps = by_host ? costs_.at(leg.part.bytes).send_cpu_ps : 0;
  const Price price = price_of(leg);
  bill_.layouts_ps += price.cpu_ps;
  bill_.messages_ps += call_ps;
  Cursor ready = entry;
  const bool is_answered = asks_first(leg) && costs_.handshake != Handshake::fetch;
  // NICs need no CPU when the answer comes: it has packed before.
  const bool works_first = costs_.handshake == Handshake::nic;
  if (works_first) ready = work(call_ps + price.cpu_ps, ready);
  if (is_answered) {
    ready = {{asked(leg, work(small().send_cpu_ps, ready), small().receive_cpu_ps), Awaits::end}};
    bill_.messages_ps += small().send_cpu_ps;
  }
  if (!works_first) ready = work(call_ps + price.cpu_ps, ready);
  ready = through_nic(price, ready);
  if (asks_first(leg) && !is_answered) {
    ends.push_back({asked(leg, ready, 0), Awaits::end});
    return;
  }
  const uint32_t sent = message(Kind::send, leg.part.bytes, leg, is_answered ? Stage::data : Stage::eager, ready);
  if (!is_answered) last_send_ = sent;
  ends.push_back({sent, Awaits::end});
  if (asks_first(leg) || !is_synchronous(number)) return;
  const uint32_t heard = message(Kind::receive, request_bytes, leg, Stage::answer, {{sent, Awaits::start}});
  ends.push_back({charged(small().receive_cpu_ps, heard), Awaits::end});
}

uint32_t RankEmitter::asked(const Leg& leg, const Cursor& ready, uint64_t read_ps) {
  last_send_ = message(Kind::send, request_bytes, leg, Stage::request, ready);
  return charged(read_ps, message(Kind::receive, request_bytes, leg, Stage::answer, {{last_send_, Awaits::start}}));
}

Price RankEmitter::price_of(const Leg& leg) const {
  if (const PairPrice* const pair = pair_price_of(leg)) {
    return {.cpu_ps = leg.side == Side::send ? pair->send_ps : pair->receive_ps};
  }
  if (leg.part.type == trace::none || leg.part.bytes == 0) return {};
  const auto found = costs_.layouts.find({leg.part.type, leg.part.count, leg.side});
  if (found != costs_.layouts.end()) return found->second;
  return {.cpu_ps = time_of(costs_.unknown_layout, leg.part.bytes)};
}

const PairPrice* RankEmitter::pair_price_of(const Leg& leg) const {
  if (costs_.pairs.empty()) return nullptr;
  const auto found = costs_.pairs.find(pair_of(leg));
  return found == costs_.pairs.end() ? nullptr : &found->second;
}

uint64_t RankEmitter::copy_ps(const Copy& copy) const {
  const auto pair = costs_.pairs.find({copy.to.bytes, lie_of(copy.from), lie_of(copy.to)});
  if (pair != costs_.pairs.end() && pair->second.own_ps.has_value()) return *pair->second.own_ps;
  const uint64_t from = host_ps(copy.from, Side::send);
  const uint64_t to = host_ps(copy.to, Side::receive);
  return from + to != 0 ? from + to : time_of(costs_.copy, copy.to.bytes);
}

uint64_t RankEmitter::host_ps(const Part& part, Side side) const {
  if (part.type == trace::none) return 0;
  const auto found = costs_.host_layouts.find({part.type, part.count, side});
  return found != costs_.host_layouts.end() ? found->second : time_of(costs_.unknown_layout, part.bytes);
}

}  // namespace spinloom::predict
