// Receiving: by the NIC's matching or by the processor's, at once or by reading the sender's memory.
#include <algorithm>
#include <cstring>

#include "portals/rails/rails.hpp"
#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

Result<RequestId> Rails::receive(uint8_t* data, uint64_t bytes, uint32_t source, uint64_t tag, uint64_t ignore_bits) {
  if (source != any_source) SPL_TRY(check_rank("receive", source));
  if (source != any_source && peers_[source].is_lost) return fail(Code::fault, "receive: rank ", source, " is lost");
  Request request;
  request.kind = RequestKind::receive;
  request.into = data;
  request.bytes = bytes;
  request.peer = source;
  request.tag = tag;
  request.ignore_bits = ignore_bits;
  return start_receive(std::move(request));
}

Result<RequestId> Rails::receive(PieceList pieces, uint32_t source, uint64_t tag, uint64_t ignore_bits) {
  if (source != any_source) SPL_TRY(check_rank("receive", source));
  if (source != any_source && peers_[source].is_lost) return fail(Code::fault, "receive: rank ", source, " is lost");
  Request request;
  request.kind = RequestKind::receive;
  request.pieces = make_pieces(pieces, rails_.size());
  request.bytes = request.pieces->bytes;
  request.peer = source;
  request.tag = tag;
  request.ignore_bits = ignore_bits;
  return start_receive(std::move(request));
}

Result<RequestId> Rails::start_receive(Request new_request) {
  const RequestId id = add(std::move(new_request));
  if (options_.mode == Mode::word) {
    SPL_TRY(match_early(id.value));
    return id;
  }
  const Request& request = requests_.at(id.value);
  nic::Entry entry;
  entry.start = request.into;
  if (request.pieces) entry.iovec = request.pieces->elements;
  entry.length = request.bytes;
  entry.match_rank = request.peer == any_source ? nic::Rank::any() : nic::Rank{request.peer};
  entry.match_bits = request.tag;
  entry.ignore_bits = request.ignore_bits;
  entry.user_ptr = user::pointer(user::Kind::receive, id.value);
  entry.options.use_once = true;
  entry.options.event_unlink_disable = true;
  home_rail().spend_call_time();
  const auto appended = home_rail().interface().me_append(options_.portals.tags, entry);
  if (!appended) {
    forget_request(id.value);
    return appended.error();
  }
  requests_.at(id.value).entry = *appended;
  return id;
}

// Takes the event of a posted receive. An expected message is in its place; an early one is in a block.
Status Rails::on_receive(const nic::Event& event) {
  const uint64_t number = user::number_of(event.user_ptr);
  const auto found = requests_.find(number);
  if (found == requests_.end()) return {};
  const uint32_t source = event.initiator.value;
  if (event.fail != nic::Fail::ok) {
    fail_request(number,
                 fail(Code::fault, "receive: a message of rank ", source, " has failed: ", nic::name_of(event.fail)));
    return {};
  }
  Request& request = found->second;
  if (bits::is_request(event.hdr_data)) {
    const bits::Request wanted = bits::request_of(event.hdr_data);
    return take_message(number, {source, event.match_bits, wanted.bytes, bits::number_of(wanted.slot), {}});
  }
  const uint64_t kept_bytes = std::min(event.requested_bytes, request.bytes);
  if (event.kind == nic::EventKind::put_overflow) {
    SPL_TRY(copy_into(request, reinterpret_cast<const uint8_t*>(event.start), kept_bytes));
  }
  request.completion = {source, event.match_bits, kept_bytes, kept_bytes < event.requested_bytes};
  finish_request(number);
  return count_taken(source);
}

// In Mode::word: the first posted receive that fits takes the message.
Status Rails::match(const Message& message) {
  for (auto posted = posted_receives_.begin(); posted != posted_receives_.end(); ++posted) {
    const Request& request = requests_.at(*posted);
    const bool fits = (request.peer == any_source || request.peer == message.source) &&
                      ((request.tag ^ message.tag) & ~request.ignore_bits) == 0;
    if (!fits) continue;
    const uint64_t number = *posted;
    posted_receives_.erase(posted);
    return take_message(number, message);
  }
  early_messages_.push_back({message, {message.data.begin(), message.data.end()}});
  early_messages_.back().message.data = early_messages_.back().data;
  return {};
}

// In Mode::word: the receive takes the first early message that fits, or waits.
Status Rails::match_early(uint64_t number) {
  const Request& request = requests_.at(number);
  for (auto early = early_messages_.begin(); early != early_messages_.end(); ++early) {
    const bool fits = (request.peer == any_source || request.peer == early->message.source) &&
                      ((request.tag ^ early->message.tag) & ~request.ignore_bits) == 0;
    if (!fits) continue;
    const std::list<EarlyMessage> matched = [&] {
      std::list<EarlyMessage> message;
      message.splice(message.begin(), early_messages_, early);
      return message;
    }();
    return take_message(number, matched.front().message);
  }
  posted_receives_.push_back(number);
  return {};
}

Status Rails::take_message(uint64_t number, const Message& message) {
  Request& request = requests_.at(number);
  const uint64_t kept_bytes = std::min(message.bytes, request.bytes);
  if (request.peer == any_source) note_work(message.source);
  request.is_matched = true;
  request.peer = message.source;
  request.completion = {message.source, message.tag, kept_bytes, kept_bytes < message.bytes};
  SPL_TRY(count_taken(message.source));
  if (message.slot && options_.by_put) {
    const PiecesRef kept_pieces = request.pieces ? make_pieces(request.pieces->elements, 0, kept_bytes) : nullptr;
    return landings_->open(number,
                           {request.into, kept_pieces, kept_bytes, message.bytes, message.source, *message.slot});
  }
  if (message.slot) {
    Transfer transfer;
    transfer.into = request.into;
    transfer.pieces = request.pieces;
    transfer.bytes = kept_bytes;
    transfer.rank = message.source;
    transfer.match_bits = bits::match_bits_of(bits::KeyKind::exposed, *message.slot);
    transfer.notified_slot = *message.slot;
    return stripes_->start(number, transfer);
  }
  SPL_TRY(copy_into(request, message.data.data(), kept_bytes));
  finish_request(number);
  return {};
}

Status Rails::copy_into(const Request& request, const uint8_t* data, uint64_t bytes) {
  if (bytes == 0) return {};
  if (request.pieces) {
    scatter(*request.pieces, data, bytes);
  } else {
    std::memcpy(request.into, data, bytes);
  }
  portals::HostWork copy;
  copy.kind = portals::HostWork::Kind::copy;
  copy.bytes = bytes;
  return home_rail().interface().host_work(copy);
}

// Counts a message as taken. Reports half a window at a time to the sender, so that the sender need not wait for a word
// about each message.
Status Rails::count_taken(uint32_t rank) {
  Peer& peer = peers_[rank];
  ++peer.taken_messages;
  if (peer.taken_messages - peer.reported_messages < std::max(1u, options_.window / 2)) return {};
  return report_taken(rank);
}

Status Rails::report_taken(uint32_t rank) {
  const std::vector<Fragment> chosen = plan(1, 1, loads_of(rails_, rank));
  if (chosen.empty()) return {};
  peers_[rank].reported_messages = peers_[rank].taken_messages;
  return rails_[chosen.front().rail]->tell(rank, bits::match_bits_of(bits::KeyKind::taken, 0),
                                           peers_[rank].taken_messages, user::pointer(user::Kind::credit, rank));
}

Status Rails::on_transferred(uint64_t number, const Status& result) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return {};
  const std::optional<bits::Slot> slot = found->second.slot;
  if (result) {
    if (slot) SPL_TRY(slots_->on_moved(*slot));
    finish_request(number);
  } else {
    fail_request(number, result.error());
  }
  return {};
}

}  // namespace spinloom::rails
