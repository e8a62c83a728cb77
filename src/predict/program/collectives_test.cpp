// Every algorithm of every collective operation: legs have partners, and messages and bytes are as many as the algebra
// says.
#include "predict/program/collectives.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>

namespace spinloom::predict {
namespace {

using trace::Call;

struct Totals {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t combined = 0;
  size_t rounds = 0;  // most of a rank
};

Algorithms only(const std::string& choice) {
  auto made = parse_choices({choice});
  EXPECT_TRUE(made.ok());
  return *made;
}

// All ranks play `call_of(rank)`; the n-th send from one rank to another must meet its n-th receive, of the same bytes.
template <class CallOf>
Totals play(uint32_t size, const CallOf& call_of, const std::string& choice) {
  Totals totals;
  std::map<std::pair<uint32_t, uint32_t>, std::pair<std::vector<uint64_t>, std::vector<uint64_t>>> met;
  for (uint32_t rank = 0; rank < size; ++rank) {
    CollectiveCall call = call_of(rank);
    call.rank = rank;
    call.size = size;
    const auto rounds = rounds_of(call, only(choice));
    EXPECT_TRUE(rounds.ok()) << (rounds.ok() ? "" : rounds.error().message);
    if (!rounds) return totals;
    totals.rounds = std::max(totals.rounds, rounds->size());
    for (const Round& round : *rounds) {
      totals.combined += round.combined_bytes();
      for (const Leg& leg : round.legs) {
        EXPECT_LT(leg.peer, size);
        EXPECT_NE(leg.peer, rank);
        if (leg.side == Side::send) {
          ++totals.messages;
          totals.bytes += leg.part.bytes;
          met[{rank, leg.peer}].first.push_back(leg.part.bytes);
        } else {
          met[{leg.peer, rank}].second.push_back(leg.part.bytes);
        }
      }
    }
  }
  for (const auto& [ends, sizes] : met) {
    EXPECT_EQ(sizes.first, sizes.second) << choice << " of " << size << ": from " << ends.first << " to "
                                         << ends.second;
  }
  return totals;
}

Part of(uint64_t bytes) { return {.bytes = bytes, .count = static_cast<int64_t>(bytes), .type = trace::none}; }

class OfRanks : public testing::TestWithParam<uint32_t> {
 protected:
  const uint64_t P = GetParam();
  const uint32_t size = GetParam();
  const uint64_t s = 1000;  // most P do not divide it
  const auto rooted(Call call, uint32_t root) const {
    return [=, this](uint32_t rank) {
      CollectiveCall made{{.root = root}, call};
      if (call == Call::Reduce || rank == root || call == Call::Gather) made.sends = {of(s)};
      if (call == Call::Bcast || call == Call::Scatter || rank == root) made.receives = {of(s)};
      return made;
    };
  }
  static uint64_t log_up(uint64_t ranks) { return std::bit_width(ranks - 1); }
};
INSTANTIATE_TEST_SUITE_P(Sizes, OfRanks, testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 16));

TEST_P(OfRanks, Barriers) {
  const auto barrier = [](uint32_t) { return CollectiveCall{{}, Call::Barrier}; };
  // dissemination: each rank sends in each of ceil(log2 P) rounds; linear: P - 1 messages in and out
  EXPECT_EQ(play(size, barrier, "barrier=dissemination").messages, P * log_up(P));
  EXPECT_EQ(play(size, barrier, "barrier=linear").messages, 2 * (P - 1));
}

// A tree has P - 1 edges; each carries s, or what is below it.
TEST_P(OfRanks, Trees) {
  for (const uint32_t root : {0U, size / 2, size - 1}) {
    SCOPED_TRACE(text("root ", root));
    for (const char* const choice : {"bcast=binomial", "bcast=linear"}) {
      const Totals totals = play(size, rooted(Call::Bcast, root), choice);
      EXPECT_EQ(totals.messages, P - 1);
      EXPECT_EQ(totals.bytes, (P - 1) * s);
    }
    for (const char* const choice : {"reduce=binomial", "reduce=linear"}) {
      const Totals totals = play(size, rooted(Call::Reduce, root), choice);
      EXPECT_EQ(totals.messages, P - 1);
      EXPECT_EQ(totals.bytes, (P - 1) * s);
      EXPECT_EQ(totals.combined, (P - 1) * s);
    }
    for (const auto& [call, name] : {std::pair(Call::Gather, "gather"), std::pair(Call::Scatter, "scatter")}) {
      EXPECT_EQ(play(size, rooted(call, root), text(name, "=linear")).bytes, (P - 1) * s);
      const Totals totals = play(size, rooted(call, root), text(name, "=binomial"));
      EXPECT_EQ(totals.messages, P - 1);
      // the subtree of place v has min(lowest bit of v, P - v) places
      uint64_t below = 0;
      for (uint64_t place = 1; place < P; ++place) below += std::min(place & (~place + 1), P - place);
      EXPECT_EQ(totals.bytes, below * s);
    }
  }
}

// Shares go down a tree (each edge what is below it) and P - 1 times around the ring.
TEST_P(OfRanks, ScatterRingBroadcast) {
  const Totals totals = play(size, rooted(Call::Bcast, size - 1), "bcast=scatter-ring");
  EXPECT_EQ(totals.messages, P - 1 + P * (P - 1));
  EXPECT_GE(totals.bytes, (P - 1) * s + (P - 1) * (s / P));
}

TEST_P(OfRanks, Allgathers) {
  const auto call = [&](uint32_t) { return CollectiveCall{{.sends = {of(s)}, .receives = {of(s)}}, Call::Allgather}; };
  // each rank gets P - 1 blocks: by itself, or several at a time
  for (const char* const name : {"ring", "linear", "bruck"}) {
    const Totals totals = play(size, call, text("allgather=", name));
    EXPECT_EQ(totals.bytes, P * (P - 1) * s) << name;
    EXPECT_EQ(totals.messages, P * (std::string_view(name) == "bruck" ? log_up(P) : P - 1)) << name;
  }
}

// Rank r has 100 r bytes: everyone gets those of all others.
TEST_P(OfRanks, AllgathervOfTheirOwnSizes) {
  std::vector<Part> blocks;
  for (uint64_t rank = 0; rank < P; ++rank) blocks.push_back(of(100 * rank));
  const auto call = [&](uint32_t rank) {
    return CollectiveCall{{.sends = {blocks[rank]}, .receives = blocks}, Call::Allgatherv};
  };
  EXPECT_EQ(play(size, call, "allgatherv=ring").bytes, 100 * (P - 1) * (P * (P - 1) / 2));
  EXPECT_EQ(play(size, call, "allgatherv=linear").bytes, 100 * (P - 1) * (P * (P - 1) / 2));
}

TEST_P(OfRanks, Alltoalls) {
  const auto call = [&](uint32_t) { return CollectiveCall{{.sends = {of(s)}, .receives = {of(s)}}, Call::Alltoall}; };
  for (const char* const name : {"pairwise", "linear"}) {
    const Totals totals = play(size, call, text("alltoall=", name));
    EXPECT_EQ(totals.messages, P * (P - 1));
    EXPECT_EQ(totals.bytes, P * (P - 1) * s);
  }
  // a block goes as many times as its distance has bits
  uint64_t bits = 0;
  for (uint64_t distance = 1; distance < P; ++distance) bits += static_cast<uint64_t>(std::popcount(distance));
  const Totals bruck = play(size, call, "alltoall=bruck");
  EXPECT_EQ(bruck.messages, P * log_up(P));
  EXPECT_EQ(bruck.bytes, P * bits * s);
}

// Rank i sends (i + 2 j) % 3 elements of 100 B to rank j: what is empty is not sent.
TEST_P(OfRanks, AlltoallvSendsNothingThatIsEmpty) {
  const auto bytes = [](uint64_t from, uint64_t to) { return (from + 2 * to) % 3 * 100; };
  const auto call = [&](uint32_t rank) {
    CollectiveCall made{{}, Call::Alltoallv};
    for (uint64_t peer = 0; peer < P; ++peer) {
      made.sends.push_back(of(bytes(rank, peer)));
      made.receives.push_back(of(bytes(peer, rank)));
    }
    return made;
  };
  uint64_t sum = 0;
  uint64_t messages = 0;
  for (uint64_t from = 0; from < P; ++from) {
    for (uint64_t to = 0; to < P; ++to) {
      if (from == to) continue;
      sum += bytes(from, to);
      messages += bytes(from, to) != 0;
    }
  }
  for (const char* const name : {"pairwise", "linear"}) {
    const Totals totals = play(size, call, text("alltoallv=", name));
    EXPECT_EQ(totals.bytes, sum) << name;
    EXPECT_EQ(totals.messages, messages) << name;
  }
}

TEST_P(OfRanks, Allreduces) {
  const auto call = [&](uint32_t) { return CollectiveCall{{.sends = {of(s)}}, Call::Allreduce}; };
  // recursive doubling over 2^k <= P ranks, and two messages for each of the others
  const uint64_t power = std::bit_floor(P);
  const uint64_t doubling = power * log_up(power) + 2 * (P - power);
  EXPECT_EQ(play(size, call, "allreduce=recursive-doubling").bytes, doubling * s);
  // ring: 2 (P - 1) times around, each time all shares: s bytes
  const Totals ring = play(size, call, "allreduce=ring");
  EXPECT_EQ(ring.bytes, 2 * (P - 1) * s);
  EXPECT_EQ(ring.messages, 2 * P * (P - 1));
  EXPECT_EQ(ring.combined, (P - 1) * s);
  EXPECT_EQ(play(size, call, "allreduce=tree").bytes, 2 * (P - 1) * s);
  // halving and doubling: each of the 2^k ranks sends all shares but its own twice
  EXPECT_EQ(play(size, call, "allreduce=rabenseifner").bytes, 2 * (power - 1) * s + 2 * (P - power) * s);
}

TEST_P(OfRanks, ReduceScatterSendsEachItsBlock) {
  std::vector<Part> blocks;
  for (uint64_t rank = 0; rank < P; ++rank) blocks.push_back(of(10 * rank + 1));
  const auto call = [&](uint32_t) { return CollectiveCall{{.sends = blocks}, Call::Reduce_scatter}; };
  const uint64_t sum = 10 * P * (P - 1) / 2 + P;
  EXPECT_EQ(play(size, call, "reduce_scatter=pairwise").bytes, (P - 1) * sum);
}

TEST_P(OfRanks, Scans) {
  const auto call = [&](uint32_t) { return CollectiveCall{{.sends = {of(s)}}, Call::Scan}; };
  EXPECT_EQ(play(size, call, "scan=linear").messages, P - 1);
  // in the round of distance d, P - d ranks send
  uint64_t messages = 0;
  for (uint64_t distance = 1; distance < P; distance *= 2) messages += P - distance;
  EXPECT_EQ(play(size, call, "scan=binomial").messages, messages);
  EXPECT_EQ(play(size, call, "scan=binomial").combined, messages * s);
}

// On a periodic ring of P ranks, also where both neighbours are one: to the lower one 100 B, to the upper one 200 B.
TEST_P(OfRanks, NeighboursOnARing) {
  if (P < 2) return;
  const auto call = [&](uint32_t rank) {
    const auto lower = static_cast<int32_t>((rank + P - 1) % P);
    const auto upper = static_cast<int32_t>((rank + 1) % P);
    return CollectiveCall{{.is_grid = true,
                           .sends = {of(100), of(200)},
                           .receives = {of(200), of(100)},
                           .sources = {lower, upper},
                           .destinations = {lower, upper}},
                          Call::Neighbor_alltoallv};
  };
  if (P == 2) {
    // both ends have the same neighbour twice: fits() takes two blocks for two neighbours
    EXPECT_EQ(play(size, call, "neighbor_alltoallv=direct").bytes, 600U);
    return;
  }
  EXPECT_EQ(play(size, call, "neighbor_alltoallv=direct").bytes, 300 * P);
}

TEST(Collectives, AlgorithmsGoBySizeUnlessOneIsChosen) {
  const Algorithms usual;
  CollectiveCall call{{.size = 8, .sends = {of(8)}}, Call::Allreduce};
  EXPECT_EQ(algorithm_of(call, usual), "recursive-doubling");
  call.sends = {of(1 << 20)};
  EXPECT_EQ(algorithm_of(call, usual), "ring");
  EXPECT_EQ(algorithm_of(call, only("allreduce=tree")), "tree");
}

TEST(Collectives, WhatIsNotThereIsNamed) {
  EXPECT_EQ(parse_choices({"allreduce=fast"}).error().message,
            "allreduce has no algorithm 'fast'; it has: recursive-doubling, ring, tree, rabenseifner, chain, binary, "
            "double-tree");
  EXPECT_TRUE(
      parse_choices({"alreduce=ring"}).error().message.starts_with("there is no collective operation 'alreduce'"));
  EXPECT_TRUE(parse_choices({"ring"}).error().message.starts_with("'ring' is no choice of an algorithm"));
}

}  // namespace
}  // namespace spinloom::predict
