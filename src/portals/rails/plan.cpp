#include "portals/rails/plan.hpp"

#include <algorithm>
#include <optional>

namespace spinloom::rails {
namespace {

constexpr uint64_t page_bytes = 4096;

std::optional<uint32_t> first_to_end(uint64_t length, std::span<const RailLoad> rails,
                                     std::span<const Time> free_after) {
  std::optional<uint32_t> best;
  Time best_end{};
  for (uint32_t rail = 0; rail < rails.size(); ++rail) {
    if (!rails[rail].is_usable) continue;
    const Time end = free_after[rail] + rails[rail].byte_time.time_of(Bytes{static_cast<int64_t>(length)});
    if (best && end >= best_end) continue;
    best = rail;
    best_end = end;
  }
  return best;
}

}  // namespace

uint64_t fragment_bytes_for(uint64_t bytes, uint64_t usable_rails, uint64_t fragment_bytes_max) {
  const uint64_t wanted = bytes / (2 * std::max<uint64_t>(usable_rails, 1));
  const uint64_t pages = (wanted + page_bytes - 1) / page_bytes * page_bytes;
  return std::clamp(pages, std::min(fragment_bytes_min, fragment_bytes_max), fragment_bytes_max);
}

void level_speeds(std::span<RailLoad> rails) {
  constexpr Bytes unit{1 << 20};
  std::vector<RailLoad*> order;
  for (RailLoad& rail : rails) order.push_back(&rail);
  const auto time_of = [&](const RailLoad* rail) { return rail->byte_time.time_of(unit).ps; };
  std::sort(order.begin(), order.end(), [&](const RailLoad* a, const RailLoad* b) {
    return time_of(a) != time_of(b) ? time_of(a) < time_of(b) : a < b;
  });
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    int64_t sum_ps = 0;
    const int64_t fastest_ps = time_of(order[first]);
    for (; end < order.size() && 4 * time_of(order[end]) < 5 * fastest_ps; ++end) sum_ps += time_of(order[end]);
    if (end == first) sum_ps = time_of(order[end++]);  // takes no time at all
    const auto count = static_cast<int64_t>(end - first);
    for (; first < end; ++first) order[first]->byte_time = Rate(sum_ps, count * unit.count);
  }
}

std::vector<Fragment> plan(uint64_t bytes, uint64_t fragment_bytes, std::span<const RailLoad> rails) {
  std::vector<Time> free_after;
  for (const RailLoad& rail : rails) free_after.push_back(rail.free_after);
  std::vector<Fragment> fragments;
  for (uint64_t offset = 0; offset < bytes; offset += fragment_bytes) {
    const uint64_t length = std::min(fragment_bytes, bytes - offset);
    const auto rail = first_to_end(length, rails, free_after);
    if (!rail) return {};
    free_after[*rail] += rails[*rail].byte_time.time_of(Bytes{static_cast<int64_t>(length)});
    fragments.push_back({*rail, offset, length});
  }
  return fragments;
}

}  // namespace spinloom::rails
