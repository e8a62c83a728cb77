// Slots - numbers of long messages under way. A slot stands for the message's memory, exposed on all rails to its
// receiver; or (by put) for an entry on each rail, which takes the receiver's word that the message is cleared.
//
// Contract: take() exposes a message's memory, or finds it exposed for an earlier message; by put, it takes any idle
//   slot, or appends the entries of a new one. end_part() notes that a part of the message has been read; after the
//   last one, or after give_up(), the slot is idle. By put, on_cleared() notes words, and the slot is idle when the
//   message is moved (on_moved()) and all words about it have come. on_lost() notes that a rail to a rank was lost.
// Invariants: (1) the memory of an idle slot stays exposed until another message needs the room: `idle_max` of them;
//   it is for reading only, and ranks of a job trust each other with their data; (2) a slot serves a later message
//   under another generation, and end_part() ignores words of earlier generations; (3) by put, a slot of which a word
//   may come late, because a rail was lost, is not used again: the word would start a later message.
// Threads: the owner of the Interfaces. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "portals/rails/pieces.hpp"
#include "portals/rails/rail.hpp"

namespace spinloom::rails {

class Slots {
 public:
  Slots(const std::vector<std::unique_ptr<Rail>>& rails, bool by_put) : rails_(rails), by_put_(by_put) {}

  struct Message {
    const uint8_t* data = nullptr;
    PiecesRef pieces;  // pieces in place of `data`; they are exposed anew each time
    uint64_t bytes = 0;
    uint32_t rank = 0;
    uint64_t request = 0;
  };
  [[nodiscard]] Result<bits::Slot> take(const Message& message);
  // Returns the request of the slot if this was its last part.
  [[nodiscard]] std::optional<uint64_t> end_part(bits::Slot id, bits::Part part);
  void give_up(bits::Slot id);
  // Used by put only: the triggers that fire when the slot's next word has come, one for each rail.
  [[nodiscard]] std::vector<nic::Trigger> clear_triggers_of(bits::Slot id) const;
  // Returns the request whose message the receiver has cleared, over this rail and all others of the mask.
  [[nodiscard]] std::optional<uint64_t> on_cleared(bits::Slot id, uint32_t rail, uint64_t rails_mask);
  [[nodiscard]] Status on_moved(bits::Slot id);
  [[nodiscard]] Status on_lost(uint32_t rank);
  [[nodiscard]] Status close();
  [[nodiscard]] uint64_t exposures() const { return exposures_; }

 private:
  static constexpr size_t idle_max = 256;
  struct SlotState {
    const uint8_t* data = nullptr;
    PiecesRef pieces;
    uint64_t bytes = 0;
    uint32_t generation = 0;
    uint64_t request = 0;
    uint32_t ended_parts_mask = 0;
    bool is_in_use = false;
    // The next members are used by put only.
    uint32_t rank = 0;
    std::vector<nic::CounterId> counters;  // one for each rail
    std::vector<uint64_t> word_counts;  // one for each rail: the number of words that have come
    uint64_t wanted_words_mask = 0;  // the rails over which words come, a bit each; 0: not known before the first word
    uint64_t received_words_mask = 0;  // the rails over which a word has come
    bool is_moved = false;
    bool has_lost_rail = false;  // a rail to the rank was lost
    std::vector<nic::EntryId> entries;  // one for each rail
  };
  [[nodiscard]] std::optional<uint32_t> find_idle(const Message& message) const;
  [[nodiscard]] Result<uint32_t> make_room();
  [[nodiscard]] Status expose(uint32_t number);
  [[nodiscard]] Status unlink_entries(uint32_t number);
  [[nodiscard]] Status append_word_entries(uint32_t number);
  void make_idle(uint32_t number);
  [[nodiscard]] SlotState* find(bits::Slot id);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  bool by_put_;
  std::vector<SlotState> slots_;
  std::deque<uint32_t> idle_;  // the longest idle first
  uint64_t exposures_ = 0;
};

}  // namespace spinloom::rails
