// Slots - numbers of long messages under way. A slot stands for the message's memory, exposed on all rails to its
// receiver; or (by put) for an entry on each rail, which takes the receiver's word that the message is cleared.
//
// Contract: take() exposes a message's memory, or finds it exposed for an earlier message; by put, it takes any idle
//   slot, or appends the entries of a new one. ended() notes that a part of the message has been read; after the last
//   one, or after give_up(), the slot is idle. By put, cleared() notes words, and the slot is idle when the message is
//   moved() and all words about it have come. lost() notes that a rail to a rank was lost.
// Invariants: (1) the memory of an idle slot stays exposed until another message needs the room: `idle_most` of them;
//   it is for reading only, and ranks of a job trust each other with their data; (2) a slot serves a later message
//   under another generation, and ended() ignores words of earlier generations; (3) by put, a slot of which a word may
//   come late, because a rail was lost, is not used again: the word would start a later message.
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
    PiecesRef pieces;  // in place of `data`; they are exposed anew each time
    uint64_t bytes = 0;
    uint32_t rank = 0;
    uint64_t request = 0;
  };
  [[nodiscard]] Result<bits::Slot> take(const Message& message);
  // Returns the request of the slot if this was its last part.
  [[nodiscard]] std::optional<uint64_t> ended(bits::Slot slot, bits::Part part);
  void give_up(bits::Slot slot);
  // Used by put only: the triggers that fire when the slot's next word has come, one for each rail.
  [[nodiscard]] std::vector<nic::Trigger> clears_of(bits::Slot slot) const;
  // Returns the request whose message the receiver has cleared, over this rail and the others whose bits are set.
  [[nodiscard]] std::optional<uint64_t> cleared(bits::Slot slot, uint32_t rail, uint64_t over);
  [[nodiscard]] Status moved(bits::Slot slot);
  [[nodiscard]] Status lost(uint32_t rank);
  [[nodiscard]] Status close();
  [[nodiscard]] uint64_t exposures() const { return exposures_; }

 private:
  static constexpr size_t idle_most = 256;
  struct Held {
    const uint8_t* data = nullptr;
    PiecesRef pieces;
    uint64_t bytes = 0;
    uint32_t generation = 0;
    uint64_t request = 0;
    uint32_t parts_ended = 0;  // one bit each
    bool in_use = false;
    // The next members are used by put only.
    uint32_t rank = 0;
    std::vector<nic::CounterId> counters;  // by rail
    std::vector<uint64_t> words;  // by rail: the number of words that have come
    uint64_t words_wanted = 0;  // one bit for each rail; 0: none has come
    uint64_t words_come = 0;
    bool moved = false;
    bool touched = false;  // a rail to the rank was lost
    std::vector<nic::EntryId> entries;  // by rail
  };
  [[nodiscard]] std::optional<uint32_t> find_idle(const Message& message) const;
  [[nodiscard]] Result<uint32_t> make_room();
  [[nodiscard]] Status expose(uint32_t number);
  [[nodiscard]] Status hide(uint32_t number);
  [[nodiscard]] Status listen(uint32_t number);
  void rest(uint32_t number);
  [[nodiscard]] Held* find(bits::Slot slot);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  bool by_put_;
  std::vector<Held> slots_;
  std::deque<uint32_t> idle_;  // the longest idle first
  uint64_t exposures_ = 0;
};

}  // namespace spinloom::rails
