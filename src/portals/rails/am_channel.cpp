#include "portals/rails/am_channel.hpp"

#include <cstring>
#include <optional>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

AmChannel::AmChannel(const std::vector<std::unique_ptr<Rail>>& rails, const Options& options, Deliver deliver,
                     PeerLost peer_lost, Arrived arrived)
    : rails_(rails),
      options_(options),
      deliver_(std::move(deliver)),
      peer_lost_(std::move(peer_lost)),
      arrived_(std::move(arrived)),
      peers_(options.ranks) {
  for (const auto& rail : rails_) {
    inbox_blocks_.emplace_back(*rail,
                               InboxBlocks::Options{.portal = rail->portals().words,
                                                    .message_bytes_max = options_.message_bytes_max + sizeof(Frame),
                                                    .messages_max = options_.unhandled_messages_max,
                                                    .keep_headers = false,
                                                    .user_ptr = user::pointer(user::Kind::word_block, 0)});
  }
}

Status AmChannel::open() {
  for (InboxBlocks& blocks : inbox_blocks_) SPL_TRY(blocks.prepare());
  return {};
}

Status AmChannel::close() {
  for (InboxBlocks& blocks : inbox_blocks_) SPL_TRY(blocks.withdraw());
  return {};
}

Status AmChannel::send(uint32_t rank, const Header& header, std::span<const uint8_t> bytes) {
  if (bytes.size() > options_.message_bytes_max) {
    return fail(Code::invalid, "an active message of ", bytes.size(), " B; at most ", options_.message_bytes_max,
                " B go at once");
  }
  Peer& peer = peers_[rank];
  SentMessage message{rank, 0, std::vector<uint8_t>(sizeof(Frame) + bytes.size()), {}, sizeof(Frame) + bytes.size(),
                      {}};
  const Frame frame{peer.next_sent++, header};
  std::memcpy(message.bytes.data(), &frame, sizeof frame);
  if (!bytes.empty()) std::memcpy(message.bytes.data() + sizeof frame, bytes.data(), bytes.size());
  const uint64_t number = next_number_++;
  return put(number, unacknowledged_[number] = std::move(message));
}

Status AmChannel::send(uint32_t rank, const Header& header, const Pieces& pieces, uint64_t request) {
  SentMessage message{rank,   0, std::vector<uint8_t>(sizeof(Frame)), pieces.elements, sizeof(Frame) + pieces.bytes,
                      request};
  const Frame frame{peers_[rank].next_sent++, header};
  std::memcpy(message.bytes.data(), &frame, sizeof frame);
  const uint64_t number = next_number_++;
  return put(number, unacknowledged_[number] = std::move(message));
}

Status AmChannel::put(uint64_t number, SentMessage& message) {
  const std::vector<Fragment> chosen = plan(message.length, message.length, loads_of(rails_, message.rank));
  if (chosen.empty()) {
    const uint32_t rank = message.rank;
    const std::optional<uint64_t> request = message.request;
    unacknowledged_.erase(number);
    if (!std::exchange(peers_[rank].is_lost, true)) peer_lost_(rank);
    if (!request) return {};
    return arrived_(*request, fail(Code::fault, "rank ", rank, " is lost: no rail reaches it"));
  }
  message.rail = chosen.front().rail;
  Rail& rail = *rails_[message.rail];
  rail.begin_transfer(message.rank, message.length);
  nic::Put put;
  if (message.request) {
    std::vector<nic::IovecElement> list = message.pieces;
    list.insert(list.begin(), {message.bytes.data(), message.bytes.size()});
    put.descriptor = nic::Descriptor::make(std::move(list));
  } else {
    put.local = message.bytes.data();
  }
  put.length = message.length;
  put.target = {message.rank};
  put.portal = rail.portals().words;
  put.ack_request = nic::AckRequest::ack;
  put.queue = rail.queue();
  put.event_send_disable = true;
  put.user_ptr = user::pointer(user::Kind::word, number);
  rail.spend_call_time();
  return rail.interface().put(put);
}

bool AmChannel::is_own(const nic::Event& event) const {
  const user::Kind kind = user::kind_of(event.user_ptr);
  return kind == user::Kind::word || kind == user::Kind::word_block;
}

Status AmChannel::on_event(uint32_t rail_number, const nic::Event& event, bool seen_at_once) {
  if (user::kind_of(event.user_ptr) == user::Kind::word) return on_acknowledged(rail_number, event, seen_at_once);
  if (event.kind == nic::EventKind::put) return on_arrival(event);
  return inbox_blocks_[rail_number].on_event(event, user::number_of(event.user_ptr));
}

Status AmChannel::on_acknowledged(uint32_t rail_number, const nic::Event& event, bool seen_at_once) {
  const uint64_t number = user::number_of(event.user_ptr);
  const auto found = unacknowledged_.find(number);
  if (found == unacknowledged_.end()) return {};
  SentMessage& message = found->second;
  Rail& rail = *rails_[rail_number];
  if (event.fail == nic::Fail::ok) {
    rail.end_transfer(message.rank, message.length, seen_at_once);
    const std::optional<uint64_t> request = message.request;
    unacknowledged_.erase(found);
    return request ? arrived_(*request, {}) : Status{};
  }
  rail.fail_transfer(message.rank, message.length);
  rail.lose(message.rank);
  return put(number, message);
}

// Drops a message that failed in the middle: its sender sends it again.
Status AmChannel::on_arrival(const nic::Event& event) {
  if (event.fail != nic::Fail::ok || event.manipulated_bytes < sizeof(Frame)) return {};
  const auto* const start = reinterpret_cast<const uint8_t*>(event.start);
  Frame frame;
  std::memcpy(&frame, start, sizeof frame);
  Peer& peer = peers_.at(event.initiator.value);
  if (frame.sequence < peer.next_delivered) return {};
  if (frame.sequence > peer.next_delivered) {
    peer.out_of_order.try_emplace(frame.sequence, start, start + event.manipulated_bytes);
    return {};
  }
  SPL_TRY(deliver(event.initiator.value, {start, event.manipulated_bytes}));
  while (!peer.out_of_order.empty() && peer.out_of_order.begin()->first == peer.next_delivered) {
    const auto early = peer.out_of_order.extract(peer.out_of_order.begin());
    SPL_TRY(deliver(event.initiator.value, early.mapped()));
  }
  return {};
}

Status AmChannel::deliver(uint32_t source, std::span<const uint8_t> bytes) {
  ++peers_[source].next_delivered;
  Frame frame;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  return deliver_(source, frame.header, bytes.subspan(sizeof frame));
}

}  // namespace spinloom::rails
