#include "portals/rails/slots.hpp"

#include <algorithm>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

std::optional<uint32_t> Slots::find_idle(const Message& message) const {
  if (by_put_) return idle_.empty() ? std::nullopt : std::optional(idle_.front());
  for (const uint32_t number : idle_) {
    const SlotState& slot = slots_[number];
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
    SPL_TRY(by_put_ ? append_word_entries(number) : expose(number));
  }
  SlotState& slot = slots_[number];
  slot.generation = (slot.generation + 1) % bits::generation_count;
  slot.request = message.request;
  slot.rank = message.rank;
  slot.ended_parts_mask = 0;
  slot.wanted_words_mask = slot.received_words_mask = 0;
  slot.is_moved = slot.has_lost_rail = false;
  slot.is_in_use = true;
  return bits::Slot{number, slot.generation};
}

// Returns a new slot, or the one that has been idle for the longest time.
Result<uint32_t> Slots::make_room() {
  if (idle_.size() < idle_max && slots_.size() < bits::slot_count) {
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  if (idle_.empty()) {
    return fail(Code::exhausted, bits::slot_count, " long messages are under way; more must wait for one of them");
  }
  const uint32_t number = idle_.front();
  SPL_TRY(unlink_entries(number));
  idle_.pop_front();
  return number;
}

// Posts the entries on all NICs before it waits for their answers.
Status Slots::expose(uint32_t number) {
  ++exposures_;
  SlotState& slot = slots_[number];
  slot.entries.clear();
  nic::Entry entry;
  entry.start = const_cast<uint8_t*>(slot.data);  // read only: op_put is off
  if (slot.pieces) entry.iovec = slot.pieces->elements;
  entry.length = slot.bytes;
  entry.match_bits = bits::match_bits_of(bits::KeyKind::exposed, number);
  entry.ignore_bits = bits::generation_mask;
  entry.options.op_put = false;
  entry.options.op_get = true;
  entry.options.event_comm_disable = true;
  for (const auto& rail : rails_) {
    rail->spend_call_time();
    rail->interface().bundle_begin();
    SPL_ASSIGN(const nic::EntryId entry_id, rail->interface().me_post(rail->portals().keys, entry));
    slot.entries.push_back(entry_id);
  }
  for (const auto& rail : rails_) SPL_TRY(rail->interface().bundle_end());
  return {};
}

Status Slots::append_word_entries(uint32_t number) {
  ++exposures_;
  SlotState& slot = slots_[number];
  slot.word_counts.assign(rails_.size(), 0);
  nic::Entry entry;
  entry.match_bits = bits::match_bits_of(bits::KeyKind::clear, number);
  entry.ignore_bits = bits::generation_mask;
  entry.user_ptr = user::pointer(user::Kind::cleared, number);
  entry.options.op_get = false;
  entry.options.ct_comm = true;
  for (const auto& rail : rails_) {
    rail->spend_call_time();
    SPL_ASSIGN(entry.counter, rail->interface().ct_alloc());
    slot.counters.push_back(entry.counter);
    rail->spend_call_time();
    SPL_ASSIGN(const nic::EntryId entry_id, rail->interface().me_append(rail->portals().keys, entry));
    slot.entries.push_back(entry_id);
  }
  return {};
}

Status Slots::unlink_entries(uint32_t number) {
  SlotState& slot = slots_[number];
  for (size_t rail = 0; rail < slot.entries.size(); ++rail) {
    portals::Unlinked unlinked = portals::Unlinked::in_use;
    while (unlinked == portals::Unlinked::in_use) {  // a read that was given up may still be under way
      rails_[rail]->spend_call_time();
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

std::optional<uint64_t> Slots::end_part(bits::Slot id, bits::Part part) {
  if (id.number >= slots_.size()) return std::nullopt;
  SlotState& slot = slots_[id.number];
  if (!slot.is_in_use || slot.generation != id.generation || part.number >= part.parts) return std::nullopt;
  slot.ended_parts_mask |= 1u << part.number;
  if (slot.ended_parts_mask != (1u << part.parts) - 1) return std::nullopt;
  make_idle(id.number);
  return slot.request;
}

void Slots::give_up(bits::Slot id) {
  if (find(id) != nullptr) make_idle(id.number);
}

Slots::SlotState* Slots::find(bits::Slot id) {
  if (id.number >= slots_.size()) return nullptr;
  SlotState& slot = slots_[id.number];
  return slot.is_in_use && slot.generation == id.generation ? &slot : nullptr;
}

std::vector<nic::Trigger> Slots::clear_triggers_of(bits::Slot id) const {
  const SlotState& slot = slots_[id.number];
  std::vector<nic::Trigger> clears;
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    clears.push_back({.counter = slot.counters[rail], .threshold = slot.word_counts[rail] + 1});
  }
  return clears;
}

std::optional<uint64_t> Slots::on_cleared(bits::Slot id, uint32_t rail, uint64_t rails_mask) {
  if (id.number >= slots_.size()) return std::nullopt;
  SlotState& slot = slots_[id.number];
  if (rail < slot.word_counts.size()) ++slot.word_counts[rail];
  if (!slot.is_in_use || slot.generation != id.generation) return std::nullopt;
  slot.wanted_words_mask = rails_mask;
  slot.received_words_mask |= uint64_t{1} << rail;
  const uint64_t request = slot.request;
  if (slot.is_moved && slot.received_words_mask == slot.wanted_words_mask) make_idle(id.number);
  return request;
}

Status Slots::on_moved(bits::Slot id) {
  SlotState* const slot = find(id);
  if (slot == nullptr) return {};
  slot->is_moved = true;
  const bool all_words = slot->wanted_words_mask != 0 && slot->received_words_mask == slot->wanted_words_mask;
  if (all_words) make_idle(id.number);
  if (all_words || !slot->has_lost_rail) return {};
  slot->is_in_use = false;
  return unlink_entries(id.number);
}

Status Slots::on_lost(uint32_t rank) {
  for (uint32_t number = 0; number < slots_.size(); ++number) {
    SlotState& slot = slots_[number];
    if (!slot.is_in_use || slot.rank != rank) continue;
    slot.has_lost_rail = true;
    if (slot.is_moved) SPL_TRY(on_moved({number, slot.generation}));
  }
  return {};
}

void Slots::make_idle(uint32_t number) {
  slots_[number].is_in_use = false;
  idle_.push_back(number);
}

Status Slots::close() {
  for (uint32_t number = 0; number < slots_.size(); ++number) SPL_TRY(unlink_entries(number));
  slots_.clear();
  idle_.clear();
  return {};
}

}  // namespace spinloom::rails
