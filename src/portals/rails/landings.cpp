#include "portals/rails/landings.hpp"

#include <algorithm>
#include <utility>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

// Posts the entries on all NICs before it waits for their answers.
Status Landings::open(uint64_t number, const Receive& receive) {
  Landing& landing = landings_[number];
  landing.receive = receive;
  landing.closed.resize(rails_.size());
  nic::Entry entry;
  entry.start = receive.memory;
  if (receive.pieces) entry.iovec = receive.pieces->elements;
  entry.length = receive.memory_bytes;
  entry.match_rank = {receive.sender};
  entry.match_bits = bits::match_bits_of(bits::KeyKind::landing, receive.sender_slot);
  entry.user_ptr = user::pointer(user::Kind::landing, number);
  entry.options.op_get = false;
  for (const auto& rail : rails_) {
    rail->spend_call_time();
    rail->interface().bundle_begin();
    SPL_ASSIGN(const nic::EntryId entry_id, rail->interface().me_post(rail->portals().keys, entry));
    landing.entries.push_back(entry_id);
  }
  for (const auto& rail : rails_) SPL_TRY(rail->interface().bundle_end());
  if (!offloaded_) return clear_to_send_over_best(number, receive);
  uint64_t rails_mask = 0;
  for (size_t rail = 0; rail < rails_.size(); ++rail)
    rails_mask |= uint64_t{rails_[rail]->reaches(receive.sender)} << rail;
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((rails_mask >> rail & 1) != 0) SPL_TRY(clear_to_send(number, receive, rail, rails_mask));
  }
  return {};
}

Status Landings::clear_to_send_over_best(uint64_t number, const Receive& receive) {
  const std::vector<Fragment> chosen = plan(1, 1, loads_of(rails_, receive.sender));
  if (chosen.empty()) return {};  // the sender is lost: Rails::look_for_losses() ends the landing
  return clear_to_send(number, receive, chosen.front().rail, uint64_t{1} << chosen.front().rail);
}

Status Landings::clear_to_send(uint64_t number, const Receive& receive, uint32_t rail_number, uint64_t rails_mask) {
  return rails_[rail_number]->tell(receive.sender, bits::match_bits_of(bits::KeyKind::clear, receive.sender_slot),
                                   rails_mask, user::pointer(user::Kind::clear, number));
}

bool Landings::is_own(const nic::Event& event) {
  const user::Kind kind = user::kind_of(event.user_ptr);
  return kind == user::Kind::landing || kind == user::Kind::clear;
}

// Takes the fragments, and the failures of words. If the sender's NICs wait for a word over each rail, nothing is said
// again over another rail: the sender, too, finds that the rail is lost, and moves the fragments that waited for it.
Status Landings::on_event(uint32_t rail_number, const nic::Event& event) {
  const uint64_t number = user::number_of(event.user_ptr);
  const auto found = landings_.find(number);
  if (found == landings_.end()) return {};
  Landing& landing = found->second;
  if (user::kind_of(event.user_ptr) == user::Kind::clear) {
    if (event.fail != nic::Fail::undeliverable) return {};
    rails_[rail_number]->lose(landing.receive.sender);
    return offloaded_ ? Status{} : clear_to_send_over_best(number, landing.receive);
  }
  if (event.kind != nic::EventKind::put || event.fail != nic::Fail::ok) return {};
  if (!landing.received_offsets.insert(event.remote_offset).second) return {};
  landing.received_bytes += event.requested_bytes;
  if (landing.received_bytes < landing.receive.message_bytes || std::exchange(landing.is_ending, true)) return {};
  return close(number);
}

Status Landings::give_up(uint32_t rank, const Error& error) {
  std::vector<uint64_t> numbers;
  for (auto& [number, landing] : landings_) {
    if (landing.receive.sender != rank || std::exchange(landing.is_ending, true)) continue;
    landing.result = error;
    numbers.push_back(number);
  }
  for (const uint64_t number : numbers) SPL_TRY(close(number));
  return {};
}

Status Landings::close(uint64_t number) {
  Landing& landing = landings_.at(number);
  bool all_closed = true;
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (landing.closed[rail]) continue;
    rails_[rail]->spend_call_time();
    SPL_ASSIGN(const portals::Unlinked unlinked, rails_[rail]->interface().me_unlink(landing.entries[rail]));
    landing.closed[rail] = unlinked == portals::Unlinked::done;
    all_closed = all_closed && landing.closed[rail];
  }
  if (!all_closed) {
    pending_closes_.push_back(number);
    return {};
  }
  const Status result = landing.result;
  landings_.erase(number);
  return done_(number, result);
}

Status Landings::close_pending() {
  for (const uint64_t number : std::exchange(pending_closes_, {})) SPL_TRY(close(number));
  return {};
}

}  // namespace spinloom::rails
