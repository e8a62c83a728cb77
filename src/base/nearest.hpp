// Nearest - finds the known name that a mistyped name is closest to, for error messages.
//
// Contract: nearest() returns the name that needs the fewest letters inserted, left out or replaced; of equally close
//   names the first one. It returns nothing when `known` is empty, or when more letters would have to change than half
//   of those of the longer name.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace spinloom {

[[nodiscard]] inline size_t edit_distance(std::string_view from, std::string_view to) {
  // row[i] is the distance from the letters of `from` seen so far to the first i letters of `to`.
  std::vector<size_t> row(to.size() + 1);
  for (size_t i = 0; i < row.size(); ++i) row[i] = i;
  for (const char letter : from) {
    size_t diagonal = row[0]++;
    for (size_t i = 1; i < row.size(); ++i) {
      const size_t replaced = diagonal + (letter == to[i - 1] ? 0 : 1);
      diagonal = row[i];
      row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
    }
  }
  return row.back();
}

[[nodiscard]] inline std::optional<std::string_view> nearest(std::string_view name,
                                                             std::span<const std::string_view> known) {
  const auto by_distance = [name](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  };
  const auto found = std::min_element(known.begin(), known.end(), by_distance);
  if (found == known.end() || 2 * edit_distance(name, *found) > std::max(name.size(), found->size())) return {};
  return *found;
}

}  // namespace spinloom
