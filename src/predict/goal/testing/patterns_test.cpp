// Patterns of messages: times by algebra, numbers of messages and bytes, and the naive engine.
#include "predict/goal/patterns/patterns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/testing/random_schedules.hpp"
#include "predict/schedule/check.hpp"

namespace spinloom::goal {
namespace {

using schedule::Schedule;

Schedule must_make(std::string_view name, uint32_t ranks, uint64_t bytes) {
  auto made = make_pattern(name, ranks, bytes);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : Schedule();
}

bool needs_power(std::string_view name) {
  return name == "recursive_doubling_allgather" || name == "recursive_halving_reduce_scatter";
}

bool has_segments(std::string_view name) {
  return name.starts_with("chain") || name.starts_with("binary") || name.starts_with("double");
}

uint64_t makespan(std::string_view name, uint32_t ranks, uint64_t bytes, const LogGopSimParameters& parameters) {
  const auto outcome = run_loggopsim(must_make(name, ranks, bytes), parameters);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return outcome ? outcome->makespan : 0;
}

uint64_t ends(std::string_view name, uint32_t ranks, uint64_t bytes, const Model& model,
              const PatternOptions& options = {}) {
  const auto made = make_pattern(name, ranks, bytes, options);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  if (!made) return 0;
  const auto outcome = run(*made, model);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return outcome ? outcome->makespan_ps : 0;
}

// P = 2^k ranks, eager, o >= g:  T = k (2 o + L + (s - 1) G)
TEST(Patterns, BinomialBroadcastAndDisseminationTakeRounds) {
  for (const LogGopSimParameters& p :
       {LogGopSimParameters{}, LogGopSimParameters{.L = 700, .o = 40, .g = 40, .G = 3}}) {
    for (uint32_t rounds = 1; rounds <= 12; ++rounds) {
      for (const uint64_t bytes : {1, 24, 5000}) {
        const uint64_t expected = rounds * (2 * p.o + p.L + (bytes - 1) * p.G);
        EXPECT_EQ(makespan("binomial_broadcast", 1U << rounds, bytes, p), expected);
        EXPECT_EQ(makespan("dissemination", 1U << rounds, bytes, p), expected);
      }
    }
  }
}

// All messages come at o + L; the root takes one after the other, each max(o, g) + (s - 1) G after the one before.
TEST(Patterns, AGatherIsTakenOneByOne) {
  for (const uint64_t g : {500, 4000}) {
    const LogGopSimParameters p{.g = g};
    const uint64_t bytes = 11;
    const uint64_t each = std::max(p.o, p.g) + (bytes - 1) * p.G;
    EXPECT_EQ(makespan("linear_gather", 1000, bytes, p), p.o + p.L + 998 * each + p.o + (bytes - 1) * p.G);
  }
}

// Ring of 1-byte messages, o >= g:  T = 2 (P - 1) (2 o + L)
TEST(Patterns, ARingTakesItsSteps) {
  EXPECT_EQ(makespan("ring_allreduce", 9, 9, {}), 2 * 8 * (2 * 1500 + 2500));
  EXPECT_EQ(makespan("ring_allreduce", 9, 3, {}), 2 * 8 * (2 * 1500 + 2500));
}

// P = 2^k ranks, c = o, messages of ever more blocks of s bytes: 1, 2, 4 .. P / 2, or those the other way round
//   T = k (2 o + L) + ((P - 1) s - k) G
TEST(Patterns, BlocksThatDoubleTakeTheirBytes) {
  const Model m;
  for (uint32_t rounds = 1; rounds <= 8; ++rounds) {
    const uint32_t P = 1U << rounds;
    const uint64_t bytes = 24;
    const auto time = [&](uint64_t all) { return rounds * (2 * m.o_ps + m.L_ps) + (all - rounds) * 6000; };
    for (const char* const name : {"binomial_gather", "binomial_scatter", "bruck_allgather",
                                   "recursive_doubling_allgather", "recursive_halving_reduce_scatter"}) {
      EXPECT_EQ(ends(name, P, bytes, m), time((P - 1) * bytes)) << name << " " << P;
    }
    // half of P blocks in each round
    EXPECT_EQ(ends("bruck_alltoall", P, bytes, m), time(rounds * P / 2 * bytes)) << P;
    // shares of bytes / P, halved and then doubled
    EXPECT_EQ(ends("rabenseifner_allreduce", P, bytes * P, m), 2 * time((P - 1) * bytes)) << P;
    EXPECT_EQ(ends("binomial_scan", P, bytes, m), time(rounds * bytes)) << P;
    EXPECT_EQ(ends("tree_allreduce", P, bytes, m), 2 * time(rounds * bytes)) << P;
  }
}

// P - 1 steps of 2 o + L + (s - 1) G
TEST(Patterns, RingsAndChainsTakeTheirSteps) {
  const Model m;
  for (const uint32_t ranks : {2, 3, 8, 21}) {
    const uint64_t step = 2 * m.o_ps + m.L_ps + 99 * 6000;
    for (const char* const name : {"ring_allgather", "linear_scan", "chain_broadcast", "chain_reduce"}) {
      EXPECT_EQ(ends(name, ranks, 100, m), (ranks - 1) * step) << name << " " << ranks;
    }
    EXPECT_EQ(ends("scatter_ring_broadcast", 2, 200, m), 2 * step);
  }
}

// A chain of P > 2 ranks whose CPUs need o for each segment in and o for it out, n segments of 1 byte, o >= g:
//   T = (P - 1) (2 o + L) + (n - 1) 2 o
TEST(Patterns, SegmentsFollowEachOther) {
  const Model m;
  for (const uint32_t ranks : {3, 4, 9}) {
    for (const uint64_t segments : {1, 2, 7, 100}) {
      const uint64_t time = (ranks - 1) * (2 * m.o_ps + m.L_ps) + (segments - 1) * 2 * m.o_ps;
      for (const char* const name : {"chain_broadcast", "chain_reduce"}) {
        EXPECT_EQ(ends(name, ranks, segments, m, {.segment_bytes = 1}), time)
            << name << " " << ranks << " " << segments;
      }
    }
  }
}

// r^k ranks, messages of 1 byte, L >= (r - 2) o, o >= g: r - 1 sends, of which the last is there L later
//   T = k (r o + L)
TEST(Patterns, AWiderDisseminationHasFewerRounds) {
  const Model m{.L_ps = 50'000'000};
  for (const uint32_t radix : {2, 3, 4, 7}) {
    uint32_t ranks = 1;
    for (uint32_t rounds = 1; rounds <= 3; ++rounds) {
      ranks *= radix;
      EXPECT_EQ(ends("dissemination", ranks, 1, m, {.radix = radix}), rounds * (radix * m.o_ps + m.L_ps)) << radix;
    }
  }
}

// Each rank has two neighbours along each dimension that has more than one rank; both are one where it has two.
TEST(Patterns, HalosMeetTheirNeighbours) {
  const auto sends = [](std::string_view name, uint32_t ranks, const std::vector<uint32_t>& grid) {
    const auto made = make_pattern(name, ranks, 8, {.grid = grid});
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    const Status whole = schedule::check(*made);
    EXPECT_TRUE(whole) << (whole ? "" : whole.error().message);
    return schedule::count(*made).sends;
  };
  for (uint32_t ranks = 2; ranks <= 64; ++ranks) {
    EXPECT_EQ(sends("halo_2d", ranks, {1, ranks}), 2 * ranks);
    const bool is_prime = [&] {
      for (uint32_t one = 2; one < ranks; ++one) {
        if (ranks % one == 0) return false;
      }
      return true;
    }();
    EXPECT_EQ(sends("halo_2d", ranks, {}), (is_prime ? 2 : 4) * ranks);
  }
  EXPECT_EQ(sends("halo_2d", 12, {3, 4}), 48);
  EXPECT_EQ(sends("halo_3d", 64, {}), 6 * 64);
  EXPECT_EQ(sends("halo_3d", 24, {2, 3, 4}), 6 * 24);
  EXPECT_EQ(sends("halo_3d", 24, {1, 6, 4}), 4 * 24);
  // 64 is 4 x 4 x 4 and not 1 x 1 x 64: rank 0 meets 1 and 3, 4 and 12, 16 and 48.
  const Schedule cube = must_make("halo_3d", 64, 8);
  std::set<uint32_t> peers;
  for (const auto& operation : cube.program(0).operations) peers.insert(cube.peer(0, operation));
  EXPECT_EQ(peers, (std::set<uint32_t>{1, 3, 4, 12, 16, 48}));
}

// Messages and bytes of all ranks.
TEST(Patterns, MessagesAndBytesAreAsManyAsTheAlgebraSays) {
  std::vector<uint64_t> sizes = {32, 64};
  for (uint64_t P = 2; P <= 17; ++P) sizes.push_back(P);
  for (const uint64_t P : sizes) {
    const uint64_t s = 1000;
    const uint64_t rounds = static_cast<uint64_t>(std::bit_width(P - 1));
    const uint64_t power = std::bit_floor(P);
    const uint64_t doublings = static_cast<uint64_t>(std::bit_width(power) - 1);
    const uint64_t share = (s + P - 1) / P;
    uint64_t below = 0;  // ranks in the subtrees of a binomial tree
    uint64_t bits = 0;  // the bits of all distances
    uint64_t ahead = 0;  // ranks 1, 2, 4 .. further on
    for (uint64_t one = 1; one < P; ++one) {
      below += std::min(one & (~one + 1), P - one);
      bits += static_cast<uint64_t>(std::popcount(one));
    }
    for (uint64_t distance = 1; distance < P; distance *= 2) ahead += P - distance;
    const uint64_t all = P * (P - 1);
    struct Counted {
      std::string_view name;
      uint64_t messages;
      uint64_t bytes;
    };
    std::vector<Counted> expected = {
        {"dissemination", P * rounds, P * rounds * s},
        {"linear_barrier", 2 * (P - 1), 2 * (P - 1) * s},
        {"scatter_ring_broadcast", P - 1 + all, (below + all) * share},
        {"binomial_gather", P - 1, below * s},
        {"binomial_scatter", P - 1, below * s},
        {"linear_allgather", all, all * s},
        {"ring_allgather", all, all * s},
        {"bruck_allgather", P * rounds, all * s},
        {"linear_alltoall", all, all * s},
        {"pairwise_exchange", all, all * s},
        {"bruck_alltoall", P * rounds, P * bits * s},
        {"ring_allreduce", 2 * all, 2 * all * share},
        {"recursive_doubling_allreduce", power * doublings + 2 * (P - power),
         (power * doublings + 2 * (P - power)) * s},
        {"rabenseifner_allreduce", 2 * power * doublings + 2 * (P - power), 2 * (power - 1) * s + 2 * (P - power) * s},
        {"tree_allreduce", 2 * (P - 1), 2 * (P - 1) * s},
        {"pairwise_reduce_scatter", all, all * s},
        {"binomial_scan", ahead, ahead * s},
    };
    if (std::has_single_bit(P)) {
      expected.push_back({"recursive_doubling_allgather", P * rounds, all * s});
      expected.push_back({"recursive_halving_reduce_scatter", P * rounds, all * s});
    }
    for (const char* const name : {"linear_broadcast", "binomial_broadcast", "linear_reduce", "binomial_reduce",
                                   "linear_gather", "linear_scatter", "linear_scan"}) {
      expected.push_back({name, P - 1, (P - 1) * s});
    }
    for (const Counted& one : expected) {
      const schedule::Count counted = schedule::count(must_make(one.name, static_cast<uint32_t>(P), s));
      EXPECT_EQ(counted.sends, one.messages) << one.name << " " << P;
      EXPECT_EQ(counted.receives, one.messages) << one.name << " " << P;
      EXPECT_EQ(counted.sent_bytes, one.bytes) << one.name << " " << P;
    }
    for (const char* const name :
         {"chain_broadcast", "binary_broadcast", "double_tree_broadcast", "chain_reduce", "binary_reduce"}) {
      // 1000 bytes in segments of 300: 4 of them, the last one shorter
      const auto made = make_pattern(name, static_cast<uint32_t>(P), s, {.segment_bytes = 300});
      const schedule::Count counted = schedule::count(*made);
      EXPECT_EQ(counted.sends, 4 * (P - 1)) << name << " " << P;
      EXPECT_EQ(counted.sent_bytes, (P - 1) * s) << name << " " << P;
    }
  }
}

TEST(Patterns, AllAreWholeAndAsTheNaiveEngineSays) {
  for (const auto& [name, about] : pattern_names()) {
    for (const uint32_t ranks : {2, 3, 4, 7, 8, 13, 16, 41, 64}) {
      if (needs_power(name) && !std::has_single_bit(ranks)) continue;
      for (const uint64_t bytes : {0, 1, 700, 100'000'000}) {
        SCOPED_TRACE(text(name, " ", ranks, " ", bytes));
        PatternOptions options;
        if (has_segments(name)) options.segment_bytes = bytes / 5 + 1;
        const auto made_or = make_pattern(name, ranks, bytes, options);
        ASSERT_TRUE(made_or) << made_or.error().message;
        const Schedule& made = *made_or;
        const auto whole = schedule::check(made);
        EXPECT_TRUE(whole) << whole.error().message;
        test::compare(made, {});
        test::compare(made, {.L = 1000, .o = 200, .g = 900, .G = 2});
      }
    }
  }
}

TEST(Patterns, RanksShareProgramsAndEveryRankHasItsPart) {
  EXPECT_LE(must_make("dissemination", 1000, 1).memory_bytes(), 5000);
  EXPECT_LE(must_make("binomial_broadcast", 1 << 16, 1).programs().size(), 18);
  EXPECT_LE(must_make("linear_alltoall", 64, 1).programs().size(), 2);
  // One message into each rank but the root.
  EXPECT_EQ(must_make("binomial_broadcast", 1000, 1).operations(), 2 * 999);
  EXPECT_EQ(must_make("binomial_reduce", 1000, 1).operations(), 2 * 999);
  EXPECT_EQ(must_make("linear_barrier", 1000, 1).operations(), 4 * 999 + 1);
  EXPECT_EQ(must_make("linear_scatter", 1000, 1).operations(), 2 * 999);
}

TEST(Patterns, ErrorsNameWhatToGive) {
  const auto message = [](std::string_view name, uint32_t ranks) {
    const auto made = make_pattern(name, ranks, 8);
    return made ? "" : made.error().message;
  };
  EXPECT_TRUE(message("star", 4).starts_with("there is no pattern 'star'; the patterns are dissemination, linear_"));
  EXPECT_EQ(message("dissemination", 1), "dissemination of 1 ranks: give 2 to 536870912 ranks");
  EXPECT_EQ(message("recursive_doubling_allgather", 6), "recursive_doubling_allgather of 6 ranks: give a power of two");
  const auto refused = [](std::string_view name, uint32_t ranks, uint64_t bytes, const PatternOptions& options) {
    const auto made = make_pattern(name, ranks, bytes, options);
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(refused("linear_gather", 4, 8, {.radix = 4}), "linear_gather has no radix; dissemination has one");
  EXPECT_EQ(refused("dissemination", 4, 8, {.radix = 1}), "a radix of 1: give 2 or more");
  EXPECT_EQ(refused("dissemination", 4, 8, {.segment_bytes = 1}),
            "dissemination sends no segments; chains, binary and double trees do");
  EXPECT_EQ(refused("chain_broadcast", 4, 1 << 25, {.segment_bytes = 1}),
            "33554432 bytes in segments of 1 bytes: give segments of which there are at most 16777216");
  EXPECT_EQ(refused("chain_broadcast", 4, 8, {.segment_bytes = 0}),
            "8 bytes in segments of 0 bytes: give segments of which there are at most 16777216");
  EXPECT_EQ(refused("bruck_alltoall", 4, UINT64_MAX, {}),
            "bruck_alltoall of 18446744073709551615 bytes: give 4 ranks at most 2305843009213693951 bytes");
  EXPECT_EQ(refused("dissemination", 4, 8, {.grid = {4}}), "dissemination has no grid; halos have one");
  for (const std::vector<uint32_t>& grid : {std::vector<uint32_t>{4}, {2, 3}, {2, 2, 1}, {4, 0}}) {
    EXPECT_EQ(refused("halo_2d", 4, 8, {.grid = grid}),
              "halo_2d of 4 ranks: the grid needs 2 numbers whose product is 4");
  }
}

}  // namespace
}  // namespace spinloom::goal
