#include "ethernet/slmp/sender.hpp"

#include "base/assert.hpp"

namespace spinloom::slmp {
namespace {

int64_t milliseconds(Time time) { return time.ps / 1'000'000'000; }

}  // namespace

Status check(const SenderConfig& config) {
  if (config.window < 1 || config.window > SenderConfig::window_max) {
    return fail(Code::invalid, "a window of ", config.window, " packets: it must lie from 1 to ",
                SenderConfig::window_max);
  }
  if (config.gap.ps < 0)
    return fail(Code::invalid, "the gap between packets is ", config.gap, "; it must not be negative");
  if (config.tries_max < 1) return fail(Code::invalid, "0 tries: a packet leaves at least once");
  if (config.reports && (!config.retransmit || config.tries_max <= SenderConfig::asks_max)) {
    return fail(Code::invalid, "reports of the receiver's room need more than ", SenderConfig::asks_max,
                " tries: a receiver may refuse the first packets, which ask for them");
  }
  if (config.senders < 1) return fail(Code::invalid, "0 senders share the receiver's room");
  if (config.timeout_min.ps < 1 || config.timeout_max < config.timeout_min || config.timeout_first.ps < 1) {
    return fail(Code::invalid, "timeouts from ", config.timeout_min, " to ", config.timeout_max,
                ": they must be positive, and the least must not exceed the most");
  }
  return {};
}

Sender::Sender(const SenderConfig& config, const Segments& segments, uint32_t first, uint32_t count)
    : config_(config),
      segments_(segments),
      first_(first),
      end_(first + count),
      next_(first),
      round_trip_(config.timeout_first, config.timeout_min, config.timeout_max),
      window_(config.window, config.fixed_window || !config.retransmit),
      room_(config.senders),
      receiver_reports_(config.reports && first > 0) {
  SPL_ASSERT(count > 0 && end_ <= segments.count(), "segments ", first, " to ", end_, " of ", segments.count());
}

bool Sender::contains(uint64_t offset) const {
  const uint64_t segment = offset / segments_.payload_bytes;
  return segment >= first_ && segment < end_;
}

bool Sender::may_send_next() const {
  if (next_ == end_) return false;
  const bool opening = first_ == 0 && next_ > 0 && segments_.has_syn(0) && flights_.contains(0);
  if (opening) return false;
  if (config_.retransmit && next_ + 1 == segments_.count() && !flights_.empty()) return false;
  return !segments_.has_syn(next_) || has_room();
}

bool Sender::has_room() const {
  return deadlines_.size() < window_.packets() && (!receiver_reports_ || room_.allows(transmissions_));
}

bool Sender::may_send() const {
  if (!status_) return false;
  return lost_.empty() ? may_send_next() : has_room();
}

Time Sender::deadline() const {
  if (deadlines_.empty() || !status_) return Time::never();
  if (config_.retransmit) return deadlines_.begin()->first;
  return last_progress_ + (all_sent() ? config_.drain_max : config_.silence_max);
}

Time Sender::timer() const { return may_send() ? std::min(next_departure_, deadline()) : deadline(); }

void Sender::fail_message(Time now, uint32_t segment) {
  const Flight& flight = flights_.at(segment);
  status_ = fail(Code::stalled, "message ", segments_.message_id, ": the packet at offset ", segments_.offset(segment),
                 " was sent ", flight.tries, flight.tries == 1 ? " time" : " times", " and not acknowledged within ",
                 milliseconds(now - (flight.tries == 1 ? flight.sent : began_)), " ms (", counts_.acknowledged,
                 " packets were); is a receiver of SLMP there?");
}

// Declares packets past their deadline lost. Gives up when one of these has used all its tries, or when nothing has
// been acknowledged for as long as all tries of one packet take. Without retransmission, the first deadline is the end.
void Sender::expire(Time now) {
  if (deadline() > now) return;
  if (!config_.retransmit) return fail_message(now, deadlines_.begin()->second);
  const bool silent = now - last_acknowledged_ >= round_trip_.total_wait(config_.tries_max);
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint32_t segment = deadlines_.begin()->second;
    Flight& flight = flights_.at(segment);
    if (silent || flight.tries >= config_.tries_max) return fail_message(now, segment);
    deadlines_.erase(deadlines_.begin());
    flight.lost = true;
    lost_.push_back(segment);
    room_.on_settled(flight.transmission);
    window_.on_loss(flight.transmission, transmissions_);
  }
}

Sender::Packet Sender::transmit(Time now, uint32_t segment) {
  if (began_.ps < 0) began_ = last_acknowledged_ = now;
  last_progress_ = now;
  next_departure_ = now + config_.gap;
  Packet packet{segments_.header(segment), segments_.offset(segment), segments_.length(segment)};
  ++transmissions_;
  if (!packet.header.has(syn)) {
    counts_.settled_bytes += packet.length;
    return packet;
  }
  Flight& flight = flights_[segment];
  ++flight.tries;
  flight.sent = now;
  flight.deadline = now + round_trip_.timeout(flight.tries);
  flight.transmission = transmissions_ - 1;
  flight.lost = false;
  if (config_.reports) {
    room_.on_departure(flight.transmission);
    if (receiver_reports_ || (segment == 0 && flight.tries <= SenderConfig::asks_max)) packet.header.flags |= report;
  }
  deadlines_.insert({flight.deadline, segment});
  return packet;
}

std::optional<Sender::Packet> Sender::next(Time now) {
  if (!status_) return std::nullopt;
  expire(now);
  if (!may_send() || now < next_departure_) return std::nullopt;
  if (!lost_.empty()) {
    const uint32_t segment = lost_.front();
    lost_.pop_front();
    ++counts_.retransmitted;
    return transmit(now, segment);
  }
  ++counts_.sent;
  return transmit(now, next_++);
}

void Sender::on_acknowledgement(Time now, const Header& header) {
  const auto segment = static_cast<uint32_t>(header.offset / segments_.payload_bytes);
  if ((header.flags != ack && !(config_.reports && has_report(header))) || header.message_id != segments_.message_id ||
      !contains(header.offset) || segments_.offset(segment) != header.offset || segment >= next_ ||
      !segments_.has_syn(segment)) {
    ++counts_.foreign;
    return;
  }
  receiver_reports_ = receiver_reports_ || has_report(header);
  const auto found = flights_.find(segment);
  if (found == flights_.end()) {
    ++counts_.duplicates;
    return;
  }
  const Flight& flight = found->second;
  last_acknowledged_ = now;
  room_.on_settled(flight.transmission);
  if (flight.tries == 1) {
    round_trip_.sample(now - flight.sent);
    if (has_report(header)) room_.on_report(flight.transmission, header.room);
  }
  if (flight.lost) {
    std::erase(lost_, segment);
  } else {
    deadlines_.erase({flight.deadline, segment});
  }
  flights_.erase(found);
  ++counts_.acknowledged;
  counts_.settled_bytes += segments_.length(segment);
  if (!all_sent()) last_progress_ = now;
  window_.on_acknowledgement();
}

}  // namespace spinloom::slmp
