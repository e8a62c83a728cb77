#include "portals/rails/am_channel.hpp"

#include <cstring>
#include <optional>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

AmChannel::AmChannel(const std::vector<std::unique_ptr<Rail>>& rails, const Options& options, Deliver deliver,
                     Lost lost, Came came)
    : rails_(rails),
      options_(options),
      deliver_(std::move(deliver)),
      lost_(std::move(lost)),
      came_(std::move(came)),
      peers_(options.ranks) {
  for (const auto& rail : rails_) {
    blocks_.emplace_back(*rail, InboxBlocks::Options{.portal = rail->portals().words,
                                                     .longest = options_.longest + sizeof(Frame),
                                                     .messages = options_.unhandled,
                                                     .keep_headers = false,
                                                     .user_ptr = user::pointer(user::Kind::word_block, 0)});
  }
}

Status AmChannel::open() {
  for (InboxBlocks& blocks : blocks_) SPL_TRY(blocks.prepare());
  return {};
}

Status AmChannel::close() {
  for (InboxBlocks& blocks : blocks_) SPL_TRY(blocks.withdraw());
  return {};
}

Status AmChannel::send(uint32_t rank, const Header& header, std::span<const uint8_t> bytes) {
  if (bytes.size() > options_.longest) {
    return fail(Code::invalid, "an active message of ", bytes.size(), " B; at most ", options_.longest,
                " B go at once");
  }
  Peer& peer = peers_[rank];
  Sent sent{rank, 0, std::vector<uint8_t>(sizeof(Frame) + bytes.size()), {}, sizeof(Frame) + bytes.size(), {}};
  const Frame frame{peer.sent++, header};
  std::memcpy(sent.bytes.data(), &frame, sizeof frame);
  if (!bytes.empty()) std::memcpy(sent.bytes.data() + sizeof frame, bytes.data(), bytes.size());
  const uint64_t number = next_sent_++;
  return put(number, sent_[number] = std::move(sent));
}

Status AmChannel::send(uint32_t rank, const Header& header, const Pieces& pieces, uint64_t request) {
  Sent sent{rank, 0, std::vector<uint8_t>(sizeof(Frame)), pieces.elements, sizeof(Frame) + pieces.bytes, request};
  const Frame frame{peers_[rank].sent++, header};
  std::memcpy(sent.bytes.data(), &frame, sizeof frame);
  const uint64_t number = next_sent_++;
  return put(number, sent_[number] = std::move(sent));
}

Status AmChannel::put(uint64_t number, Sent& sent) {
  const std::vector<Fragment> chosen = plan(sent.length, sent.length, loads_of(rails_, sent.rank));
  if (chosen.empty()) {
    const uint32_t rank = sent.rank;
    const std::optional<uint64_t> request = sent.request;
    sent_.erase(number);
    if (!std::exchange(peers_[rank].lost, true)) lost_(rank);
    if (!request) return {};
    return came_(*request, fail(Code::fault, "rank ", rank, " is lost: no rail reaches it"));
  }
  sent.rail = chosen.front().rail;
  Rail& rail = *rails_[sent.rail];
  rail.begin(sent.rank, sent.length);
  nic::Put put;
  if (sent.request) {
    std::vector<nic::IovecElement> list = sent.pieces;
    list.insert(list.begin(), {sent.bytes.data(), sent.bytes.size()});
    put.descriptor = nic::Descriptor::make(std::move(list));
  } else {
    put.local = sent.bytes.data();
  }
  put.length = sent.length;
  put.target = {sent.rank};
  put.portal = rail.portals().words;
  put.ack_request = nic::AckRequest::ack;
  put.queue = rail.queue();
  put.event_send_disable = true;
  put.user_ptr = user::pointer(user::Kind::word, number);
  rail.spend();
  return rail.interface().put(put);
}

bool AmChannel::is_own(const nic::Event& event) const {
  const user::Kind kind = user::kind_of(event.user_ptr);
  return kind == user::Kind::word || kind == user::Kind::word_block;
}

Status AmChannel::on_event(uint32_t rail, const nic::Event& event, bool seen_at_once) {
  if (user::kind_of(event.user_ptr) == user::Kind::word) return acknowledged(rail, event, seen_at_once);
  if (event.kind == nic::EventKind::put) return take(event);
  return blocks_[rail].on_event(event, user::number_of(event.user_ptr));
}

Status AmChannel::acknowledged(uint32_t at, const nic::Event& event, bool seen_at_once) {
  const uint64_t number = user::number_of(event.user_ptr);
  const auto found = sent_.find(number);
  if (found == sent_.end()) return {};
  Sent& sent = found->second;
  Rail& rail = *rails_[at];
  if (event.fail == nic::Fail::ok) {
    rail.ended(sent.rank, sent.length, seen_at_once);
    const std::optional<uint64_t> request = sent.request;
    sent_.erase(found);
    return request ? came_(*request, {}) : Status{};
  }
  rail.failed(sent.rank, sent.length);
  rail.lose(sent.rank);
  return put(number, sent);
}

// Drops a message that failed in the middle: its sender sends it again.
Status AmChannel::take(const nic::Event& event) {
  if (event.fail != nic::Fail::ok || event.manipulated_bytes < sizeof(Frame)) return {};
  const auto* const start = reinterpret_cast<const uint8_t*>(event.start);
  Frame frame;
  std::memcpy(&frame, start, sizeof frame);
  Peer& peer = peers_.at(event.initiator.value);
  if (frame.sequence < peer.next) return {};
  if (frame.sequence > peer.next) {
    peer.early.try_emplace(frame.sequence, start, start + event.manipulated_bytes);
    return {};
  }
  SPL_TRY(deliver(event.initiator.value, {start, event.manipulated_bytes}));
  while (!peer.early.empty() && peer.early.begin()->first == peer.next) {
    const auto message = peer.early.extract(peer.early.begin());
    SPL_TRY(deliver(event.initiator.value, message.mapped()));
  }
  return {};
}

Status AmChannel::deliver(uint32_t source, std::span<const uint8_t> bytes) {
  ++peers_[source].next;
  Frame frame;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  return deliver_(source, frame.header, bytes.subspan(sizeof frame));
}

}  // namespace spinloom::rails
