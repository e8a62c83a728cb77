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
  SPL_TRY(check_rank("send", rank));
  if (bytes > bits::bytes_max) return fail(Code::invalid, "send: ", bytes, " B; at most ", bits::bytes_max);
  Request request;
  request.kind = RequestKind::send;
  request.from = data;
  request.bytes = bytes;
  request.peer = rank;
  request.tag = tag;
  return start_or_hold(std::move(request));
}

Result<RequestId> Rails::send(PieceList pieces, uint32_t rank, uint64_t tag) {
  SPL_TRY(check_rank("send", rank));
  Request request;
  request.kind = RequestKind::send;
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
  SPL_TRY(check_rank("send_word", rank));
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
  request.kind = RequestKind::word;
  request.peer = rank;
  request.handler_id = id;
  request.word_bytes.assign(bytes.begin(), bytes.end());
  const auto held = start_or_hold(std::move(request));
  return held ? Status{} : Status{held.error()};
}

Result<RequestId> Rails::send_word_from(PieceList pieces, uint32_t rank, uint32_t id) {
  Request request;
  request.kind = RequestKind::word;
  request.peer = rank;
  request.handler_id = id;
  request.pieces = make_pieces(pieces, 0);  // the channel makes descriptors with its own header
  request.bytes = request.pieces->bytes;
  SPL_TRY(check_word(rank, id, request.bytes));
  return start_or_hold(std::move(request));
}

Result<RequestId> Rails::start_or_hold(Request request) {
  Peer& peer = peers_[request.peer];
  if (peer.is_lost) return fail(Code::fault, "rank ", request.peer, " is lost");
  const uint32_t rank = request.peer;
  const RequestId id = add(std::move(request));
  peer.held_requests.push_back(id.value);
  SPL_TRY(release_held(rank));
  return id;
}

Status Rails::release_held(uint32_t rank) {
  Peer& peer = peers_[rank];
  while (!peer.held_requests.empty() && peer.sent_messages - peer.acknowledged_messages < options_.window) {
    const uint64_t number = peer.held_requests.front();
    peer.held_requests.pop_front();
    ++peer.sent_messages;
    SPL_TRY(start(number));
  }
  return {};
}

Status Rails::start(uint64_t number) {
  Request& request = requests_.at(number);
  if (request.kind == RequestKind::send) return start_send(number, request);
  AmChannel::Header header;
  header.handler_id = first_of_user + request.handler_id;
  if (request.pieces) {
    request.completion = {rails_[0]->interface().rank().value, request.handler_id, request.bytes, false};
    request.is_begun = true;
    return channel_->send(request.peer, header, *request.pieces, number);
  }
  const std::vector<uint8_t> bytes = std::move(request.word_bytes);
  const uint32_t rank = request.peer;
  forget_request(number);  // the channel has a copy
  return channel_->send(rank, header, bytes);
}

Status Rails::start_send(uint64_t number, Request& request) {
  request.completion = {rails_[0]->interface().rank().value, request.tag, request.bytes, false};
  AmChannel::Header header;
  header.handler_id = eager;
  header.words[0] = request.tag;
  header.words[1] = request.bytes;
  if (request.bytes <= options_.eager_bytes) {
    if (options_.mode == Mode::tag) return send_by_tag(number, request, 0);
    const std::vector<uint8_t> gathered = request.pieces ? gather(*request.pieces) : std::vector<uint8_t>();
    const std::span<const uint8_t> bytes(request.pieces ? gathered.data() : request.from, request.bytes);
    const uint32_t rank = request.peer;
    finish_request(number);
    return channel_->send(rank, header, bytes);
  }
  SPL_ASSIGN(request.slot, slots_->take({request.from, request.pieces, request.bytes, request.peer, number}));
  if (options_.by_put && options_.offloaded) {
    SPL_TRY(stripes_->arm(number, landing_transfer_of(request), slots_->clear_triggers_of(*request.slot)));
  }
  if (options_.mode == Mode::tag)
    return send_by_tag(number, request, bits::hdr_data_of({*request.slot, request.bytes}));
  header.handler_id = request_to_send;
  header.words[2] = bits::number_of(*request.slot);
  return channel_->send(request.peer, header, {});
}

Status Rails::send_by_tag(uint64_t number, const Request& request, uint64_t hdr_data) {
  nic::Put put;
  if (hdr_data == 0 && request.bytes > 0) {
    if (request.pieces) put.descriptor = request.pieces->descriptors[options_.home];
    put.local = request.from;
    put.length = request.bytes;
  }
  put.target = {request.peer};
  put.portal = options_.portals.tags;
  put.match_bits = request.tag;
  put.hdr_data = hdr_data;
  put.queue = home_rail().queue();
  put.user_ptr = user::pointer(user::Kind::send, number);
  home_rail().spend_call_time();
  return home_rail().interface().put(put);
}

Status Rails::on_sent(uint32_t rail, const nic::Event& event) {
  const auto found = requests_.find(user::number_of(event.user_ptr));
  if (found == requests_.end()) return {};
  if (event.fail != nic::Fail::ok) {
    rails_[rail]->lose(found->second.peer);
    return lose_peer(found->second.peer);
  }
  if (!found->second.slot) finish_request(found->first);
  return {};
}

// Takes a word of a peer: that it has read a part of a slot's memory, or how many messages it has taken.
Status Rails::on_entry(const nic::Event& event) {
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  if (event.match_bits >> 56 == static_cast<uint64_t>(bits::KeyKind::finished)) {
    const auto request = slots_->end_part(bits::slot_of(event.match_bits), bits::part_of(event.hdr_data));
    if (request && requests_.contains(*request)) finish_request(*request);
    return {};
  }
  Peer& peer = peers_[event.initiator.value];
  peer.acknowledged_messages = std::max(peer.acknowledged_messages, std::min(event.hdr_data, peer.sent_messages));
  return release_held(event.initiator.value);
}

Status Rails::on_word_arrived(uint64_t number, const Status& result) {
  if (!requests_.contains(number)) return {};
  if (result) {
    finish_request(number);
  } else {
    fail_request(number, result.error());
  }
  return {};
}

Transfer Rails::landing_transfer_of(const Request& request) {
  Transfer transfer;
  transfer.from = request.from;
  transfer.pieces = request.pieces;
  transfer.is_put = true;
  transfer.bytes = request.bytes;
  transfer.rank = request.peer;
  transfer.match_bits = bits::match_bits_of(bits::KeyKind::landing, bits::number_of(*request.slot));
  transfer.is_landing = true;
  return transfer;
}

// Takes the receiver's word that its memory is open. Fragments that were given to the NIC beforehand have left already.
Status Rails::on_cleared(uint32_t rail, const nic::Event& event) {
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  const auto number = slots_->on_cleared(bits::slot_of(event.match_bits), rail, event.hdr_data);
  const auto found = number ? requests_.find(*number) : requests_.end();
  if (found == requests_.end() || found->second.is_done) return {};
  Request& request = found->second;
  if (stripes_->is_running(*number)) return stripes_->on_cleared(*number, rail, event.hdr_data);
  if (std::exchange(request.is_begun, true)) return {};
  return stripes_->start(*number, landing_transfer_of(request));
}

Status Rails::on_word(uint32_t source, const AmChannel::Header& header, std::span<const uint8_t> bytes) {
  if (header.handler_id >= first_of_user) {
    const uint32_t id = header.handler_id - first_of_user;
    if (id < words_max && handlers_[id]) handlers_[id](source, bytes);
    return count_taken(source);
  }
  Message message{source, header.words[0], header.words[1], {}, bytes};
  if (header.handler_id == request_to_send) {
    message.slot = header.words[2];
  } else {
    message.bytes = bytes.size();
  }
  return match(message);
}

}  // namespace spinloom::rails
