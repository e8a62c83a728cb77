#include "rails/plan.hpp"

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
    if (!rails[rail].usable) continue;
    const Time end = free_after[rail] + rails[rail].byte_time.time_of(Bytes{static_cast<int64_t>(length)});
    if (best && end >= best_end) continue;
    best = rail;
    best_end = end;
  }
  return best;
}

}  // namespace

uint64_t fragment_bytes_for(uint64_t bytes, uint64_t usable_rails, uint64_t most) {
  const uint64_t wanted = bytes / (2 * std::max<uint64_t>(usable_rails, 1));
  const uint64_t pages = (wanted + page_bytes - 1) / page_bytes * page_bytes;
  return std::clamp(pages, std::min(fragment_bytes_least, most), most);
}

std::vector<Fragment> plan(uint64_t bytes, uint64_t fragment_bytes, std::span<const RailLoad> rails) {
  std::vector<Time> free_after;
  for (const RailLoad& rail : rails) free_after.push_back(rail.free_after);
  std::vector<Fragment> made;
  for (uint64_t offset = 0; offset < bytes; offset += fragment_bytes) {
    const uint64_t length = std::min(fragment_bytes, bytes - offset);
    const auto rail = first_to_end(length, rails, free_after);
    if (!rail) return {};
    free_after[*rail] += rails[*rail].byte_time.time_of(Bytes{static_cast<int64_t>(length)});
    made.push_back({*rail, offset, length});
  }
  return made;
}

}  // namespace spinloom::rails
