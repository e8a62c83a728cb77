// Passes - the small pure steps of normalisation, each with before/after examples in passes_test.cpp.
//
// Contract: each function takes nests in packed order and returns an equivalent nest, with fewer levels or
//   a simpler kind where it can. The order of the packed bytes never changes: neighbours are neighbours in
//   packed order only.
// Threads: pure, except that a PassLog of the same thread counts the passes. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "memory/layout/nest.hpp"

namespace spinloom::layout {

// Counts the passes that changed something in this thread while the log lives; of several logs, only the newest counts.
// Explanations print the counts.
class PassLog {
 public:
  PassLog();
  ~PassLog();
  PassLog(const PassLog&) = delete;
  PassLog& operator=(const PassLog&) = delete;

  void count(std::string_view step) { ++counts_[step]; }
  [[nodiscard]] const std::map<std::string_view, int64_t>& counts() const { return counts_; }

 private:
  PassLog* outer_log_;
  std::map<std::string_view, int64_t> counts_;
};

// Returns a run of `bytes` bytes; an empty Placed if `bytes` is 0.
PlacedNest run_of(int64_t displacement, int64_t bytes);

PlacedNest displaced(PlacedNest placed, int64_t by);

// Returns the common step of at least two offsets, if there is one.
std::optional<int64_t> regular_step(const std::vector<int64_t>& offsets);

// Joins runs that touch and drops empty ones, in place.
void merge_neighbours(std::vector<int64_t>& offsets, std::vector<int64_t>& lengths);

// Repeats the child `count` times, `stride` apart. Drops a level of count 1; collapses runs that touch into one run;
// fuses with an inner vector or loop whose stride goes on: repeat(a, c * s, loop(c, s, X)) = loop(a * c, s, X).
PlacedNest repeat(int64_t count, int64_t stride, const PlacedNest& child);

// In a long list of equal runs, few runs that touch are not merged: an entry of runs of several lengths takes twice
// the memory of a list's entry, and a loop over equal blocks is faster.
inline constexpr int64_t long_list_min = 1 << 14;   // entries
inline constexpr int64_t few_touch_share = 16;      // "few" means less than one run in this many
constexpr bool stays_a_list(int64_t entries, int64_t touching) {
  return entries >= long_list_min && touching < entries / few_touch_share;
}

// Makes a nest of equal children at listed displacements: touching runs merge, unless stays_a_list() is true; a regular
// list becomes repeat().
PlacedNest scatter(std::vector<int64_t> displacements, const PlacedNest& child);

// Makes a nest of runs at listed displacements. Runs of equal lengths become scatter(): in a long list at once, in
// others after neighbours have merged.
PlacedNest scatter_runs(std::vector<int64_t> displacements, std::vector<int64_t> lengths);

// Makes a nest of any members. Empty members go, members of members move up, runs alone become scatter_runs(), and
// equal nests at many places become scatter().
PlacedNest gather(std::vector<PlacedNest> members);

}  // namespace spinloom::layout
