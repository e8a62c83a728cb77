// LayoutUses - which layouts a Script moves, and how often: the layouts that need a price.
//
// Contract: layout_uses() counts the ends of messages and the own blocks that are replayed, by layout, elements and
//   side; pair_uses() the messages and own blocks, by what they have at both ends, where that is not one block at both.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/program/script.hpp"

namespace spinloom::predict {

struct LayoutUse {
  uint32_t layout = 0;
  int64_t count = 0;
  Side side = Side::send;
  uint64_t bytes = 0;  // the packed size of a message or a block
  uint64_t messages = 0;  // the number of ends of messages that have the layout
  uint64_t copies = 0;  // the number of ends of a rank's own blocks that have the layout
};

[[nodiscard]] std::vector<LayoutUse> layout_uses(const Script& script);

struct PairUse {
  uint64_t bytes = 0;  // the packed size of a message or a block
  DataLayout sent;  // the layout at the sender
  DataLayout received;  // the layout at the receiver
  uint64_t messages = 0;
  uint64_t copies = 0;  // own blocks that a rank copies to itself
};

[[nodiscard]] std::vector<PairUse> pair_uses(const Script& script);

}  // namespace spinloom::predict
