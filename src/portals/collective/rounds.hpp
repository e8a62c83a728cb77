// Rounds - the work of one rank for one call: messages that go side by side, round after round.
//
// Contract: a Leg is one end of a message. A Copy moves data within the rank while messages are under way. When the
//   legs and copies of a Round have ended, its Combines follow, one after the other. A CPU begins a Round when all that
//   the one before it began has ended, and posts receives before sends. A Graph keeps only the order that the data need
//   (graph.hpp).
// Invariants: (1) all receives of a call may be posted when it begins, and their messages may land then: a place where
//   a message lands is not used before for anything else; (2) within a round nothing is written that a send or a copy
//   reads, and nothing twice.
// Threads: plain values. Time: none.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace spinloom::collective {

inline constexpr uint32_t untyped = UINT32_MAX;

// The memory areas of a call: the data that it sends, the data that it receives, and the algorithm's own memory.
enum class Area : uint8_t { send, receive, work };

// Byte i of the data that lie here is byte at + i of the area; if `wrap` is not 0, byte (at + i) % wrap.
struct Place {
  uint64_t at = 0;
  uint64_t wrap = 0;
  Area area = Area::send;
  bool operator==(const Place&) const = default;
};

// The data of a message or a copy: `bytes` bytes, which are `count` elements of the caller's type number `type`.
// `untyped`: the bytes lie in one block, or their layout does not matter. A call that is only timed sets no `place`.
struct Part {
  uint64_t bytes = 0;
  int64_t count = 0;
  uint32_t type = untyped;
  Place place = {};
  bool operator==(const Part&) const = default;
};

enum class Side : uint8_t { send, receive };

// The layout of the data at one end of a message: a type and a count of its elements. `untyped`: one block.
struct DataLayout {
  int64_t count = 0;
  uint32_t type = untyped;
  auto operator<=>(const DataLayout&) const = default;
};

[[nodiscard]] inline DataLayout layout_of(const Part& part) {
  return part.type == untyped ? DataLayout{} : DataLayout{part.count, part.type};
}

struct Leg {
  Part part;
  uint32_t peer = 0;  // the rank at the other end
  uint32_t tag = 0;  // tells apart the messages of a recorded program (predict); algorithms leave it 0
  Side side = Side::send;
  DataLayout partner_layout = {};  // layout of the data at the other end; {} if it does not matter
  [[nodiscard]] DataLayout own_layout() const { return layout_of(part); }
  bool operator==(const Leg&) const = default;
};

struct Copy {
  Part from;
  Part to;
  bool operator==(const Copy&) const = default;
};

// Combines the data in `from` with the data in `into`; the result stays in `into`. The operands keep the order of
// ranks: the ranks whose operands are in `from` are lower, or higher, than those whose operands are in `into`.
struct Combine {
  Part into;
  Part from;
  bool from_is_lower = false;
  bool operator==(const Combine&) const = default;
};

struct Round {
  std::vector<Leg> legs;
  std::vector<Copy> copies;
  std::vector<Combine> combines;  // one after the other
  [[nodiscard]] uint64_t combined_bytes() const {
    uint64_t bytes = 0;
    for (const Combine& one : combines) bytes += one.into.bytes;
    return bytes;
  }
  bool operator==(const Round&) const = default;
};

class Rounds {
 public:
  void send(uint32_t peer, const Part& part) { add(peer, part, Side::send); }
  void receive(uint32_t peer, const Part& part) { add(peer, part, Side::receive); }
  void copy(const Part& from, const Part& to) {
    if (to.bytes != 0) current_.copies.push_back({from, to});
  }
  void combine(const Combine& combine) { current_.combines.push_back(combine); }
  // Ends the current round; an empty round is dropped.
  void next() {
    if (!current_.legs.empty() || !current_.copies.empty() || !current_.combines.empty())
      rounds_.push_back(std::move(current_));
    current_ = {};
  }
  [[nodiscard]] std::vector<Round> take() {
    next();
    return std::exchange(rounds_, {});
  }

 private:
  void add(uint32_t peer, const Part& part, Side side) { current_.legs.push_back({part, peer, 0, side, {}}); }

  Round current_;
  std::vector<Round> rounds_;
};

}  // namespace spinloom::collective
