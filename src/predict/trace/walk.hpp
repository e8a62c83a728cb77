// Walk - a rank's events in their order, with what its requests stand for.
//
// Contract: walk() visits each event with its signature. For calls that start persistent requests, visit.started() gets
//   the signatures by which those were made, so that it sees each transfer when it begins. For calls that complete
//   requests, visit.ended() gets the event that began each. Both are called before the event itself is visited.
// Invariants: (1) slots are followed as the recorder gave them: by their order alone.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

struct OpenSlot {
  uint32_t made = none;  // the event that made the request
  uint32_t begun = none;  // the event that began it: the same, or the last start
  bool is_persistent = false;
};

template <class Visit>
void walk(const RankTrace& trace, Visit&& visit) {
  std::vector<OpenSlot> slots;
  const auto slot_at = [&slots](uint32_t slot) -> OpenSlot& {
    if (slot >= slots.size()) slots.resize(size_t{slot} + 1);
    return slots[slot];
  };
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Signature& signature = trace.signatures[trace.events[i].signature];
    switch (signature.call) {
      case Call::Start:
      case Call::Startall:
        for (const uint32_t slot : signature.requests) {
          OpenSlot& open = slot_at(slot);
          open.begun = i;
          if (open.made != none) visit.started(i, trace.signatures[trace.events[open.made].signature], slot);
        }
        break;
      case Call::Wait:
      case Call::Waitall:
      case Call::Waitany:
      case Call::Waitsome:
      case Call::Test:
      case Call::Testall:
      case Call::Testany:
      case Call::Testsome:
        for (const uint32_t slot : signature.requests) {
          OpenSlot& open = slot_at(slot);
          if (open.begun != none) visit.ended(i, open, slot);
          open.begun = none;
          if (!open.is_persistent) open = {};
        }
        break;
      case Call::Request_free:
        for (const uint32_t slot : signature.requests) slot_at(slot) = {};
        break;
      case Call::Cancel: break;
      default:
        for (const uint32_t slot : signature.requests) {
          const bool is_persistent = signature.form == CallForm::persistent;
          slot_at(slot) = {i, is_persistent ? none : i, is_persistent};
        }
    }
    visit.event(i, signature);
  }
}

}  // namespace spinloom::trace
