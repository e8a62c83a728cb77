#include "rails/slots.hpp"

#include <algorithm>

namespace spinloom::rails {

std::optional<uint32_t> Slots::find_idle(const uint8_t* data, uint64_t bytes) const {
  for (const uint32_t number : idle_) {
    if (slots_[number].data == data && slots_[number].bytes == bytes) return number;
  }
  return std::nullopt;
}

Result<bits::Slot> Slots::take(const uint8_t* data, uint64_t bytes, uint64_t request) {
  uint32_t number = 0;
  if (const auto found = find_idle(data, bytes)) {
    number = *found;
    idle_.erase(std::find(idle_.begin(), idle_.end(), number));
  } else {
    SPL_ASSIGN(number, make_room());
    slots_[number].data = data;
    slots_[number].bytes = bytes;
    SPL_TRY(expose(number));
  }
  Held& slot = slots_[number];
  slot.generation = (slot.generation + 1) % bits::generation_count;
  slot.request = request;
  slot.parts_ended = 0;
  slot.in_use = true;
  return bits::Slot{number, slot.generation};
}

// A new slot, or the one that has been idle for the longest time.
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

// The NICs append side by side.
Status Slots::expose(uint32_t number) {
  ++exposures_;
  Held& slot = slots_[number];
  slot.entries.clear();
  nic::Entry entry;
  entry.start = const_cast<uint8_t*>(slot.data);  // read only: op_put is off
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
  slot.entries.clear();
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
  if (slots_[slot.number].in_use && slots_[slot.number].generation == slot.generation) rest(slot.number);
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
