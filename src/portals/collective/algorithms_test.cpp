// Every algorithm moves the right bytes to the right places, whatever happens first.
#include "portals/collective/algorithms.hpp"

#include <deque>
#include <map>
#include <set>

#include "base/testing/seeds.hpp"
#include "portals/collective/testing/byte_play.hpp"
#include "portals/collective/testing/call.hpp"

namespace spinloom::collective {
namespace {

using test::BytePlay;
using test::element;
using test::Memory;
using test::TestCall;

uint32_t few_ranks(Random& random) { return static_cast<uint32_t>(1 + random.below(24)); }
uint32_t many_ranks(Random& random) { return static_cast<uint32_t>(50 + random.below(90)); }

void play(TestCall call, const std::vector<algorithms::MakeRounds*>& strands, Random& random) {
  std::vector<BytePlay::Rank> ranks;
  for (const test::RankCall& one : call.ranks) {
    ranks.push_back({{}, {one.send, one.receive, {}}});
    uint32_t tag = 0;
    for (algorithms::MakeRounds* const make : strands) {
      Rounds rounds;
      make(one.call, rounds);
      for (Round& round : rounds.take()) {
        for (Leg& leg : round.legs) leg.tag = tag;
        ranks.back().rounds.push_back(std::move(round));
      }
      ++tag;
    }
  }
  BytePlay bytes(std::move(ranks), call.combine, element);
  bytes.play(random);
  EXPECT_TRUE(bytes.ended());
  for (const test::RankCall& one : call.ranks) {
    const uint32_t rank = one.call.rank;
    EXPECT_EQ(bytes.memory(rank, Area::receive), one.expected)
        << "rank " << rank << (one.call.in_place ? ", in place" : "");
    EXPECT_EQ(bytes.memory(rank, Area::send), one.send) << "rank " << rank << ": what is sent is written";
  }
}

void play_random(const Algorithm& algorithm, const std::vector<algorithms::MakeRounds*>& strands, uint32_t size,
                 Random& random) {
  const auto root = static_cast<uint32_t>(random.below(size));
  TestCall call = test::random_call(algorithm.operation, size, root, takes_any_operator(algorithm, root), random);
  const uint64_t segment_bytes = algorithm.is_segmented ? 1 + random.below(20 * element) : UINT64_MAX;
  for (test::RankCall& one : call.ranks) one.call.segment_bytes = segment_bytes;
  SCOPED_TRACE(text(size, " ranks, root ", root, ", segments of ", segment_bytes, " B"));
  play(std::move(call), strands, random);
}

class MovesBytes : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, MovesBytes, testing::ValuesIn(test::catalogue()),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(MovesBytes, ToTheirPlaces) {
  for_seeds(100, [](Random& random) { play_random(GetParam(), {GetParam().make}, few_ranks(random), random); });
}

// Few ranks are seldom one.
TEST_P(MovesBytes, OfOneRank) {
  for_seeds(20, [](Random& random) { play_random(GetParam(), {GetParam().make}, 1, random); });
}

TEST_P(MovesBytes, AmongManyRanks) {
  for_seeds(3, [](Random& random) { play_random(GetParam(), {GetParam().make}, many_ranks(random), random); });
}

// Whatever is 2^28 times as long (elements too) has Rounds that are 2^28 times as long: terabytes go as bytes do.
TEST_P(MovesBytes, OfAnyLength) {
  constexpr uint64_t factor = 1U << 28;
  const auto scale = [](Part& part) {
    part.bytes *= factor;
    part.place.at *= factor;
    part.place.wrap *= factor;
  };
  for_seeds(20, [&](Random& random) {
    const uint32_t size = few_ranks(random);
    TestCall call = test::random_call(GetParam().operation, size, 0, false, random);
    const uint64_t segment_bytes = 1 + random.below(20 * element);
    for (test::RankCall& one : call.ranks) {
      const auto rounds_of = [&](uint64_t times) {
        one.call.segment_bytes = segment_bytes * times;
        Rounds rounds;
        GetParam().make(one.call, rounds);
        return rounds.take();
      };
      std::vector<Round> wanted = rounds_of(1);
      for (Round& round : wanted) {
        for (Leg& leg : round.legs) scale(leg.part);
        for (Copy& copy : round.copies) scale(copy.from), scale(copy.to);
        for (Combine& combine : round.combines) scale(combine.into), scale(combine.from);
      }
      one.call.element_bytes *= factor;
      for (Part& part : one.call.sends) scale(part);
      for (Part& part : one.call.receives) scale(part);
      EXPECT_EQ(rounds_of(factor), wanted) << "rank " << one.call.rank << " of " << size;
    }
  });
}

TEST(Strands, OfADoubleTreeMoveBytesInAnyOrder) {
  const Algorithm algorithm{Operation::bcast, "double-tree", nullptr, OperandOrder::none, true};
  for_seeds(100, [&](Random& random) {
    play_random(algorithm, {algorithms::double_tree_first, algorithms::double_tree_second}, few_ranks(random), random);
  });
}

// A message names the ranks of which its sender has heard that they have begun. At the end each rank has heard of all.
TEST(Barriers, EndWhenAllHaveBegun) {
  for (const Algorithm& algorithm : algorithms_of(Operation::barrier)) {
    for (uint32_t size = 1; size <= 40; ++size) {
      for (uint32_t radix = 2; radix <= 5; ++radix) {
        std::vector<std::vector<Round>> rounds(size);
        for (uint32_t rank = 0; rank < size; ++rank) {
          Rounds made;
          algorithm.make({.rank = rank, .size = size, .radix = radix}, made);
          rounds[rank] = made.take();
        }
        std::vector<std::set<uint32_t>> heard(size);
        for (uint32_t rank = 0; rank < size; ++rank) heard[rank].insert(rank);
        std::map<std::pair<uint32_t, uint32_t>, std::deque<std::set<uint32_t>>> sent;
        std::vector<size_t> now(size), has_sent(size);
        for (bool moved = true; moved;) {
          moved = false;
          for (uint32_t rank = 0; rank < size; ++rank) {
            if (now[rank] == rounds[rank].size()) continue;
            const std::vector<Leg>& legs = rounds[rank][now[rank]].legs;
            for (const Leg& leg : legs) {
              if (leg.side == Side::send && has_sent[rank] == now[rank]) sent[{rank, leg.peer}].push_back(heard[rank]);
            }
            has_sent[rank] = now[rank] + 1;
            const bool all = std::ranges::all_of(
                legs, [&](const Leg& leg) { return leg.side == Side::send || !sent[{leg.peer, rank}].empty(); });
            if (!all) continue;
            for (const Leg& leg : legs) {
              if (leg.side == Side::send) continue;
              heard[rank].merge(sent[{leg.peer, rank}].front());
              sent[{leg.peer, rank}].pop_front();
            }
            ++now[rank];
            moved = true;
          }
        }
        for (uint32_t rank = 0; rank < size; ++rank) {
          EXPECT_EQ(now[rank], rounds[rank].size());
          EXPECT_EQ(heard[rank].size(), size) << algorithm.name << ", radix " << radix << ", rank " << rank;
        }
      }
    }
  }
}

}  // namespace
}  // namespace spinloom::collective
