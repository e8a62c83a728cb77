#include "portals/rails/rails.hpp"

#include <algorithm>
#include <utility>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

Rails::Rails(RailsOptions options) : options_(std::move(options)), handlers_(words_max) {}
Rails::~Rails() = default;

Result<std::unique_ptr<Rails>> Rails::open(const std::vector<portals::Interface*>& nics, RailsOptions options) {
  constexpr uint64_t eager_max = 1 << 20;
  constexpr uint32_t window_max = 1 << 12;
  if (nics.empty() || nics.size() > rails_max) {
    return fail(Code::invalid, nics.size(), " rails: there may be 1 to ", rails_max);
  }
  if (options.home >= nics.size()) {
    return fail(Code::invalid, "the home rail is ", options.home, ", the last one ", nics.size() - 1);
  }
  if (options.eager_bytes > eager_max || options.window < 2 || options.window > window_max ||
      options.fragment_bytes == 0) {
    return fail(Code::invalid, "eager_bytes is ", options.eager_bytes, " (at most ", eager_max, "), window ",
                options.window, " (2 to ", window_max, "), fragment_bytes ", options.fragment_bytes, " (at least 1)");
  }
  options.facts.resize(nics.size());
  std::unique_ptr<Rails> rails(new Rails(std::move(options)));
  SPL_TRY(rails->set_up(nics));
  return rails;
}

Status Rails::set_up(const std::vector<portals::Interface*>& nics) {
  for (size_t rail = 0; rail < nics.size(); ++rail) {
    SPL_ASSIGN(auto opened, Rail::open(*nics[rail], {.facts = options_.facts[rail],
                                                     .portals = options_.portals,
                                                     .ranks = options_.ranks,
                                                     .spend_call_time = options_.spend_call_time}));
    rails_.push_back(std::move(opened));
  }
  stripes_ = std::make_unique<Stripes>(
      rails_, Stripes::Options{options_.stripe_bytes, options_.fragment_bytes, options_.offloaded},
      [this](uint64_t number, const Status& result) { return on_transferred(number, result); });
  slots_ = std::make_unique<Slots>(rails_, options_.by_put);
  landings_ = std::make_unique<Landings>(rails_, options_.offloaded, [this](uint64_t number, const Status& result) {
    return on_transferred(number, result);
  });
  const uint64_t early_messages_max = uint64_t{options_.ranks} * options_.window;
  if (options_.mode == Mode::tag) {
    early_blocks_ = std::make_unique<InboxBlocks>(
        home_rail(), InboxBlocks::Options{.portal = options_.portals.tags,
                                          .message_bytes_max = std::max<uint64_t>(options_.eager_bytes, 64),
                                          .messages_max = early_messages_max,
                                          .keep_headers = true,
                                          .user_ptr = user::pointer(user::Kind::tag_block, 0)});
    SPL_TRY(early_blocks_->prepare());
  }
  if (options_.mode == Mode::word || options_.words) {
    channel_ = std::make_unique<AmChannel>(
        rails_, AmChannel::Options{options_.eager_bytes, early_messages_max, options_.ranks},
        [this](uint32_t source, const AmChannel::Header& header, std::span<const uint8_t> bytes) {
          return on_word(source, header, bytes);
        },
        [this](uint32_t rank) { std::ignore = lose_peer(rank); },
        [this](uint64_t number, const Status& result) { return on_word_arrived(number, result); });
    SPL_TRY(channel_->open());
  }
  peers_.resize(options_.ranks);
  for (uint32_t peer = 0; peer < options_.ranks; ++peer) SPL_TRY(listen_to(peer));
  return {};
}

// Appends the entries for the peer's words about this rank's slots and about the messages that the peer has taken.
Status Rails::listen_to(uint32_t peer) {
  for (const auto& rail : rails_) {
    rail->spend_call_time();
    SPL_ASSIGN(const nic::CounterId losses, rail->interface().ct_alloc());
    peers_[peer].loss_counters.push_back(losses);
    peers_[peer].returns_seen.push_back(0);
    peers_[peer].losses_seen.push_back(0);
    nic::Entry entry;
    entry.match_rank = {peer};
    entry.match_bits = bits::match_bits_of(bits::KeyKind::finished, 0);
    entry.ignore_bits = bits::finished_or_taken | bits::number_mask;
    entry.counter = losses;
    entry.user_ptr = user::pointer(user::Kind::entry, peer);
    entry.options.ct_peer_lost = true;
    entry.options.ct_peer_back = true;
    rail->spend_call_time();
    SPL_ASSIGN(const nic::EntryId entry_id, rail->interface().me_append(rail->portals().keys, entry));
    peers_[peer].entries.push_back(entry_id);
  }
  return {};
}

Status Rails::stop_listening_to(uint32_t peer) {
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (!peers_[peer].entries[rail].exists()) continue;  // an earlier try has unlinked it
    SPL_ASSIGN(const portals::Unlinked unlinked, unlink(rail, peers_[peer].entries[rail]));
    if (unlinked == portals::Unlinked::in_use) return fail(Code::stalled, "a word of rank ", peer, " is on its way");
    SPL_TRY(rails_[rail]->interface().ct_free(peers_[peer].loss_counters[rail]));
  }
  peers_[peer].entries.clear();
  return {};
}

Status Rails::close() {
  const auto open_requests =
      std::count_if(requests_.begin(), requests_.end(), [](const auto& entry) { return !entry.second.is_done; });
  if (open_requests > 0) return fail(Code::invalid, open_requests, " requests are under way; wait for them first");
  SPL_TRY(flush());
  SPL_TRY(slots_->close());
  while (!exposed_by_key_.empty()) SPL_TRY(withdraw({exposed_by_key_.begin()->first}));
  for (uint32_t peer = 0; peer < options_.ranks; ++peer) {
    if (!peers_[peer].entries.empty()) SPL_TRY(stop_listening_to(peer));
  }
  if (early_blocks_) SPL_TRY(early_blocks_->withdraw());
  if (channel_) SPL_TRY(channel_->close());
  for (const auto& rail : rails_) SPL_TRY(rail->close());
  return {};
}

Status Rails::flush() {
  const auto holds = [](const Peer& peer) { return !peer.held_requests.empty(); };
  while ((channel_ && !channel_->is_idle()) || std::any_of(peers_.begin(), peers_.end(), holds)) {
    SPL_ASSIGN(const bool moved, progress());
    if (!moved) SPL_TRY(pause());
  }
  return {};
}

Status Rails::check_rank(const char* call, uint32_t rank) const {
  if (rank < options_.ranks) return {};
  return fail(Code::invalid, call, ": rank ", rank, " is not one of the ", options_.ranks);
}

RequestId Rails::add(Request request) {
  const uint64_t number = next_request_++;
  if (request.peer != any_source) note_work(request.peer);
  requests_.emplace(number, std::move(request));
  return {number};
}

void Rails::note_work(uint32_t peer) {
  ++peers_[peer].open_requests;
  if (!std::exchange(peers_[peer].has_work, true)) peers_with_work_.push_back(peer);
}

void Rails::end_request(Request& request) {
  if (std::exchange(request.is_done, true) || request.peer == any_source) return;
  --peers_[request.peer].open_requests;
}

void Rails::forget_request(uint64_t number) {
  const auto found = requests_.find(number);
  end_request(found->second);
  requests_.erase(found);
}

void Rails::fail_request(uint64_t number, const Error& error) {
  Request& request = requests_.at(number);
  if (request.slot && !options_.by_put) slots_->give_up(*request.slot);
  if (request.slot && options_.by_put) std::ignore = slots_->on_moved(*request.slot);
  request.error = error;
  end_request(request);
}

Result<std::optional<Completion>> Rails::result_of(RequestId request_id) {
  const auto found = requests_.find(request_id.value);
  if (found == requests_.end())
    return fail(Code::invalid, "request ", request_id.value, " does not exist or is complete");
  if (!found->second.is_done) return std::optional<Completion>();
  const Request request = std::move(found->second);
  requests_.erase(found);
  if (request.error) return *request.error;
  return std::optional(request.completion);
}

Result<std::optional<Completion>> Rails::test(RequestId request_id) {
  SPL_ASSIGN(const std::optional<Completion> completion, result_of(request_id));
  if (completion) return completion;
  SPL_TRY(progress());
  return result_of(request_id);
}

Result<Completion> Rails::wait(RequestId request_id) {
  for (;;) {
    SPL_ASSIGN(const std::optional<Completion> completion, result_of(request_id));
    if (completion) return *completion;
    SPL_ASSIGN(const bool moved, progress());
    if (!moved) SPL_TRY(pause());
  }
}

Result<bool> Rails::progress() {
  bool moved = false;
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    while (const std::optional<nic::Event> event = rails_[rail]->take_event()) {
      moved = true;
      SPL_TRY(on_event(rail, *event));
    }
  }
  SPL_TRY(landings_->close_pending());
  if (!moved) {
    SPL_TRY(look_for_losses());
    last_empty_look_ = home_rail().interface().port().now();
  }
  return moved;
}

Status Rails::pause() {
  SPL_TRY(options_.pause());
  last_empty_look_ = home_rail().interface().port().now();
  return {};
}

// True if this process looked in vain a moment ago: then an event that it finds now has only just come.
bool Rails::sees_at_once() {
  constexpr Time moment{5'000'000};  // 5 us
  return home_rail().interface().port().now() - last_empty_look_ <= moment;
}

Status Rails::on_event(uint32_t rail, const nic::Event& event) {
  if (event.after_gap) return fail(Code::exhausted, "rail ", rail, ": events have been lost");
  if (channel_ && channel_->is_own(event)) return channel_->on_event(rail, event, sees_at_once());
  if (Landings::is_own(event)) return landings_->on_event(rail, event);
  if (Stripes::is_own(event)) return stripes_->on_event(rail, event, sees_at_once());
  switch (user::kind_of(event.user_ptr)) {
    case user::Kind::receive: return on_receive(event);
    case user::Kind::send: return on_sent(rail, event);
    case user::Kind::entry: return on_entry(event);
    case user::Kind::cleared: return on_cleared(rail, event);
    case user::Kind::tag_block: return early_blocks_->on_event(event, user::number_of(event.user_ptr));
    case user::Kind::credit:
      if (event.fail == nic::Fail::ok) return {};
      rails_[rail]->lose(static_cast<uint32_t>(user::number_of(event.user_ptr)));
      return report_taken(static_cast<uint32_t>(user::number_of(event.user_ptr)));
    default: return {};
  }
}

// Looks at all peers with open requests, and at one of the other peers in each call, in turn.
Status Rails::look_for_losses() {
  for (size_t at = 0; at < peers_with_work_.size();) {
    const uint32_t peer = peers_with_work_[at];
    if (peers_[peer].open_requests > 0) {
      SPL_TRY(look_for_loss_of(peer));
      ++at;
      continue;
    }
    peers_[peer].has_work = false;
    peers_with_work_[at] = peers_with_work_.back();
    peers_with_work_.pop_back();
  }
  last_looked_at_ = (last_looked_at_ + 1) % options_.ranks;
  return look_for_loss_of(last_looked_at_);
}

// Entries count the loss of their peer as a failure, its return as a success. That a rail has lost the peer may have
// been told by an event before, so only another return means that it is there again.
Status Rails::look_for_loss_of(uint32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.is_lost) return {};
  bool is_reached = false;
  for (size_t rail_number = 0; rail_number < rails_.size(); ++rail_number) {
    Rail& rail = *rails_[rail_number];
    const nic::CounterValue counted = rail.interface().ct_get(peer.loss_counters[rail_number]);
    const bool has_returned = std::exchange(peer.returns_seen[rail_number], counted.success) != counted.success;
    if (counted.failure > counted.success) {
      rail.lose(rank);
    } else if (has_returned) {
      rail.regain(rank);
    }
    if (std::exchange(peer.losses_seen[rail_number], counted.failure) != counted.failure) {
      SPL_TRY(slots_->on_lost(rank));
      SPL_TRY(stripes_->on_lost(rank, static_cast<uint32_t>(rail_number)));
    }
    is_reached = is_reached || rail.reaches(rank);
  }
  const bool has_lost_home = options_.mode == Mode::tag && !home_rail().reaches(rank);
  return is_reached && !has_lost_home ? Status{} : lose_peer(rank);
}

// Ends the requests that wait for words or messages of the peer. Transfers that are under way end by themselves.
Status Rails::lose_peer(uint32_t peer) {
  if (std::exchange(peers_[peer].is_lost, true)) return {};
  peers_[peer].held_requests.clear();
  const Error error =
      fail(Code::fault, "rank ", peer,
           " is lost: ", options_.mode == Mode::tag ? "its home rail does not reach it" : "no rail reaches it");
  SPL_TRY(landings_->give_up(peer, error));
  std::vector<uint64_t> waiting;
  for (const auto& [number, request] : requests_) {
    const bool is_waiting = request.kind != RequestKind::transfer && !request.is_matched;
    if (is_waiting && request.peer == peer && !request.is_done) waiting.push_back(number);
  }
  for (const uint64_t number : waiting) {
    const Request& request = requests_.at(number);
    if (request.kind == RequestKind::receive) {
      SPL_TRY(end_receive(number, error));
      continue;
    }
    if (request.kind == RequestKind::word && request.is_begun)
      continue;  // the NIC may be reading it; the channel tells
    if (request.kind == RequestKind::word && !request.pieces) {
      forget_request(number);
    } else if (stripes_->is_running(number)) {
      SPL_TRY(stripes_->give_up(number, error));
    } else {
      fail_request(number, error);
    }
  }
  return {};
}

// Ends a receive with an Error. If a message has found the receive's entry, nothing is done: the message's event ends
// it.
Status Rails::end_receive(uint64_t number, const Error& error) {
  if (options_.mode == Mode::word) {
    posted_receives_.remove(number);
  } else {
    home_rail().spend_call_time();
    const auto unlinked = home_rail().interface().me_unlink(requests_.at(number).entry);
    if (!unlinked || *unlinked == portals::Unlinked::in_use) return {};
  }
  fail_request(number, error);
  return {};
}

}  // namespace spinloom::rails
