#include "portals/rails/rails.hpp"

#include <algorithm>
#include <utility>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

Rails::Rails(RailsOptions options) : options_(std::move(options)), handlers_(words_max) {}
Rails::~Rails() = default;

Result<std::unique_ptr<Rails>> Rails::open(const std::vector<portals::Interface*>& nics, RailsOptions options) {
  constexpr uint64_t eager_most = 1 << 20;
  constexpr uint32_t window_most = 1 << 12;
  if (nics.empty() || nics.size() > rails_max) {
    return fail(Code::invalid, nics.size(), " rails: there may be 1 to ", rails_max);
  }
  if (options.home >= nics.size()) {
    return fail(Code::invalid, "the home rail is ", options.home, ", the last one ", nics.size() - 1);
  }
  if (options.eager_bytes > eager_most || options.window < 2 || options.window > window_most ||
      options.fragment_bytes == 0) {
    return fail(Code::invalid, "eager_bytes is ", options.eager_bytes, " (at most ", eager_most, "), window ",
                options.window, " (2 to ", window_most, "), fragment_bytes ", options.fragment_bytes, " (at least 1)");
  }
  options.facts.resize(nics.size());
  std::unique_ptr<Rails> made(new Rails(std::move(options)));
  SPL_TRY(made->set_up(nics));
  return made;
}

Status Rails::set_up(const std::vector<portals::Interface*>& nics) {
  for (size_t rail = 0; rail < nics.size(); ++rail) {
    SPL_ASSIGN(auto made, Rail::open(*nics[rail], {.facts = options_.facts[rail],
                                                   .portals = options_.portals,
                                                   .ranks = options_.ranks,
                                                   .call = options_.call}));
    rails_.push_back(std::move(made));
  }
  stripes_ = std::make_unique<Stripes>(
      rails_, Stripes::Options{options_.stripe_bytes, options_.fragment_bytes, options_.offloaded},
      [this](uint64_t number, const Status& ended) { return transferred(number, ended); });
  slots_ = std::make_unique<Slots>(rails_, options_.by_put);
  landings_ = std::make_unique<Landings>(
      rails_, options_.offloaded, [this](uint64_t number, const Status& ended) { return transferred(number, ended); });
  const uint64_t early_most = uint64_t{options_.ranks} * options_.window;
  if (options_.mode == Mode::tag) {
    early_blocks_ = std::make_unique<InboxBlocks>(
        home(), InboxBlocks::Options{.portal = options_.portals.tags,
                                     .longest = std::max<uint64_t>(options_.eager_bytes, 64),
                                     .messages = early_most,
                                     .keep_headers = true,
                                     .user_ptr = user::pointer(user::Kind::tag_block, 0)});
    SPL_TRY(early_blocks_->prepare());
  }
  if (options_.mode == Mode::word || options_.words) {
    channel_ = std::make_unique<AmChannel>(
        rails_, AmChannel::Options{options_.eager_bytes, early_most, options_.ranks},
        [this](uint32_t source, const AmChannel::Header& header, std::span<const uint8_t> bytes) {
          return on_word(source, header, bytes);
        },
        [this](uint32_t rank) { std::ignore = lose_peer(rank); },
        [this](uint64_t number, const Status& ended) { return word_came(number, ended); });
    SPL_TRY(channel_->open());
  }
  peers_.resize(options_.ranks);
  for (uint32_t peer = 0; peer < options_.ranks; ++peer) SPL_TRY(listen_to(peer));
  return {};
}

// Appends the entries for the peer's words about this rank's slots and about the messages that the peer has taken.
Status Rails::listen_to(uint32_t peer) {
  for (const auto& rail : rails_) {
    rail->spend();
    SPL_ASSIGN(const nic::CounterId losses, rail->interface().ct_alloc());
    peers_[peer].losses.push_back(losses);
    peers_[peer].returns.push_back(0);
    peers_[peer].failures.push_back(0);
    nic::Entry entry;
    entry.match_rank = {peer};
    entry.match_bits = bits::key(bits::Key::finished, 0);
    entry.ignore_bits = bits::finished_or_taken | bits::number_bits;
    entry.counter = losses;
    entry.user_ptr = user::pointer(user::Kind::entry, peer);
    entry.options.ct_peer_lost = true;
    entry.options.ct_peer_back = true;
    rail->spend();
    SPL_ASSIGN(const nic::EntryId linked, rail->interface().me_append(rail->portals().keys, entry));
    peers_[peer].entries.push_back(linked);
  }
  return {};
}

Status Rails::forget(uint32_t peer) {
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (!peers_[peer].entries[rail].exists()) continue;  // an earlier try has unlinked it
    SPL_ASSIGN(const portals::Unlinked unlinked, unlink(rail, peers_[peer].entries[rail]));
    if (unlinked == portals::Unlinked::in_use) return fail(Code::stalled, "a word of rank ", peer, " is on its way");
    SPL_TRY(rails_[rail]->interface().ct_free(peers_[peer].losses[rail]));
  }
  peers_[peer].entries.clear();
  return {};
}

Status Rails::close() {
  const auto open = std::count_if(requests_.begin(), requests_.end(), [](const auto& one) { return !one.second.done; });
  if (open > 0) return fail(Code::invalid, open, " requests are under way; wait for them first");
  SPL_TRY(flush());
  SPL_TRY(slots_->close());
  while (!keys_.empty()) SPL_TRY(withdraw({keys_.begin()->first}));
  for (uint32_t peer = 0; peer < options_.ranks; ++peer) {
    if (!peers_[peer].entries.empty()) SPL_TRY(forget(peer));
  }
  if (early_blocks_) SPL_TRY(early_blocks_->withdraw());
  if (channel_) SPL_TRY(channel_->close());
  for (const auto& rail : rails_) SPL_TRY(rail->close());
  return {};
}

Status Rails::flush() {
  const auto holds = [](const Peer& peer) { return !peer.held.empty(); };
  while ((channel_ && !channel_->is_idle()) || std::any_of(peers_.begin(), peers_.end(), holds)) {
    SPL_ASSIGN(const bool moved, progress());
    if (!moved) SPL_TRY(pause());
  }
  return {};
}

Status Rails::check(const char* call, uint32_t rank) const {
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
  ++peers_[peer].open;
  if (!std::exchange(peers_[peer].with_work, true)) with_work_.push_back(peer);
}

void Rails::end(Request& request) {
  if (std::exchange(request.done, true) || request.peer == any_source) return;
  --peers_[request.peer].open;
}

void Rails::forget_request(uint64_t number) {
  const auto found = requests_.find(number);
  end(found->second);
  requests_.erase(found);
}

void Rails::fail_request(uint64_t number, const Error& error) {
  Request& request = requests_.at(number);
  if (request.slot && !options_.by_put) slots_->give_up(*request.slot);
  if (request.slot && options_.by_put) std::ignore = slots_->moved(*request.slot);
  request.trouble = error;
  end(request);
}

Result<std::optional<Completion>> Rails::result_of(RequestId id) {
  const auto found = requests_.find(id.value);
  if (found == requests_.end()) return fail(Code::invalid, "request ", id.value, " does not exist or is complete");
  if (!found->second.done) return std::optional<Completion>();
  const Request request = std::move(found->second);
  requests_.erase(found);
  if (request.trouble) return *request.trouble;
  return std::optional(request.completion);
}

Result<std::optional<Completion>> Rails::test(RequestId id) {
  SPL_ASSIGN(const std::optional<Completion> completion, result_of(id));
  if (completion) return completion;
  SPL_TRY(progress());
  return result_of(id);
}

Result<Completion> Rails::wait(RequestId id) {
  for (;;) {
    SPL_ASSIGN(const std::optional<Completion> completion, result_of(id));
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
  SPL_TRY(landings_->try_again());
  if (!moved) {
    SPL_TRY(look_for_losses());
    looked_in_vain_ = home().interface().port().now();
  }
  return moved;
}

Status Rails::pause() {
  SPL_TRY(options_.pause());
  looked_in_vain_ = home().interface().port().now();
  return {};
}

// True if this process looked in vain a moment ago: then an event that it finds now has only just come.
bool Rails::sees_at_once() {
  constexpr Time moment{5'000'000};  // 5 us
  return home().interface().port().now() - looked_in_vain_ <= moment;
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
      return tell_taken(static_cast<uint32_t>(user::number_of(event.user_ptr)));
    default: return {};
  }
}

// Looks at all peers with open requests, and at one of the other peers in each call, in turn.
Status Rails::look_for_losses() {
  for (size_t at = 0; at < with_work_.size();) {
    const uint32_t peer = with_work_[at];
    if (peers_[peer].open > 0) {
      SPL_TRY(look_at(peer));
      ++at;
      continue;
    }
    peers_[peer].with_work = false;
    with_work_[at] = with_work_.back();
    with_work_.pop_back();
  }
  looked_at_ = (looked_at_ + 1) % options_.ranks;
  return look_at(looked_at_);
}

// Entries count the loss of their peer as a failure, its return as a success. That a rail has lost the peer may have
// been told by an event before, so only another return means that it is there again.
Status Rails::look_at(uint32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.lost) return {};
  bool reached = false;
  for (size_t at = 0; at < rails_.size(); ++at) {
    Rail& rail = *rails_[at];
    const nic::CounterValue told = rail.interface().ct_get(peer.losses[at]);
    const bool returned = std::exchange(peer.returns[at], told.success) != told.success;
    if (told.failure > told.success) {
      rail.lose(rank);
    } else if (returned) {
      rail.regain(rank);
    }
    if (std::exchange(peer.failures[at], told.failure) != told.failure) {
      SPL_TRY(slots_->lost(rank));
      SPL_TRY(stripes_->lost(rank, static_cast<uint32_t>(at)));
    }
    reached = reached || rail.reaches(rank);
  }
  const bool homeless = options_.mode == Mode::tag && !home().reaches(rank);
  return reached && !homeless ? Status{} : lose_peer(rank);
}

// Ends the requests that wait for words or messages of the peer. Transfers that are under way end by themselves.
Status Rails::lose_peer(uint32_t peer) {
  if (std::exchange(peers_[peer].lost, true)) return {};
  peers_[peer].held.clear();
  const Error error =
      fail(Code::fault, "rank ", peer,
           " is lost: ", options_.mode == Mode::tag ? "its home rail does not reach it" : "no rail reaches it");
  SPL_TRY(landings_->give_up(peer, error));
  std::vector<uint64_t> ended;
  for (const auto& [number, request] : requests_) {
    const bool waits = request.does != Does::transfer && !request.matched;
    if (waits && request.peer == peer && !request.done) ended.push_back(number);
  }
  for (const uint64_t number : ended) {
    const Request& request = requests_.at(number);
    if (request.does == Does::receive) {
      SPL_TRY(end_receive(number, error));
      continue;
    }
    if (request.does == Does::word && request.begun) continue;  // the NIC may be reading it; the channel tells
    if (request.does == Does::word && !request.pieces) {
      forget_request(number);
    } else if (stripes_->runs(number)) {
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
    posted_.remove(number);
  } else {
    home().spend();
    const auto unlinked = home().interface().me_unlink(requests_.at(number).entry);
    if (!unlinked || *unlinked == portals::Unlinked::in_use) return {};
  }
  fail_request(number, error);
  return {};
}

}  // namespace spinloom::rails
