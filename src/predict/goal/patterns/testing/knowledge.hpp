// Test knowledge - plays a pattern with sets of contributions instead of bytes.
//
// Contract: a Story says which pieces of the data each rank has at first, each message carries, and each rank must have
//   at the end. Play::at_end() returns the pieces of a rank if a send knows only the operations that it waited for,
//   directly or indirectly. A message of other bytes than those of its pieces, or with a piece that its rank does not
//   have, fails the test.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <set>

#include "predict/goal/patterns/patterns.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal::test {

using schedule::Kind;
using schedule::Schedule;

using Chunk = uint64_t;  // a piece of the data: a segment, a share, a block
using Whose = std::array<uint8_t, 64>;  // the number of times that each rank's contribution is in it
using Held = std::map<Chunk, Whose>;  // each piece, with the contributions that are in it

struct Sent {
  uint32_t from;
  uint32_t to;
  uint32_t count;  // its place among the sends of this rank
  uint32_t count_to;  // its place among those to this peer with this tag
  uint64_t bytes;
  uint32_t tag;
};

constexpr uint64_t unit = 8;  // bytes of a chunk, unless said otherwise

struct Story {
  std::string name;
  std::function<Held(uint32_t rank)> begins;
  std::function<std::vector<Chunk>(const Sent&)> carries;  // the pieces of a message
  std::function<Held(uint32_t rank)> ends;  // the least that a rank has in the end
  bool combines = false;  // arrivals are added to what is there; otherwise they take its place
  std::function<bool(const Sent&)> replaces = nullptr;  // this message does not combine, though others do
  uint64_t bytes = unit;
  uint64_t chunk_bytes = unit;
  PatternOptions options = {};
};

// Plays what each operation has waited for, and no more.
class Play {
 public:
  Play(const Schedule& schedule, const Story& story) : schedule_(schedule), story_(story) {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<std::vector<Place>, std::vector<Place>>> meet;
    ranks_.resize(schedule.ranks());
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      const schedule::Program& program = schedule.program(rank);
      Rank& made = ranks_[rank];
      made.waits.resize(program.size());
      made.partner.resize(program.size());
      made.sent.resize(program.size());
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> counts;
      uint32_t count = 0;
      for (uint32_t number = 0; number < program.size(); ++number) {
        for (const schedule::Edge& edge : program.edges_of(number)) made.waits[edge.to()].push_back(number);
        const schedule::Operation& operation = program.operations[number];
        const schedule::Shape& shape = schedule.shape(operation);
        if (shape.kind == Kind::compute) continue;
        const uint32_t peer = schedule.peer(rank, operation);
        if (shape.kind == Kind::send) {
          made.sent[number] = {rank, peer, count++, counts[{peer, shape.tag}]++, shape.size, shape.tag};
          meet[{rank, peer, shape.tag}].first.emplace_back(rank, number);
        } else {
          meet[{peer, rank, shape.tag}].second.emplace_back(rank, number);
        }
      }
    }
    for (const auto& [ends, messages] : meet) {
      EXPECT_EQ(messages.first.size(), messages.second.size());
      for (size_t one = 0; one < messages.first.size(); ++one) {
        const auto [from, send] = messages.first[one];
        const auto [to, receive] = messages.second[one];
        ranks_[to].partner[receive] = messages.first[one];
        EXPECT_EQ(shape(from, send).size, shape(to, receive).size) << story.name << ": from " << from << " to " << to;
      }
    }
  }

  [[nodiscard]] Held at_end(uint32_t rank) {
    std::set<uint32_t> all;
    for (uint32_t number = 0; number < ranks_[rank].waits.size(); ++number) all.insert(number);
    return after(rank, all);
  }

 private:
  using Place = std::pair<uint32_t, uint32_t>;  // rank, operation
  struct Rank {
    std::vector<std::vector<uint32_t>> waits;  // the operations for which each operation waits
    std::vector<Place> partner;  // the send that each receive meets
    std::vector<Sent> sent;
  };

  const schedule::Shape& shape(uint32_t rank, uint32_t number) const {
    return schedule_.shape(schedule_.program(rank).operations[number]);
  }

  // Returns all operations that an operation waits for, directly or indirectly.
  std::set<uint32_t> before(uint32_t rank, uint32_t number) const {
    std::set<uint32_t> found;
    std::vector<uint32_t> open = ranks_[rank].waits[number];
    while (!open.empty()) {
      const uint32_t one = open.back();
      open.pop_back();
      if (!found.insert(one).second) continue;
      open.insert(open.end(), ranks_[rank].waits[one].begin(), ranks_[rank].waits[one].end());
    }
    return found;
  }

  Held after(uint32_t rank, const std::set<uint32_t>& operations) {
    Held held = story_.begins(rank);
    for (const uint32_t number : operations) {
      if (shape(rank, number).kind != Kind::receive) continue;
      const auto [from, send] = ranks_[rank].partner[number];
      const bool adds = story_.combines && !(story_.replaces && story_.replaces(ranks_[from].sent[send]));
      for (const auto& [chunk, whose] : message(from, send)) {
        Whose& there = held[chunk];
        for (size_t one = 0; one < there.size(); ++one) {
          there[one] = static_cast<uint8_t>((adds ? there[one] : 0) + whose[one]);
        }
      }
    }
    return held;
  }

  const Held& message(uint32_t rank, uint32_t number) {
    const auto found = messages_.find({rank, number});
    if (found != messages_.end()) return found->second;
    const Held held = after(rank, before(rank, number));
    const Sent& sent = ranks_[rank].sent[number];
    const std::vector<Chunk> chunks = story_.carries(sent);
    Held carried;
    for (const Chunk chunk : chunks) {
      const auto has = held.find(chunk);
      EXPECT_TRUE(has != held.end()) << story_.name << ": rank " << rank << " sends rank " << sent.to << " piece "
                                     << chunk << ", which it does not have";
      if (has != held.end()) carried.insert(*has);
    }
    EXPECT_EQ(sent.bytes, chunks.size() * story_.chunk_bytes) << story_.name << ": from " << rank << " to " << sent.to;
    return messages_.emplace(Place(rank, number), std::move(carried)).first->second;
  }

  const Schedule& schedule_;
  const Story& story_;
  std::vector<Rank> ranks_;
  std::map<Place, Held> messages_;
};

}  // namespace spinloom::goal::test
