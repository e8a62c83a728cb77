// Test byte play - plays Rounds of all ranks with real bytes, in a random order.
//
// Contract: BytePlay::play() runs until nobody can go on; ended() says whether all ranks have. A message lands as soon
//   as it is sent, whatever its receiver is doing, as if all receives of a call were posted when it begins. Sends and
//   copies of a round happen one by one, in any order but for sends to the same rank. Trouble (sizes that differ,
//   places outside of an area, bytes that are read and written in one round, a message that lands where something was
//   used in an earlier round) fails the test.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "portals/collective/rounds.hpp"

namespace spinloom::collective::test {

using Memory = std::vector<uint8_t>;
// into = lower op higher, of elements.
using Operator = std::function<void(uint8_t* into, const uint8_t* lower, const uint8_t* higher)>;

class BytePlay {
 public:
  struct Rank {
    std::vector<Round> rounds;
    std::array<Memory, 3> areas;  // one for each Area; `work` grows as needed
  };

  BytePlay(std::vector<Rank> ranks, Operator combine, uint64_t element_bytes)
      : ranks_(std::move(ranks)), combine_(std::move(combine)), element_bytes_(element_bytes), states_(ranks_.size()) {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      uint64_t work = 0;
      Uses uses;
      for (uint32_t round = 0; round < ranks_[rank].rounds.size(); ++round) {
        const Round& current = ranks_[rank].rounds[round];
        for_each_part(current, [&](const Part& part, bool) {
          if (part.place.area == Area::work) work = std::max(work, part.place.at + part.bytes);
        });
        check_apart(rank, round + 1, current, uses);
        for (const Leg& leg : current.legs) {
          if (leg.side == Side::receive) receives_[{leg.peer, rank, leg.tag}].push_back({leg.part, round});
        }
      }
      area(rank, Area::work).resize(work);
    }
  }

  void play(Random& random) {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) open(rank);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t tries = 0; tries < 4 * ranks_.size(); ++tries) {
        moved |= step(static_cast<uint32_t>(random.below(ranks_.size())), random);
      }
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank) moved |= step(rank, random);
    }
  }

  [[nodiscard]] bool ended() const {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (states_[rank].round != ranks_[rank].rounds.size()) return false;
    }
    return true;
  }
  [[nodiscard]] const Memory& memory(uint32_t rank, Area which) const {
    return ranks_[rank].areas[static_cast<size_t>(which)];
  }

 private:
  struct Landing {
    Part part;
    uint32_t round;
  };
  struct State {
    size_t round = 0;
    std::vector<const Leg*> sends;
    std::vector<const Copy*> copies;
    std::map<size_t, size_t> arrived;  // the number of arrivals of each round
  };

  Memory& area(uint32_t rank, Area which) { return ranks_[rank].areas[static_cast<size_t>(which)]; }

  template <class Visit>  // (part, it is written)
  static void for_each_part(const Round& round, const Visit& visit) {
    for (const Leg& leg : round.legs) visit(leg.part, leg.side == Side::receive);
    for (const Copy& copy : round.copies) {
      visit(copy.from, false);
      visit(copy.to, true);
    }
    for (const Combine& combination : round.combines) {
      EXPECT_EQ(combination.into.bytes, combination.from.bytes);
      visit(combination.into, false);
      visit(combination.from, false);
    }
  }

  static uint64_t at(const Part& part, uint64_t byte) {
    const uint64_t offset = part.place.at + byte;
    return part.place.wrap == 0 ? offset : offset % part.place.wrap;
  }

  // Rounds from 1 on in which a byte was read and written last.
  struct Use {
    uint32_t read = 0;
    uint32_t written = 0;
  };
  using Uses = std::array<std::vector<Use>, 3>;  // one list for each Area

  // Within a round what is written is written once, and neither sent nor copied. Nothing lands on what was used before.
  static void check_apart(uint32_t rank, uint32_t now, const Round& round, Uses& uses) {
    const auto for_each = [&](const Part& part, const auto& visit) {
      std::vector<Use>& area = uses[static_cast<size_t>(part.place.area)];
      for (uint64_t byte = 0; byte < part.bytes; ++byte) {
        if (area.size() <= at(part, byte)) area.resize(at(part, byte) + 1);
        visit(area[at(part, byte)]);
      }
    };
    const auto read = [&](const Part& part) {
      for_each(part, [&](Use& use) {
        EXPECT_NE(use.written, now) << "rank " << rank << " reads what is written in the same round";
        use.read = now;
      });
    };
    const auto write = [&](const Part& part, bool lands) {
      for_each(part, [&](Use& use) {
        EXPECT_TRUE(use.read != now && use.written != now) << "rank " << rank << " uses a byte twice in a round";
        EXPECT_TRUE(!lands || (use.read == 0 && use.written == 0)) << "rank " << rank << " receives on what was used";
        use.written = now;
      });
    };
    for (const Leg& leg : round.legs) leg.side == Side::send ? read(leg.part) : write(leg.part, true);
    for (const Copy& copy : round.copies) {
      read(copy.from);
      write(copy.to, false);
    }
    for (const Combine& combination : round.combines) {
      for_each(combination.from, [&](Use& use) { use.read = now; });
      for_each(combination.into, [&](Use& use) { use.written = now; });
    }
  }

  Memory read(uint32_t rank, const Part& part) {
    Memory bytes(part.bytes);
    const Memory& from = area(rank, part.place.area);
    for (uint64_t byte = 0; byte < part.bytes; ++byte) {
      EXPECT_LT(at(part, byte), from.size()) << "rank " << rank;
      if (at(part, byte) < from.size()) bytes[byte] = from[at(part, byte)];
    }
    return bytes;
  }
  void write(uint32_t rank, const Part& part, const Memory& bytes) {
    Memory& to = area(rank, part.place.area);
    EXPECT_EQ(part.bytes, bytes.size()) << "rank " << rank;
    for (uint64_t byte = 0; byte < std::min<uint64_t>(part.bytes, bytes.size()); ++byte) {
      EXPECT_LT(at(part, byte), to.size()) << "rank " << rank;
      if (at(part, byte) < to.size()) to[at(part, byte)] = bytes[byte];
    }
  }

  void open(uint32_t rank) {
    State& state = states_[rank];
    if (state.round == ranks_[rank].rounds.size()) return;
    const Round& round = ranks_[rank].rounds[state.round];
    for (const Leg& leg : round.legs) {
      if (leg.side == Side::send) state.sends.push_back(&leg);
    }
    for (const Copy& copy : round.copies) state.copies.push_back(&copy);
  }

  // One send, one copy, or the end of a round; false if there is nothing to do.
  bool step(uint32_t rank, Random& random) {
    State& state = states_[rank];
    if (state.round == ranks_[rank].rounds.size()) return false;
    if (!state.copies.empty() && (state.sends.empty() || random.below(2) == 0)) {
      const Copy* const copy = state.copies.back();
      state.copies.pop_back();
      write(rank, copy->to, read(rank, copy->from));
      return true;
    }
    if (!state.sends.empty()) {  // sends to one peer stay in order
      const Leg* const any = state.sends[random.below(state.sends.size())];
      const auto first = std::ranges::find(state.sends, any->peer, &Leg::peer);
      const Leg* const leg = *first;
      state.sends.erase(first);
      deliver(rank, *leg);
      return true;
    }
    const Round& round = ranks_[rank].rounds[state.round];
    const auto awaited = std::ranges::count(round.legs, Side::receive, &Leg::side);
    if (state.arrived[state.round] != static_cast<size_t>(awaited)) return false;
    for (const Combine& combination : round.combines) combine(rank, combination);
    ++state.round;
    open(rank);
    return true;
  }

  void deliver(uint32_t rank, const Leg& leg) {
    auto& landings = receives_[{rank, leg.peer, leg.tag}];
    ASSERT_FALSE(landings.empty()) << "nobody receives what " << rank << " sends to " << leg.peer;
    const Landing landing = landings.front();
    landings.erase(landings.begin());
    write(leg.peer, landing.part, read(rank, leg.part));
    ++states_[leg.peer].arrived[landing.round];
  }

  void combine(uint32_t rank, const Combine& combination) {
    Memory into = read(rank, combination.into);
    const Memory from = read(rank, combination.from);
    EXPECT_EQ(into.size() % element_bytes_, 0U) << "parts of elements";
    for (uint64_t byte = 0; byte + element_bytes_ <= into.size(); byte += element_bytes_) {
      uint8_t* const sum = into.data() + byte;
      combine_(sum, combination.from_is_lower ? from.data() + byte : sum,
               combination.from_is_lower ? sum : from.data() + byte);
    }
    write(rank, combination.into, into);
  }

  std::vector<Rank> ranks_;
  Operator combine_;
  uint64_t element_bytes_;
  std::vector<State> states_;
  // Receives whose message has not come; the key is from, to and tag.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<Landing>> receives_;
};

}  // namespace spinloom::collective::test
