// Packets that arrive: in parts that handlers may see, or whole; kept while the engine has no room.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "live/node/node.hpp"
#include "portals/interface/admission.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t window_bytes = 64 << 10;  // bytes read at a time from a peer whose packet arrives, for handlers

}  // namespace

bool Node::arrived(Transport& from, const nic::Packet& packet, uint64_t loan) {
  bring_counts();
  if (land_quickly(packet)) return true;
  const bool passes = portals::passes(portals::Order::arrival, packet, !backlog_.empty());
  const bool here =
      packet.payload.length <= engine_.limits().payload_bytes && packet.payload.space != nic::PayloadRef::Space::peer;
  bool done = true;
  if (passes && here && !is_stray(packet) && engine_.can_accept(packet)) {
    give_to_engine(&from, packet);
  } else {
    nic::Packet rest = packet;
    done = (passes && feed(&from, rest, window_bytes)) || add_to_backlog(from, rest, loan);
  }
  settle();
  return done;
}

// Delivers a whole put that needs no decision of the engine and has no packet ahead of it. False: nothing has happened.
bool Node::land_quickly(const nic::Packet& packet) {
  if (!follow_ups_.empty() || !backlog_.empty() || !engine_.quick_landing(packet, landing_)) return false;
  if (landing_.length > 0) std::memcpy(landing_.host, packet.payload.bytes, landing_.length);
  if (landing_.queue.exists()) mail_.add(landing_.queue, landing_.event);
  publish(landing_.count);
  return true;
}

// Gives the engine as much of a packet as it has room for. Returns true if nothing is left to give, else `rest` keeps
// what is left. A stray packet is dropped, and a message whose payload cannot be read is ended; both count as done.
bool Node::feed(Transport* from, nic::Packet& rest, uint64_t window) {
  nic::PayloadRef read;  // bytes of a peer in window_ that have not gone to the engine
  while (true) {
    nic::Packet part = rest;
    part.payload.length = next_part_bytes(rest);
    if (is_stray(part)) return true;
    if (!engine_.can_accept(part)) return false;
    if (part.payload.length <= engine_.limits().payload_bytes &&
        !fetch_part(from, part, std::min(window, rest.payload.length), read)) {
      abort_message(rest);
      return true;
    }
    give_to_engine(from, part);
    if (part.payload.length == rest.payload.length) return true;
    rest.offset += part.payload.length;
    rest.payload.bytes += part.payload.length;
    rest.payload.length -= part.payload.length;
  }
}

// Returns how much of a packet the engine gets next: a part that handlers can see, if the engine says that handlers may
// need the message, otherwise all of it.
uint64_t Node::next_part_bytes(const nic::Packet& rest) const {
  const uint64_t short_bytes = engine_.limits().payload_bytes;
  if (rest.payload.length <= short_bytes || rest.is_answer()) return rest.payload.length;
  if (!engine_.wants_packets(rest)) return rest.payload.length;
  return nic::cut(rest.offset, rest.payload.length, short_bytes);
}

// Copies the payload of a short part out of the peer's memory, `window` bytes at a time, so that the parts behind it
// are here already. Returns false if the memory cannot be read. Long parts do not come here: their DmaWrites read the
// peer's memory directly.
bool Node::fetch_part(Transport* from, nic::Packet& part, uint64_t window, nic::PayloadRef& read) {
  nic::PayloadRef& payload = part.payload;
  if (payload.space != nic::PayloadRef::Space::peer) return true;
  if (read.length < payload.length) {
    read = {nic::PayloadRef::Space::local, nullptr, part.is_header() ? payload.length : window};
    if (window_.size() < read.length) window_.resize(read.length);
    const auto address = reinterpret_cast<uint64_t>(payload.bytes);
    if (!from->fetch(part.source, address, window_.data(), read.length)) return false;
    read.bytes = window_.data();
  }
  payload = {nic::PayloadRef::Space::local, read.bytes, payload.length};
  read.bytes += payload.length;
  read.length -= payload.length;
  return true;
}

// Ends a message because its sender's memory cannot be read. A header must carry some bytes; it gets zeros.
void Node::abort_message(const nic::Packet& rest) {
  nic::Packet end = rest;
  if (rest.is_answer()) {
    end.message_length = 0;
    end.offset = 0;
    end.payload = {};
    end.fields.fail = static_cast<uint8_t>(nic::Fail::undeliverable);
    end.fields.manipulated_bytes = 0;
    return give_to_engine(nullptr, end);
  }
  if (rest.is_header()) {
    const std::vector<uint8_t> zeros(std::min<uint64_t>(engine_.limits().payload_bytes, rest.message_length - 1));
    nic::Packet header = rest;
    header.payload = {nic::PayloadRef::Space::local, zeros.data(), zeros.size()};
    if (!zeros.empty()) give_to_engine(nullptr, header);
    end.offset = zeros.size();
  }
  end.missing = rest.message_length - end.offset;
  end.payload = {};
  if (!is_stray(end)) give_to_engine(nullptr, end);
}

// True for a packet behind the header that belongs to no open message. This is a fault of its sender, since a sender's
// packets come in order.
bool Node::is_stray(const nic::Packet& packet) const {
  return !packet.is_answer() && !packet.is_header() && !engine_.has_begun(packet.source, packet.message);
}

void Node::give_to_engine(Transport* from, const nic::Packet& packet) {
  arrival_ = {from, &packet};
  actions_.clear();
  engine_.on_packet(packet, actions_);
  perform();
  arrival_ = {};
  settle_now();
}

// Keeps a packet without room, or drops it if its peer does not stop when told. Returns whether its payload is not
// needed any more.
bool Node::add_to_backlog(Transport& from, const nic::Packet& rest, uint64_t loan) {
  const nic::Rank peer = rest.source;
  if (!backlog_.accepts(peer)) return true;
  BacklogEntry one;
  one.packet = rest;
  const bool lent = rest.payload.space == nic::PayloadRef::Space::peer && rest.payload.length > 0;
  if (lent) {
    one.from = &from;
    one.loan = loan;
  } else if (rest.payload.length > 0) {
    one.bytes.assign(rest.payload.bytes, rest.payload.bytes + rest.payload.length);
    one.packet.payload = {nic::PayloadRef::Space::local, one.bytes.data(), one.bytes.size()};
  }
  backlog_.add(std::move(one));
  if (backlog_.begin_stop(peer)) from.set_stopped(peer, true);
  return !lent;
}

void Node::drain_backlog() {
  while (!backlog_.empty()) {
    BacklogEntry& first = backlog_.front();
    if (first.lost) {
      follow_ups_.push({FollowUp::Kind::lost, first.packet.source.value});
    } else {
      const uint64_t before = first.packet.offset;
      const bool whole = feed(first.from, first.packet, engine_.limits().payload_bytes);
      const nic::Rank peer = first.packet.source;
      if (peer != rank_ && (whole || first.packet.offset > before)) routes_[peer.value]->note_resumed(peer);
      if (!whole) return settle_now();
    }
    finish_entry(backlog_.pop());
  }
  settle_now();
}

void Node::finish_entry(const BacklogEntry& one) {
  const nic::Rank peer = one.packet.source;
  if (peer == rank_) return sent(one.completion);
  if (one.from != nullptr) one.from->return_loan(peer, one.loan);
  if (backlog_.end_stop(peer)) routes_[peer.value]->set_stopped(peer, false);
}

void Node::fetch_dma(const nic::DmaWrite& write) {
  SPL_ASSERT(arrival_.from != nullptr, "bytes of a peer that nobody brings");
  const nic::Rank peer = arrival_.packet->source;
  const auto address = reinterpret_cast<uint64_t>(write.source.bytes);
  if (arrival_.from->fetch_with_help(peer, address, write.host, write.source.length, write.dma.value)) return;
  fetched(write.dma.value, arrival_.from->fetch(peer, address, write.host, write.source.length).ok());
}

void Node::fetched(uint64_t token, bool succeeded) {
  follow_ups_.push({succeeded ? FollowUp::Kind::dma_end : FollowUp::Kind::dma_failed, token});
}

}  // namespace spinloom::live
