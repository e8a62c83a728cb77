// Checks what ranks know when a pattern has ended: broadcasts reach all, reductions have each contribution once, blocks
// are where they belong.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/patterns/testing/knowledge.hpp"
#include "predict/schedule/check.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Kind;

Whose range(uint32_t first, uint32_t end) {
  Whose found{};
  for (uint32_t one = first; one < end; ++one) found[one] = 1;
  return found;
}
Whose of(uint32_t rank) { return range(rank, rank + 1); }

Held pieces(uint64_t count, const Whose& whose) {
  Held held;
  for (uint64_t chunk = 0; chunk < count; ++chunk) held[chunk] = whose;
  return held;
}

std::vector<Chunk> chunks(uint64_t first, uint64_t count, uint64_t modulo = UINT64_MAX) {
  std::vector<Chunk> found;
  for (uint64_t one = first; one < first + count; ++one) found.push_back(one % modulo);
  return found;
}

uint32_t reach(uint32_t rank, uint32_t ranks) { return rank == 0 ? std::bit_ceil(ranks) : rank & (~rank + 1); }
uint32_t below(uint32_t rank, uint32_t ranks) { return std::min(reach(rank, ranks), ranks - rank); }

// Returns the place of a rank among the largest power of two of at most `ranks`; the others are folded away.
uint32_t place_in(uint32_t rank, uint32_t ranks) {
  const uint32_t beyond = ranks - std::bit_floor(ranks);
  return rank < 2 * beyond ? rank / 2 : rank - beyond;
}
bool is_folded(uint32_t rank, uint32_t ranks) { return rank < 2 * (ranks - std::bit_floor(ranks)) && rank % 2 == 0; }

std::vector<Story> stories(uint32_t P) {
  const auto all = [P](uint32_t) { return Held{{0, range(0, P)}}; };
  const auto root_has = [](uint64_t count) {
    return [count](uint32_t rank) { return rank == 0 ? pieces(count, of(0)) : Held{}; };
  };
  const auto all_have = [](uint64_t count) { return [count](uint32_t) { return pieces(count, of(0)); }; };
  const auto root_gets = [P](uint64_t count) {
    return [P, count](uint32_t rank) { return rank == 0 ? pieces(count, range(0, P)) : Held{}; };
  };
  const auto each_has = [](uint64_t count) { return [count](uint32_t rank) { return pieces(count, of(rank)); }; };
  const auto own_block = [](uint32_t rank) { return Held{{rank, of(rank)}}; };
  const auto all_blocks = [P](uint32_t) {
    Held held;
    for (uint32_t rank = 0; rank < P; ++rank) held[rank] = of(rank);
    return held;
  };
  const auto whole = [](const Sent&) { return std::vector<Chunk>{0}; };
  std::vector<Story> found;

  // Barriers: everyone hears of everyone, and a message has no bytes for that.
  const auto known_by = [P](uint32_t radix) {
    return [P, radix](const Sent& sent) {
      // before the round of `distance` a rank knows of those up to distance - 1 before it
      uint64_t distance = 1;
      uint32_t count = sent.count;
      while (count >= std::min<uint64_t>(radix - 1, (P - 1) / distance)) {
        count -= static_cast<uint32_t>(std::min<uint64_t>(radix - 1, (P - 1) / distance));
        distance *= radix;
      }
      std::vector<Chunk> ranks;
      for (uint64_t back = 0; back < distance; ++back) ranks.push_back((sent.from + P - back) % P);
      return ranks;
    };
  };
  for (const uint32_t radix : {2, 3, 4, 8}) {
    Story story{"dissemination", own_block, known_by(radix), all_blocks};
    story.chunk_bytes = story.bytes = 0;
    story.options.radix = radix;
    found.push_back(story);
  }
  {
    Story story{"linear_barrier", own_block, nullptr, all_blocks};
    story.carries = [P](const Sent& sent) { return sent.from == 0 ? chunks(0, P) : chunks(sent.from, 1); };
    story.chunk_bytes = story.bytes = 0;
    found.push_back(story);
  }

  found.push_back({"linear_broadcast", root_has(1), whole, all_have(1)});
  found.push_back({"binomial_broadcast", root_has(1), whole, all_have(1)});
  {
    Story story{"scatter_ring_broadcast", root_has(P), nullptr, all_have(P)};
    story.bytes = P * unit;
    story.carries = [P](const Sent& sent) -> std::vector<Chunk> {
      const uint32_t children = static_cast<uint32_t>([&] {
        uint32_t count = 0;
        for (uint32_t d = reach(sent.from, P) / 2; d > 0; d /= 2) count += d < P - sent.from;
        return count;
      }());
      if (sent.count < children) return chunks(sent.to, below(sent.to, P));
      return chunks((sent.from + P - (sent.count - children)) % P, 1);
    };
    found.push_back(story);
  }
  for (const uint64_t count : {1, 2, 5}) {
    const auto by_peer = [](const Sent& sent) { return chunks(sent.count_to, 1); };
    Story trees{"double_tree_broadcast", root_has(count), nullptr, all_have(count)};
    trees.carries = [](const Sent& sent) { return chunks(2 * uint64_t{sent.count_to} + sent.tag, 1); };
    trees.bytes = count * unit;
    trees.options.segment_bytes = unit;
    found.push_back(trees);
    for (const char* const name : {"chain_broadcast", "binary_broadcast"}) {
      Story story{name, root_has(count), by_peer, all_have(count)};
      story.bytes = count * unit;
      story.options.segment_bytes = unit;
      found.push_back(story);
    }
    for (const char* const name : {"chain_reduce", "binary_reduce"}) {
      Story story{name, each_has(count), by_peer, root_gets(count), true};
      story.bytes = count * unit;
      story.options.segment_bytes = unit;
      found.push_back(story);
    }
  }

  found.push_back({"linear_reduce", each_has(1), whole, root_gets(1), true});
  found.push_back({"binomial_reduce", each_has(1), whole, root_gets(1), true});
  const auto own_of_all = [](const Sent& sent) { return chunks(sent.from, 1); };
  const auto at_root = [all_blocks](uint32_t rank) { return rank == 0 ? all_blocks(rank) : Held{}; };
  found.push_back({"linear_gather", own_block, own_of_all, at_root});
  found.push_back({"binomial_gather", own_block,
                   [P](const Sent& sent) { return chunks(sent.from, below(sent.from, P)); }, at_root});
  found.push_back({"linear_scatter", at_root, [](const Sent& sent) { return chunks(sent.to, 1); }, own_block});
  found.push_back(
      {"binomial_scatter", at_root, [P](const Sent& sent) { return chunks(sent.to, below(sent.to, P)); }, own_block});

  found.push_back({"linear_allgather", own_block, own_of_all, all_blocks});
  found.push_back({"ring_allgather", own_block,
                   [P](const Sent& sent) { return chunks((sent.from + P - sent.count) % P, 1); }, all_blocks});
  found.push_back({"bruck_allgather", own_block,
                   [P](const Sent& sent) {
                     const uint64_t distance = uint64_t{1} << sent.count;
                     return chunks(sent.from, std::min(distance, P - distance), P);
                   },
                   all_blocks});
  if (std::has_single_bit(P)) {
    found.push_back({"recursive_doubling_allgather", own_block,
                     [](const Sent& sent) {
                       const uint64_t mask = uint64_t{1} << sent.count;
                       return chunks(sent.from & ~(mask - 1), mask);
                     },
                     all_blocks});
  }

  // All-to-all: piece i P + j goes from i to j.
  const auto rows = [P](uint32_t rank) {
    Held held;
    for (uint32_t to = 0; to < P; ++to) held[uint64_t{rank} * P + to] = of(rank);
    return held;
  };
  const auto columns = [P](uint32_t rank) {
    Held held;
    for (uint32_t from = 0; from < P; ++from) held[uint64_t{from} * P + rank] = of(from);
    return held;
  };
  const auto direct = [P](const Sent& sent) { return chunks(uint64_t{sent.from} * P + sent.to, 1); };
  found.push_back({"linear_alltoall", rows, direct, columns});
  found.push_back({"pairwise_exchange", rows, direct, columns});
  found.push_back({"bruck_alltoall", rows,
                   [P](const Sent& sent) {
                     // what goes i ranks on is, before the round of bit b, i mod b ranks on; it moves if i has b
                     std::vector<Chunk> moved;
                     const uint32_t bit = 1U << sent.count;
                     for (uint32_t i = 1; i < P; ++i) {
                       if ((i & bit) == 0) continue;
                       const uint64_t from = (sent.from + P - i % bit) % P;
                       moved.push_back(from * P + (from + i) % P);
                     }
                     return moved;
                   },
                   columns});

  {
    Story story{"ring_allreduce", each_has(P), nullptr, nullptr, true};
    story.carries = [P](const Sent& sent) {
      return chunks((sent.from + 2 * P - sent.count + (sent.count >= P - 1 ? P : 0)) % P, 1);
    };
    story.ends = [P](uint32_t) { return pieces(P, range(0, P)); };
    story.replaces = [P](const Sent& sent) { return sent.count >= P - 1; };
    story.bytes = P * unit;
    found.push_back(story);
  }
  {
    // Ranks of the fold send before and after; the result takes the place of what there is.
    Story story{"recursive_doubling_allreduce", each_has(1), whole, all, true};
    story.replaces = [P](const Sent& sent) { return is_folded(sent.to, P); };
    found.push_back(story);
    const uint32_t power = std::bit_floor(P);
    Story halving{"rabenseifner_allreduce", each_has(power), nullptr, nullptr, true};
    halving.ends = [P, power](uint32_t) { return pieces(power, range(0, P)); };
    halving.bytes = power * unit;
    const auto rounds = static_cast<uint32_t>(std::countr_zero(power));
    halving.carries = [P, power, rounds](const Sent& sent) {
      if (is_folded(sent.from, P) || is_folded(sent.to, P)) return chunks(0, power);
      const uint32_t to = place_in(sent.to, P);
      const uint32_t from = place_in(sent.from, P);
      if (sent.count < rounds) {
        const uint32_t mask = power >> (sent.count + 1);
        return chunks(to & ~(mask - 1), mask);
      }
      const uint32_t mask = 1U << (sent.count - rounds);
      return chunks(from & ~(mask - 1), mask);
    };
    halving.replaces = [P, rounds](const Sent& sent) {
      return is_folded(sent.to, P) || (!is_folded(sent.from, P) && sent.count >= rounds);
    };
    found.push_back(halving);
  }
  {
    Story story{"tree_allreduce", each_has(1), whole, all, true};
    story.replaces = [](const Sent& sent) { return sent.to > sent.from; };
    found.push_back(story);
  }
  const auto own_share = [P](uint32_t rank) { return Held{{rank, range(0, P)}}; };
  found.push_back(
      {"pairwise_reduce_scatter", each_has(P), [](const Sent& sent) { return chunks(sent.to, 1); }, own_share, true});
  if (std::has_single_bit(P)) {
    found.push_back({"recursive_halving_reduce_scatter", each_has(P),
                     [P](const Sent& sent) {
                       const uint32_t mask = P >> (sent.count + 1);
                       return chunks(sent.to & ~(mask - 1), mask);
                     },
                     own_share, true});
  }
  const auto up_to = [](uint32_t rank) { return Held{{0, range(0, rank + 1)}}; };
  found.push_back({"linear_scan", each_has(1), whole, up_to, true});
  found.push_back({"binomial_scan", each_has(1), whole, up_to, true});
  return found;
}

class Knowledge : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Knowledge,
                         testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 64));

TEST_P(Knowledge, RanksHaveWhatThePatternIsFor) {
  const uint32_t P = GetParam();
  std::set<std::string> told;
  for (const Story& story : stories(P)) {
    SCOPED_TRACE(text(story.name, " of ", P, " ranks"));
    told.insert(story.name);
    const auto made = make_pattern(story.name, P, story.bytes, story.options);
    ASSERT_TRUE(made) << made.error().message;
    const Status whole = schedule::check(*made);
    ASSERT_TRUE(whole) << whole.error().message;
    Play play(*made, story);
    for (uint32_t rank = 0; rank < P; ++rank) {
      const Held held = play.at_end(rank);
      for (const auto& [chunk, whose] : story.ends(rank)) {
        const auto has = held.find(chunk);
        ASSERT_TRUE(has != held.end()) << "rank " << rank << " has not got piece " << chunk;
        EXPECT_EQ(has->second, whose) << "piece " << chunk << " of rank " << rank;
      }
    }
  }
  for (const PatternName& pattern : pattern_names()) {
    const bool is_halo = pattern.name.starts_with("halo");
    const bool needs_power =
        pattern.name == "recursive_doubling_allgather" || pattern.name == "recursive_halving_reduce_scatter";
    if (is_halo || (needs_power && !std::has_single_bit(P))) continue;
    EXPECT_TRUE(told.contains(std::string(pattern.name))) << pattern.name;
  }
}

// Two trees: a rank that passes segments on in both, there is one at most.
TEST_P(Knowledge, WhoPassesOnInOneTreeIsALeafOfTheOther) {
  const auto made = make_pattern("double_tree_broadcast", GetParam(), 8 * unit, {.segment_bytes = unit});
  ASSERT_TRUE(made) << made.error().message;
  uint32_t in_both = 0;
  for (uint32_t rank = 1; rank < GetParam(); ++rank) {
    std::set<uint32_t> tags;
    for (const schedule::Operation& operation : made->program(rank).operations) {
      if (made->shape(operation).kind == Kind::send) tags.insert(made->shape(operation).tag);
    }
    in_both += tags.size() == 2;
  }
  EXPECT_LE(in_both, 1);
}

}  // namespace
}  // namespace spinloom::goal
