// Sending: at once or by a request to send, within the window.
#include <algorithm>

#include "portals/rails/rails.hpp"
#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {
namespace {

// The ids of the protocol's active messages; the user's ids follow them.
enum WordId : uint32_t { eager, request_to_send, first_of_user };

}  // namespace

Result<RequestId> Rails::send(const uint8_t* data, uint64_t bytes, uint32_t rank, uint64_t tag) {
  SPL_TRY(check("send", rank));
  if (bytes > bits::bytes_max) return fail(Code::invalid, "send: ", bytes, " B; at most ", bits::bytes_max);
  Request request;
  request.does = Does::send;
  request.from = data;
  request.bytes = bytes;
  request.peer = rank;
  request.tag = tag;
  return start_or_hold(std::move(request));
}

Result<RequestId> Rails::send(PieceList pieces, uint32_t rank, uint64_t tag) {
  SPL_TRY(check("send", rank));
  Request request;
  request.does = Does::send;
  request.pieces = make_pieces(pieces, rails_.size());
  request.bytes = request.pieces->bytes;
  request.peer = rank;
  request.tag = tag;
  if (request.bytes > bits::bytes_max) {
    return fail(Code::invalid, "send: ", request.bytes, " B; at most ", bits::bytes_max);
  }
  return start_or_hold(std::move(request));
}

Status Rails::check_word(uint32_t rank, uint32_t id, uint64_t bytes) const {
  SPL_TRY(check("send_word", rank));
  if (!channel_) return fail(Code::invalid, "send_word: open the rails with active messages (RailsOptions::words)");
  if (id >= words_max) return fail(Code::invalid, "send_word: handler ", id, "; the last one is ", words_max - 1);
  if (bytes > options_.eager_bytes) {
    return fail(Code::invalid, "send_word: ", bytes, " B; a word has at most ", options_.eager_bytes, " (eager_bytes)");
  }
  return {};
}

Status Rails::send_word(uint32_t rank, uint32_t id, std::span<const uint8_t> bytes) {
  SPL_TRY(check_word(rank, id, bytes.size()));
  Request request;
  request.does = Does::word;
  request.peer = rank;
  request.id = id;
  request.word.assign(bytes.begin(), bytes.end());
  const auto held = start_or_hold(std::move(request));
  return held ? Status{} : Status{held.error()};
}

Result<RequestId> Rails::send_word_from(PieceList pieces, uint32_t rank, uint32_t id) {
  Request request;
  request.does = Does::word;
  request.peer = rank;
  request.id = id;
  request.pieces = make_pieces(pieces, 0);  // the channel makes descriptors with its own header
  request.bytes = request.pieces->bytes;
  SPL_TRY(check_word(rank, id, request.bytes));
  return start_or_hold(std::move(request));
}

Result<RequestId> Rails::start_or_hold(Request request) {
  Peer& peer = peers_[request.peer];
  if (peer.lost) return fail(Code::fault, "rank ", request.peer, " is lost");
  const uint32_t rank = request.peer;
  const RequestId id = add(std::move(request));
  peer.held.push_back(id.value);
  SPL_TRY(release_held(rank));
  return id;
}

Status Rails::release_held(uint32_t rank) {
  Peer& peer = peers_[rank];
  while (!peer.held.empty() && peer.sent - peer.acknowledged < options_.window) {
    const uint64_t number = peer.held.front();
    peer.held.pop_front();
    ++peer.sent;
    SPL_TRY(start(number));
  }
  return {};
}

Status Rails::start(uint64_t number) {
  Request& request = requests_.at(number);
  if (request.does == Does::send) return start_send(number, request);
  AmChannel::Header header;
  header.id = first_of_user + request.id;
  if (request.pieces) {
    request.completion = {rails_[0]->interface().rank().value, request.id, request.bytes, false};
    request.begun = true;
    return channel_->send(request.peer, header, *request.pieces, number);
  }
  const std::vector<uint8_t> bytes = std::move(request.word);
  const uint32_t rank = request.peer;
  forget_request(number);  // the channel has a copy
  return channel_->send(rank, header, bytes);
}

Status Rails::start_send(uint64_t number, Request& request) {
  request.completion = {rails_[0]->interface().rank().value, request.tag, request.bytes, false};
  AmChannel::Header header;
  header.id = eager;
  header.words[0] = request.tag;
  header.words[1] = request.bytes;
  if (request.bytes <= options_.eager_bytes) {
    if (options_.mode == Mode::tag) return send_by_tag(number, request, 0);
    const std::vector<uint8_t> gathered = request.pieces ? gather(*request.pieces) : std::vector<uint8_t>();
    const std::span<const uint8_t> bytes(request.pieces ? gathered.data() : request.from, request.bytes);
    const uint32_t rank = request.peer;
    finish(number);
    return channel_->send(rank, header, bytes);
  }
  SPL_ASSIGN(request.slot, slots_->take({request.from, request.pieces, request.bytes, request.peer, number}));
  if (options_.by_put && options_.offloaded) {
    SPL_TRY(stripes_->arm(number, landing_of(request), slots_->clears_of(*request.slot)));
  }
  if (options_.mode == Mode::tag) return send_by_tag(number, request, bits::request({*request.slot, request.bytes}));
  header.id = request_to_send;
  header.words[2] = bits::number_of(*request.slot);
  return channel_->send(request.peer, header, {});
}

Status Rails::send_by_tag(uint64_t number, const Request& request, uint64_t hdr_data) {
  nic::Put put;
  if (hdr_data == 0 && request.bytes > 0) {
    if (request.pieces) put.descriptor = request.pieces->by_rail[options_.home];
    put.local = request.from;
    put.length = request.bytes;
  }
  put.target = {request.peer};
  put.portal = options_.portals.tags;
  put.match_bits = request.tag;
  put.hdr_data = hdr_data;
  put.queue = home().queue();
  put.user_ptr = user::pointer(user::Kind::send, number);
  home().spend();
  return home().interface().put(put);
}

Status Rails::on_sent(uint32_t rail, const nic::Event& event) {
  const auto found = requests_.find(user::number_of(event.user_ptr));
  if (found == requests_.end()) return {};
  if (event.fail != nic::Fail::ok) {
    rails_[rail]->lose(found->second.peer);
    return lose_peer(found->second.peer);
  }
  if (!found->second.slot) finish(found->first);
  return {};
}

// Takes a word of a peer: that it has read a part of a slot's memory, or how many messages it has taken.
Status Rails::on_entry(const nic::Event& event) {
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  if (event.match_bits >> 56 == static_cast<uint64_t>(bits::Key::finished)) {
    const auto request = slots_->ended(bits::slot_of(event.match_bits), bits::part_of(event.hdr_data));
    if (request && requests_.contains(*request)) finish(*request);
    return {};
  }
  Peer& peer = peers_[event.initiator.value];
  peer.acknowledged = std::max(peer.acknowledged, std::min(event.hdr_data, peer.sent));
  return release_held(event.initiator.value);
}

Status Rails::word_came(uint64_t number, const Status& ended) {
  if (!requests_.contains(number)) return {};
  if (ended) {
    finish(number);
  } else {
    fail_request(number, ended.error());
  }
  return {};
}

Transfer Rails::landing_of(const Request& request) {
  Transfer transfer;
  transfer.from = request.from;
  transfer.pieces = request.pieces;
  transfer.puts = true;
  transfer.bytes = request.bytes;
  transfer.rank = request.peer;
  transfer.bits = bits::key(bits::Key::landing, bits::number_of(*request.slot));
  transfer.lands = true;
  return transfer;
}

// Takes the receiver's word that its memory is open. Fragments that were given to the NIC beforehand have left already.
Status Rails::on_cleared(uint32_t rail, const nic::Event& event) {
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  const auto number = slots_->cleared(bits::slot_of(event.match_bits), rail, event.hdr_data);
  const auto found = number ? requests_.find(*number) : requests_.end();
  if (found == requests_.end() || found->second.done) return {};
  Request& request = found->second;
  if (stripes_->runs(*number)) return stripes_->cleared(*number, rail, event.hdr_data);
  if (std::exchange(request.begun, true)) return {};
  return stripes_->start(*number, landing_of(request));
}

Status Rails::on_word(uint32_t source, const AmChannel::Header& header, std::span<const uint8_t> bytes) {
  if (header.id >= first_of_user) {
    const uint32_t id = header.id - first_of_user;
    if (id < words_max && handlers_[id]) handlers_[id](source, bytes);
    return taken_from(source);
  }
  Message message{source, header.words[0], header.words[1], {}, bytes};
  if (header.id == request_to_send) {
    message.slot = header.words[2];
  } else {
    message.bytes = bytes.size();
  }
  return match(message);
}

}  // namespace spinloom::rails
