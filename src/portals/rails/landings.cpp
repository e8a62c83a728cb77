#include "portals/rails/landings.hpp"

#include <algorithm>
#include <utility>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

// Posts the entries on all NICs before it waits for their answers.
Status Landings::open(uint64_t number, const Place& place) {
  Landing& landing = landings_[number];
  landing.place = place;
  landing.closed.resize(rails_.size());
  nic::Entry entry;
  entry.start = place.into;
  if (place.pieces) entry.iovec = place.pieces->elements;
  entry.length = place.bytes;
  entry.match_rank = {place.rank};
  entry.match_bits = bits::key(bits::Key::landing, place.slot);
  entry.user_ptr = user::pointer(user::Kind::landing, number);
  entry.options.op_get = false;
  for (const auto& rail : rails_) {
    rail->spend();
    rail->interface().bundle_begin();
    SPL_ASSIGN(const nic::EntryId made, rail->interface().me_post(rail->portals().keys, entry));
    landing.entries.push_back(made);
  }
  for (const auto& rail : rails_) SPL_TRY(rail->interface().bundle_end());
  if (!offloaded_) return clear_to_send_over_one(number, place);
  uint64_t rails_mask = 0;
  for (size_t rail = 0; rail < rails_.size(); ++rail) rails_mask |= uint64_t{rails_[rail]->reaches(place.rank)} << rail;
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((rails_mask >> rail & 1) != 0) SPL_TRY(clear_to_send(number, place, rail, rails_mask));
  }
  return {};
}

Status Landings::clear_to_send_over_one(uint64_t number, const Place& place) {
  const std::vector<Fragment> chosen = plan(1, 1, loads_of(rails_, place.rank));
  if (chosen.empty()) return {};  // the sender is lost: Rails::look_for_losses() ends the landing
  return clear_to_send(number, place, chosen.front().rail, uint64_t{1} << chosen.front().rail);
}

Status Landings::clear_to_send(uint64_t number, const Place& place, uint32_t at, uint64_t rails_mask) {
  return rails_[at]->tell(place.rank, bits::key(bits::Key::clear, place.slot), rails_mask,
                          user::pointer(user::Kind::clear, number));
}

bool Landings::is_own(const nic::Event& event) {
  const user::Kind kind = user::kind_of(event.user_ptr);
  return kind == user::Kind::landing || kind == user::Kind::clear;
}

// Takes the fragments, and the failures of words. If the sender's NICs wait for a word over each rail, nothing is said
// again over another rail: the sender, too, finds that the rail is lost, and moves the fragments that waited for it.
Status Landings::on_event(uint32_t rail, const nic::Event& event) {
  const uint64_t number = user::number_of(event.user_ptr);
  const auto found = landings_.find(number);
  if (found == landings_.end()) return {};
  Landing& landing = found->second;
  if (user::kind_of(event.user_ptr) == user::Kind::clear) {
    if (event.fail != nic::Fail::undeliverable) return {};
    rails_[rail]->lose(landing.place.rank);
    return offloaded_ ? Status{} : clear_to_send_over_one(number, landing.place);
  }
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  if (!landing.fragments.insert(event.remote_offset).second) return {};
  landing.received_bytes += event.requested_bytes;
  if (landing.received_bytes < landing.place.message_bytes || std::exchange(landing.ends, true)) return {};
  return close(number);
}

Status Landings::give_up(uint32_t rank, const Error& error) {
  std::vector<uint64_t> numbers;
  for (auto& [number, landing] : landings_) {
    if (landing.place.rank != rank || std::exchange(landing.ends, true)) continue;
    landing.ended = error;
    numbers.push_back(number);
  }
  for (const uint64_t number : numbers) SPL_TRY(close(number));
  return {};
}

Status Landings::close(uint64_t number) {
  Landing& landing = landings_.at(number);
  bool closed = true;
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (landing.closed[rail]) continue;
    rails_[rail]->spend();
    SPL_ASSIGN(const portals::Unlinked unlinked, rails_[rail]->interface().me_unlink(landing.entries[rail]));
    landing.closed[rail] = unlinked == portals::Unlinked::done;
    closed = closed && landing.closed[rail];
  }
  if (!closed) {
    closing_.push_back(number);
    return {};
  }
  const Status ended = landing.ended;
  landings_.erase(number);
  return done_(number, ended);
}

Status Landings::try_again() {
  for (const uint64_t number : std::exchange(closing_, {})) SPL_TRY(close(number));
  return {};
}

}  // namespace spinloom::rails
