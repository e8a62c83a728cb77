#include "predict/goal/patterns/patterns.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "portals/collective/algorithms.hpp"
#include "predict/goal/patterns/pattern_program.hpp"

namespace spinloom::goal {
namespace {

namespace algorithms = collective::algorithms;
using algorithms::MakeRounds;
using collective::Collective;
using schedule::Schedule;

// The ranks that have the same Program: all, with peers at the same distance; ranks of a binomial tree with equally
// many ranks below them; or unknown until the Programs are made, which are compared then.
enum class ProgramSharing : uint8_t { all, by_subtree, by_program };
enum class Ranks : uint8_t { any, power_of_two };
// The data that `bytes` measures: a message; a block, several of which go together; all shares, one for each rank and
// all of one size; or a message that is cut into segments.
enum class Bytes : uint8_t { message, blocks, shares, segments };

struct Pattern {
  std::string_view name;
  std::string_view about;
  ProgramSharing sharing;
  Bytes bytes;
  MakeRounds* make;
  MakeRounds* second_make = nullptr;  // makes the second strand, where there are two
  Ranks ranks = Ranks::any;
  uint32_t dimensions = 0;  // the dimensions of a halo's grid
};

using enum ProgramSharing;
using enum Bytes;

constexpr Pattern patterns[] = {
    {"dissemination", "barrier: in each round to ranks ever further away (--radix)", all, message,
     algorithms::dissemination},
    {"linear_barrier", "barrier: all to rank 0, rank 0 to all", by_program, message, algorithms::linear_barrier},
    {"linear_broadcast", "broadcast: rank 0 to each", by_program, message, algorithms::linear_bcast},
    {"binomial_broadcast", "broadcast: down a binomial tree", by_subtree, message, algorithms::binomial_bcast},
    {"scatter_ring_broadcast", "broadcast: shares down a tree and around a ring", by_subtree, shares,
     algorithms::scatter_ring_bcast},
    {"chain_broadcast", "broadcast: from rank to rank (--segment)", by_program, segments, algorithms::chain_bcast},
    {"binary_broadcast", "broadcast: down a binary tree (--segment)", by_program, segments, algorithms::binary_bcast},
    {"double_tree_broadcast", "broadcast: down two binary trees, half of the segments each (--segment)", by_program,
     segments, algorithms::double_tree_first, algorithms::double_tree_second},
    {"linear_reduce", "reduce: each to rank 0, one after the other", by_program, message, algorithms::linear_reduce},
    {"binomial_reduce", "reduce: up a binomial tree", by_subtree, message, algorithms::binomial_reduce},
    {"chain_reduce", "reduce: from rank to rank (--segment)", by_program, segments, algorithms::chain_reduce},
    {"binary_reduce", "reduce: up a binary tree (--segment)", by_program, segments, algorithms::binary_reduce},
    {"linear_gather", "gather: each to rank 0", by_program, message, algorithms::linear_gather},
    {"binomial_gather", "gather: up a binomial tree; bytes of a rank's block", by_subtree, blocks,
     algorithms::binomial_gather},
    {"linear_scatter", "scatter: rank 0 to each", by_program, message, algorithms::linear_scatter},
    {"binomial_scatter", "scatter: down a binomial tree; bytes of a rank's block", by_subtree, blocks,
     algorithms::binomial_scatter},
    {"linear_allgather", "all-gather: each to each at once", all, message, algorithms::linear_allgather},
    {"ring_allgather", "all-gather: blocks around a ring", all, message, algorithms::ring_allgather},
    {"bruck_allgather", "all-gather: twice as many blocks in each round; bytes of a rank's block", all, blocks,
     algorithms::bruck_allgather},
    {"recursive_doubling_allgather", "all-gather: blocks between ranks 1, 2, 4 .. apart; bytes of a rank's block",
     by_program, blocks, algorithms::recursive_doubling_allgather, nullptr, Ranks::power_of_two},
    {"linear_alltoall", "all-to-all: each to each at once", all, message, algorithms::linear_alltoall},
    {"pairwise_exchange", "all-to-all: each with one other after the other", all, message,
     algorithms::pairwise_alltoall},
    {"bruck_alltoall", "all-to-all: half of the blocks in each round; bytes of a block", all, blocks,
     algorithms::bruck_alltoall},
    {"ring_allreduce", "all-reduce: shares twice around a ring; bytes of all shares", all, shares,
     algorithms::ring_allreduce},
    {"recursive_doubling_allreduce", "all-reduce: between ranks 1, 2, 4 .. apart", by_program, message,
     algorithms::recursive_doubling_allreduce},
    {"rabenseifner_allreduce", "all-reduce: halving and then doubling; bytes of all shares", by_program, message,
     algorithms::rabenseifner_allreduce},
    {"tree_allreduce", "all-reduce: up and down a binomial tree", by_subtree, message, algorithms::tree_allreduce},
    {"pairwise_reduce_scatter", "reduce-scatter: each with one other after the other", all, message,
     algorithms::pairwise_reduce_scatter},
    {"recursive_halving_reduce_scatter", "reduce-scatter: between ranks .. 4, 2, 1 apart; bytes of a rank's block",
     by_program, blocks, algorithms::recursive_halving_reduce_scatter, nullptr, Ranks::power_of_two},
    {"linear_scan", "scan: from rank to rank", by_program, message, algorithms::linear_scan},
    {"binomial_scan", "scan: to ranks 1, 2, 4 .. further on", by_program, message, algorithms::binomial_scan},
    {"halo_2d", "halo: each with four neighbours on a periodic grid (--grid)", by_program, message,
     algorithms::neighbor_alltoall, nullptr, Ranks::any, 2},
    {"halo_3d", "halo: each with six neighbours on a periodic grid (--grid)", by_program, message,
     algorithms::neighbor_alltoall, nullptr, Ranks::any, 3},
};

constexpr uint32_t ranks_max = 1U << 29;  // operations of a rank are at most four times as many
constexpr uint64_t segment_bytes_usual = 8192;
constexpr uint64_t segments_max = 1U << 24;

// Returns as many factors of `ranks` as dimensions, with the least sum; ascending.
std::vector<uint32_t> balanced(uint32_t ranks, uint32_t dimensions) {
  if (dimensions == 1) return {ranks};
  std::vector<uint32_t> best;
  for (uint64_t first = 1; first * first <= ranks; ++first) {
    if (ranks % first != 0) continue;
    std::vector<uint32_t> grid = balanced(static_cast<uint32_t>(ranks / first), dimensions - 1);
    grid.insert(grid.begin(), static_cast<uint32_t>(first));
    const auto sum = [](const std::vector<uint32_t>& of) { return std::accumulate(of.begin(), of.end(), uint64_t{0}); };
    if (best.empty() || sum(grid) < sum(best)) best = std::move(grid);
  }
  std::ranges::sort(best);
  return best;
}

// Returns the ranks before and behind a rank along each dimension, around the edges; -1 where the neighbour is the rank
// itself.
std::vector<int32_t> neighbours(const std::vector<uint32_t>& grid, uint32_t rank) {
  std::vector<int32_t> ranks_around;
  uint64_t stride = 1;
  for (auto size = grid.rbegin(); size != grid.rend(); stride *= *size++) {
    const uint64_t coordinate = rank / stride % *size;
    const uint64_t first = rank - coordinate * stride;
    for (const uint64_t other : {(coordinate + *size - 1) % *size, (coordinate + 1) % *size}) {
      ranks_around.push_back(other == coordinate ? -1 : static_cast<int32_t>(first + other * stride));
    }
  }
  return ranks_around;
}

Status check_options(const Pattern& pattern, uint32_t ranks, uint64_t bytes, const PatternOptions& options) {
  if (ranks < 2 || ranks > ranks_max) {
    return fail(Code::invalid, pattern.name, " of ", ranks, " ranks: give 2 to ", ranks_max, " ranks");
  }
  if (pattern.ranks == Ranks::power_of_two && !std::has_single_bit(ranks)) {
    return fail(Code::invalid, pattern.name, " of ", ranks, " ranks: give a power of two");
  }
  if (options.radix.has_value()) {
    if (pattern.make != algorithms::dissemination) {
      return fail(Code::invalid, pattern.name, " has no radix; dissemination has one");
    }
    if (*options.radix < 2) return fail(Code::invalid, "a radix of ", *options.radix, ": give 2 or more");
  }
  if (options.segment_bytes.has_value() && pattern.bytes != segments) {
    return fail(Code::invalid, pattern.name, " sends no segments; chains, binary and double trees do");
  }
  if (pattern.bytes == segments) {
    const uint64_t each = options.segment_bytes.value_or(segment_bytes_usual);
    if (each == 0 || bytes / each >= segments_max) {
      return fail(Code::invalid, bytes, " bytes in segments of ", each,
                  " bytes: give segments of which there are at most ", segments_max);
    }
  }
  if (pattern.bytes != message && bytes > INT64_MAX / ranks) {
    return fail(Code::overflow, pattern.name, " of ", bytes, " bytes: give ", ranks, " ranks at most ",
                INT64_MAX / ranks, " bytes");
  }
  if (options.grid.empty()) return {};
  if (pattern.dimensions == 0) return fail(Code::invalid, pattern.name, " has no grid; halos have one");
  unsigned __int128 product = 1;
  for (const uint32_t size : options.grid) product = std::min<unsigned __int128>(product * size, UINT64_MAX);
  if (options.grid.size() != pattern.dimensions || product != ranks) {
    return fail(Code::invalid, pattern.name, " of ", ranks, " ranks: the grid needs ", pattern.dimensions,
                " numbers whose product is ", ranks);
  }
  return {};
}

// Returns the classes of ranks that have the same place in a binomial tree, each with its first rank first.
std::vector<std::vector<uint32_t>> classes_of_tree(uint32_t ranks) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> by_subtree_shape;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    by_subtree_shape[{algorithms::binomial_reach(ranks, rank), algorithms::binomial_subtree(ranks, rank)}].push_back(
        rank);
  }
  std::vector<std::vector<uint32_t>> classes;
  for (auto& [place, members] : by_subtree_shape) classes.push_back(std::move(members));
  return classes;
}

}  // namespace

Result<Schedule> make_pattern(std::string_view name, uint32_t ranks, uint64_t bytes, const PatternOptions& options) {
  const auto* const pattern = std::ranges::find(patterns, name, &Pattern::name);
  if (pattern == std::end(patterns)) {
    std::string known;
    for (const Pattern& one : patterns) known += text(known.empty() ? "" : ", ", one.name);
    return fail(Code::invalid, "there is no pattern '", name, "'; the patterns are ", known);
  }
  SPL_TRY(check_options(*pattern, ranks, bytes, options));
  if (pattern->bytes == shares) bytes = (bytes / ranks + (bytes % ranks != 0 ? 1 : 0)) * ranks;
  Collective call;
  call.size = ranks;
  call.sends = call.receives = {algorithms::packed(bytes)};
  call.radix = options.radix.value_or(2);
  call.segment_bytes = options.segment_bytes.value_or(segment_bytes_usual);
  const std::vector<uint32_t> grid =
      options.grid.empty() && pattern->dimensions > 0 ? balanced(ranks, pattern->dimensions) : options.grid;
  PatternProgram program(ranks, pattern->make == algorithms::pairwise_alltoall);
  const auto add = [&](uint32_t rank, bool distances) {
    call.rank = rank;
    if (!grid.empty()) {
      call.is_grid = true;
      call.sources = call.destinations = neighbours(grid, rank);
    }
    std::vector<std::vector<Round>> strands;
    for (MakeRounds* const make : {pattern->make, pattern->second_make}) {
      if (make == nullptr) continue;
      Rounds rounds;
      make(call, rounds);
      strands.push_back(rounds.take());
    }
    program.add(rank, strands, distances);
  };
  if (pattern->sharing == by_program) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      add(rank, false);
      program.intern(rank);
    }
    return program.take();
  }
  std::vector<std::vector<uint32_t>> classes(1);
  if (pattern->sharing == by_subtree) {
    classes = classes_of_tree(ranks);
  } else {
    classes.front().resize(ranks);
    std::iota(classes.front().begin(), classes.front().end(), 0U);
  }
  for (const std::vector<uint32_t>& members : classes) {
    add(members.front(), true);
    program.intern_for(members);
  }
  return program.take();
}

std::vector<PatternName> pattern_names() {
  std::vector<PatternName> names;
  for (const Pattern& one : patterns) names.push_back({one.name, one.about});
  return names;
}

}  // namespace spinloom::goal
