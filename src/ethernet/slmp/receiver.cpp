#include "ethernet/slmp/receiver.hpp"

#include <algorithm>
#include <cstring>

namespace spinloom::slmp {

bool Receiver::expire_then_was_given_out(Time now, const Key& key) {
  while (!given_out_order_.empty() &&
         (given_out_order_.size() > config_.remembered_max || given_out_order_.front().first + config_.linger < now)) {
    given_out_.erase(given_out_order_.front().second);
    given_out_order_.pop_front();
  }
  return given_out_.contains(key);
}

// Returns an Error if the packet's end lies beyond 4 GiB or contradicts what has come of its message.
Status Receiver::check_ends(const Partial* partial, const Header& header, uint64_t end) const {
  if (end > message_bytes_max) {
    return fail(Code::invalid, print(header), ": its payload ends at ", end, ", beyond the 4 GiB of SLMP");
  }
  if (partial == nullptr) return {};
  if (partial->end && (end > *partial->end || (header.has(eom) && end != *partial->end))) {
    return fail(Code::invalid, print(header), ": its payload ends at ", end, ", but its message at ", *partial->end);
  }
  if (header.has(eom) && end < partial->ranges.end()) {
    return fail(Code::invalid, print(header), ": it ends its message at ", end, ", but bytes up to ",
                partial->ranges.end(), " have come");
  }
  return {};
}

Status Receiver::make_room(Time now, const Key& key, const Partial* partial, uint64_t begin, uint64_t end) {
  const uint64_t partial_bytes = partial == nullptr ? 0 : partial->bytes.size();
  const uint64_t more_bytes = end > partial_bytes ? end - partial_bytes : 0;
  const auto fits = [&] {
    return bytes_held_ + more_bytes <= config_.bytes_max &&
           (partial != nullptr || messages_.size() < config_.messages_max);
  };
  if (partial != nullptr && partial->ranges.count() >= config_.ranges_max && !partial->ranges.touches(begin, end)) {
    return fail(Code::exhausted, "message ", key.second, " lies in ", partial->ranges.count(), " pieces already");
  }
  for (auto at = messages_.begin(); at != messages_.end() && !fits();) {
    if (at->first == key || at->second.last_growth + config_.idle_max >= now) {
      ++at;
      continue;
    }
    bytes_held_ -= at->second.bytes.size();
    at = messages_.erase(at);
    ++counts_.abandoned;
  }
  if (fits()) return {};
  return fail(Code::exhausted, "message ", key.second, " needs ", more_bytes, " bytes more; ", messages_.size(),
              " messages hold ", bytes_held_, " of ", config_.bytes_max, " bytes");
}

void Receiver::give_out(Time now, const Key& key, Partial& partial, Outcome& outcome) {
  bytes_held_ -= partial.bytes.size();
  outcome.message = Message{key.first, key.second, std::move(partial.bytes), partial.began, now};
  messages_.erase(key);
  given_out_.insert(key);
  given_out_order_.emplace_back(now, key);
  ++counts_.messages;
}

Result<Receiver::Outcome> Receiver::on_datagram(Time now, uint64_t peer, std::span<const uint8_t> datagram) {
  Result<Header> header = read(datagram);
  if (header && header->has(ack))
    header = fail(Code::invalid, print(*header), ": a receiver takes no acknowledgements");
  if (!header) {
    ++counts_.malformed;
    return header.error();
  }
  const auto payload = datagram.subspan(header_bytes);
  auto outcome = add_packet(now, {peer, header->message_id}, *header, payload);
  if (outcome && header->has(syn)) {
    const uint64_t room = (config_.bytes_max - bytes_held_) / std::max<uint64_t>(payload.size(), 1);
    outcome->acknowledgement = acknowledgement(*header, static_cast<uint32_t>(std::min<uint64_t>(room, UINT32_MAX)));
  }
  return outcome;
}

Result<Receiver::Outcome> Receiver::add_packet(Time now, const Key& key, const Header& header,
                                               std::span<const uint8_t> payload) {
  const uint64_t begin = header.offset;
  const uint64_t end = begin + payload.size();
  Outcome outcome;
  if (expire_then_was_given_out(now, key)) {
    ++counts_.repeated;
    return outcome;
  }

  const auto found = messages_.find(key);
  Partial* partial = found == messages_.end() ? nullptr : &found->second;
  if (const Status status = check_ends(partial, header, end); !status) {
    ++counts_.malformed;
    return status.error();
  }
  const bool is_repeat = partial != nullptr && partial->ranges.contains(begin, end);
  if (is_repeat && (partial->end.has_value() || !header.has(eom))) {
    ++counts_.repeated;
    return outcome;
  }
  if (const Status status = make_room(now, key, partial, begin, end); !status) {
    ++counts_.refused;
    return status.error();
  }
  if (partial == nullptr) {
    partial = &messages_[key];
    partial->began = now;
  }
  if (end > partial->bytes.size()) {
    bytes_held_ += end - partial->bytes.size();
    partial->bytes.resize(end);
  }
  if (!payload.empty()) std::memcpy(partial->bytes.data() + begin, payload.data(), payload.size());
  if (begin < end) partial->ranges.add(begin, end);
  if (header.has(eom)) partial->end = end;
  partial->last_growth = now;
  ++counts_.packets;
  if (partial->end && partial->ranges.contains(0, *partial->end)) give_out(now, key, *partial, outcome);
  return outcome;
}

}  // namespace spinloom::slmp
