#include "portals/rails/slots.hpp"

#include <algorithm>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

std::optional<uint32_t> Slots::find_idle(const Message& message) const {
  if (by_put_) return idle_.empty() ? std::nullopt : std::optional(idle_.front());
  for (const uint32_t number : idle_) {
    const Held& slot = slots_[number];
    if (!message.pieces && !slot.pieces && slot.data == message.data && slot.bytes == message.bytes) return number;
  }
  return std::nullopt;
}

Result<bits::Slot> Slots::take(const Message& message) {
  uint32_t number = 0;
  if (const auto found = find_idle(message)) {
    number = *found;
    idle_.erase(std::find(idle_.begin(), idle_.end(), number));
  } else {
    SPL_ASSIGN(number, make_room());
    slots_[number].data = message.data;
    slots_[number].pieces = message.pieces;
    slots_[number].bytes = message.bytes;
    SPL_TRY(by_put_ ? listen(number) : expose(number));
  }
  Held& slot = slots_[number];
  slot.generation = (slot.generation + 1) % bits::generation_count;
  slot.request = message.request;
  slot.rank = message.rank;
  slot.parts_ended = 0;
  slot.words_wanted = slot.words_come = 0;
  slot.moved = slot.touched = false;
  slot.in_use = true;
  return bits::Slot{number, slot.generation};
}

// Returns a new slot, or the one that has been idle for the longest time.
Result<uint32_t> Slots::make_room() {
  if (idle_.size() < idle_most && slots_.size() < bits::slot_count) {
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  if (idle_.empty()) {
    return fail(Code::exhausted, bits::slot_count, " long messages are under way; more must wait for one of them");
  }
  const uint32_t number = idle_.front();
  SPL_TRY(hide(number));
  idle_.pop_front();
  return number;
}

// Posts the entries on all NICs before it waits for their answers.
Status Slots::expose(uint32_t number) {
  ++exposures_;
  Held& slot = slots_[number];
  slot.entries.clear();
  nic::Entry entry;
  entry.start = const_cast<uint8_t*>(slot.data);  // read only: op_put is off
  if (slot.pieces) entry.iovec = slot.pieces->elements;
  entry.length = slot.bytes;
  entry.match_bits = bits::key(bits::Key::exposed, number);
  entry.ignore_bits = bits::generation_bits;
  entry.options.op_put = false;
  entry.options.op_get = true;
  entry.options.event_comm_disable = true;
  for (const auto& rail : rails_) {
    rail->spend();
    rail->interface().bundle_begin();
    SPL_ASSIGN(const nic::EntryId made, rail->interface().me_post(rail->portals().keys, entry));
    slot.entries.push_back(made);
  }
  for (const auto& rail : rails_) SPL_TRY(rail->interface().bundle_end());
  return {};
}

Status Slots::listen(uint32_t number) {
  ++exposures_;
  Held& slot = slots_[number];
  slot.words.assign(rails_.size(), 0);
  nic::Entry entry;
  entry.match_bits = bits::key(bits::Key::clear, number);
  entry.ignore_bits = bits::generation_bits;
  entry.user_ptr = user::pointer(user::Kind::cleared, number);
  entry.options.op_get = false;
  entry.options.ct_comm = true;
  for (const auto& rail : rails_) {
    rail->spend();
    SPL_ASSIGN(entry.counter, rail->interface().ct_alloc());
    slot.counters.push_back(entry.counter);
    rail->spend();
    SPL_ASSIGN(const nic::EntryId made, rail->interface().me_append(rail->portals().keys, entry));
    slot.entries.push_back(made);
  }
  return {};
}

Status Slots::hide(uint32_t number) {
  Held& slot = slots_[number];
  for (size_t rail = 0; rail < slot.entries.size(); ++rail) {
    portals::Unlinked unlinked = portals::Unlinked::in_use;
    while (unlinked == portals::Unlinked::in_use) {  // a read that was given up may still be under way
      rails_[rail]->spend();
      SPL_ASSIGN(unlinked, rails_[rail]->interface().me_unlink(slot.entries[rail]));
      if (unlinked == portals::Unlinked::in_use) SPL_TRY(rails_[rail]->interface().port().wait());
    }
  }
  for (size_t rail = 0; rail < slot.counters.size(); ++rail) {
    SPL_TRY(rails_[rail]->interface().ct_free(slot.counters[rail]));
  }
  slot.entries.clear();
  slot.counters.clear();
  return {};
}

std::optional<uint64_t> Slots::ended(bits::Slot name, bits::Part part) {
  if (name.number >= slots_.size()) return std::nullopt;
  Held& slot = slots_[name.number];
  if (!slot.in_use || slot.generation != name.generation || part.number >= part.parts) return std::nullopt;
  slot.parts_ended |= 1u << part.number;
  if (slot.parts_ended != (1u << part.parts) - 1) return std::nullopt;
  rest(name.number);
  return slot.request;
}

void Slots::give_up(bits::Slot slot) {
  if (find(slot) != nullptr) rest(slot.number);
}

Slots::Held* Slots::find(bits::Slot name) {
  if (name.number >= slots_.size()) return nullptr;
  Held& slot = slots_[name.number];
  return slot.in_use && slot.generation == name.generation ? &slot : nullptr;
}

std::vector<nic::Trigger> Slots::clears_of(bits::Slot name) const {
  const Held& slot = slots_[name.number];
  std::vector<nic::Trigger> clears;
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    clears.push_back({.counter = slot.counters[rail], .threshold = slot.words[rail] + 1});
  }
  return clears;
}

std::optional<uint64_t> Slots::cleared(bits::Slot name, uint32_t rail, uint64_t over) {
  if (name.number >= slots_.size()) return std::nullopt;
  Held& slot = slots_[name.number];
  if (rail < slot.words.size()) ++slot.words[rail];
  if (!slot.in_use || slot.generation != name.generation) return std::nullopt;
  slot.words_wanted = over;
  slot.words_come |= uint64_t{1} << rail;
  const uint64_t request = slot.request;
  if (slot.moved && slot.words_come == slot.words_wanted) rest(name.number);
  return request;
}

Status Slots::moved(bits::Slot name) {
  Held* const slot = find(name);
  if (slot == nullptr) return {};
  slot->moved = true;
  const bool all_words = slot->words_wanted != 0 && slot->words_come == slot->words_wanted;
  if (all_words) rest(name.number);
  if (all_words || !slot->touched) return {};
  slot->in_use = false;
  return hide(name.number);
}

Status Slots::lost(uint32_t rank) {
  for (uint32_t number = 0; number < slots_.size(); ++number) {
    Held& slot = slots_[number];
    if (!slot.in_use || slot.rank != rank) continue;
    slot.touched = true;
    if (slot.moved) SPL_TRY(moved({number, slot.generation}));
  }
  return {};
}

void Slots::rest(uint32_t number) {
  slots_[number].in_use = false;
  idle_.push_back(number);
}

Status Slots::close() {
  for (uint32_t number = 0; number < slots_.size(); ++number) SPL_TRY(hide(number));
  slots_.clear();
  idle_.clear();
  return {};
}

}  // namespace spinloom::rails
