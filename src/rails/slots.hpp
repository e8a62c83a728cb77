// Slots - memory of messages that their receivers read: exposed on all rails, each under a number.
//
// Contract: take() exposes a message's memory, or finds it exposed for an earlier message. ended() notes that a part of the
//   message has been read; after the last one, or after give_up(), the slot is idle.
// Invariants: (1) the memory of an idle slot stays exposed until another message needs the room: `idle_most` of them; it is
//   for reading only, and ranks of a job trust each other with their data; (2) a slot serves a later message under another
//   generation, and ended() ignores words of earlier generations.
// Threads: the owner of the Interfaces. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "rails/rail.hpp"

namespace spinloom::rails {

class Slots {
 public:
  explicit Slots(const std::vector<std::unique_ptr<Rail>>& rails) : rails_(rails) {}

  [[nodiscard]] Result<bits::Slot> take(const uint8_t* data, uint64_t bytes, uint64_t request);
  // The request whose last part this was.
  [[nodiscard]] std::optional<uint64_t> ended(bits::Slot slot, bits::Part part);
  void give_up(bits::Slot slot);
  [[nodiscard]] Status close();
  [[nodiscard]] uint64_t exposures() const { return exposures_; }

 private:
  static constexpr size_t idle_most = 256;
  struct Held {
    const uint8_t* data = nullptr;
    uint64_t bytes = 0;
    uint32_t generation = 0;
    uint64_t request = 0;
    uint32_t parts_ended = 0;  // one bit each
    bool in_use = false;
    std::vector<nic::EntryId> entries;  // by rail
  };
  [[nodiscard]] std::optional<uint32_t> find_idle(const uint8_t* data, uint64_t bytes) const;
  [[nodiscard]] Result<uint32_t> make_room();
  [[nodiscard]] Status expose(uint32_t number);
  [[nodiscard]] Status hide(uint32_t number);
  void rest(uint32_t number);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  std::vector<Held> slots_;
  std::deque<uint32_t> idle_;  // the longest idle first
  uint64_t exposures_ = 0;
};

}  // namespace spinloom::rails
