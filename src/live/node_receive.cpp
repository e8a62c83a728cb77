// Packets that arrive: in parts that handlers may see, or whole; kept while the engine has no room.
#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "live/node.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t window_bytes = 64 << 10;  // read from a peer at a time, for handlers

}  // namespace

void Node::arrived(Transport& from, const nic::Packet& packet) {
  feed(&from, packet);
  settle();
}

// A message's first packet is short enough for handlers; then the engine knows whether it has any.
void Node::feed(Transport* from, const nic::Packet& packet) {
  const uint64_t short_bytes = engine_.limits().payload_bytes;
  if (packet.payload.length <=
      short_bytes) {  // also where it is lent: only long transfers to memory know a peer's bytes
    std::ignore = feed_part(from, packet, 0, packet.payload.length);
    return;
  }
  if (packet.is_answer()) return feed_one(from, packet);
  uint64_t begin = 0;
  if (packet.is_header()) {
    if (!feed_part(from, packet, 0, short_bytes)) return;
    begin = short_bytes;
  }
  // What waits for room has no place yet, and would come in parts.
  if (blocked_.empty() && !engine_.wants_packets(packet.source, packet.message)) {
    std::ignore = feed_part(from, packet, begin, packet.payload.length - begin);
    return;
  }
  nic::Packet part = packet;
  for (uint64_t at = begin; at < packet.payload.length; at += window_bytes) {
    const uint64_t window = std::min(window_bytes, packet.payload.length - at);
    part.payload = {packet.payload.space, packet.payload.bytes + at, window};
    part.offset = packet.offset + at;
    if (!bring_here(from, part, window_)) return give_up(part);
    for (uint64_t within = 0; within < window; within += short_bytes) {
      std::ignore = feed_part(nullptr, part, within, std::min(short_bytes, window - within));
    }
  }
}

// Whether its bytes could be read; nothing of the message comes behind one where they could not.
bool Node::feed_part(Transport* from, const nic::Packet& packet, uint64_t begin, uint64_t length) {
  nic::Packet part = packet;
  part.offset += begin;
  part.payload.bytes += begin;
  part.payload.length = length;
  std::vector<uint8_t> bytes;
  if (length <= engine_.limits().payload_bytes && !bring_here(from, part, bytes)) {
    give_up(part);
    return false;
  }
  feed_one(from, part);
  return true;
}

// The payload as memory of ours.
bool Node::bring_here(Transport* from, nic::Packet& packet, std::vector<uint8_t>& room) {
  if (packet.payload.space != nic::PayloadRef::Space::peer) return true;
  room.resize(packet.payload.length);
  const auto address = reinterpret_cast<uint64_t>(packet.payload.bytes);
  if (!from->fetch(packet.source, address, room.data(), packet.payload.length)) return false;
  packet.payload = {nic::PayloadRef::Space::local, room.data(), packet.payload.length};
  return true;
}

// The sender's memory cannot be read: the rest of its message never comes. Its header needs some bytes: no one's.
void Node::give_up(const nic::Packet& packet) {
  nic::Packet rest = packet;
  if (packet.is_answer()) {
    rest.message_length = 0;
    rest.offset = 0;
    rest.payload = {};
    rest.fields.fail = static_cast<uint8_t>(nic::Fail::undeliverable);
    return feed_one(nullptr, rest);
  }
  if (packet.is_header()) {
    const std::vector<uint8_t> zeros(std::min<uint64_t>(engine_.limits().payload_bytes, packet.message_length - 1));
    nic::Packet header = packet;
    header.payload = {nic::PayloadRef::Space::local, zeros.data(), zeros.size()};
    feed_one(nullptr, header);
    rest.offset = zeros.size();
  }
  rest.missing = packet.message_length - rest.offset;
  rest.payload = {};
  feed_one(nullptr, rest);
}

void Node::feed_one(Transport* from, const nic::Packet& packet) {
  if (!packet.is_answer() && !blocked_.empty()) return block(from, packet);
  if (is_stray(packet)) return;
  if (!engine_.can_accept(packet)) return block(from, packet);
  enter(from, packet);
}

// A sender's packets come in order: one of a message that has not begun is a mistake of its sender's, and so is what
// comes behind the end of one.
bool Node::is_stray(const nic::Packet& packet) const {
  return !packet.is_answer() && !packet.is_header() && !engine_.has_begun(packet.source, packet.message);
}

void Node::enter(Transport* from, const nic::Packet& packet) {
  arrival_ = {from, &packet};
  actions_.clear();
  engine_.on_packet({}, packet, actions_);
  perform();
  arrival_ = {};
  settle_now();
}

// Its bytes are kept: the sender has its memory back when arrived() returns.
void Node::block(Transport* from, const nic::Packet& packet) {
  const uint64_t length = packet.payload.length;
  Blocked one{packet, nullptr};
  if (length > 0) {
    if (length <= engine_.limits().transfer_bytes) one.bytes.reset(new (std::nothrow) uint8_t[length]);
    arrival_ = {from, &packet};
    const bool here = one.bytes != nullptr && bring(packet.payload, one.bytes.get());
    arrival_ = {};
    if (!here) return give_up(packet);
    one.packet.payload = {nic::PayloadRef::Space::local, one.bytes.get(), length};
  }
  blocked_.push_back(std::move(one));
}

void Node::unblock() {
  while (!blocked_.empty()) {
    const bool stray = is_stray(blocked_.front().packet);
    if (!stray && !engine_.can_accept(blocked_.front().packet)) return;
    const Blocked one = std::move(blocked_.front());
    blocked_.pop_front();
    if (!stray) enter(nullptr, one.packet);
  }
}

bool Node::bring(const nic::PayloadRef& source, uint8_t* to) {
  if (source.space != nic::PayloadRef::Space::peer) {
    std::memcpy(to, source.bytes, source.length);
    return true;
  }
  SPL_ASSERT(arrival_.from != nullptr, "bytes of a peer that nobody brings");
  const auto address = reinterpret_cast<uint64_t>(source.bytes);
  return arrival_.from->fetch(arrival_.packet->source, address, to, source.length).ok();
}

}  // namespace spinloom::live
