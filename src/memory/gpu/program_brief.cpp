#include "memory/gpu/program_brief.hpp"

#include <cstdint>
#include <limits>

namespace spinloom::gpu {
namespace {

constexpr int64_t words_max = 1 << 18;  // the number of threads that a large device runs at once
constexpr uint32_t transposed_bytes_max = 1 << 19;

bool fits(const kernel::Step& step, uint32_t wide) {
  constexpr uint64_t place_max = std::numeric_limits<uint32_t>::max();
  if (step.table != 0) return wide == 0 && step.table <= place_max;
  return step.stride == static_cast<int32_t>(step.stride);
}

}  // namespace

std::optional<kernel::Brief> brief_of(const kernel::Part& part) {
  if (part.kind != kernel::kind_word || part.streaming != 0) return std::nullopt;
  if (int64_t{part.bytes} > words_max * part.width) return std::nullopt;
  kernel::Brief brief{};
  brief.bytes = part.bytes;
  brief.width = part.width;
  brief.levels = part.levels;
  brief.block = part.block;
  brief.from = part.from;
  brief.to = part.to;
  for (uint32_t l = 0; l < part.levels; ++l) {
    const kernel::Level& level = part.level[l];
    if (!fits(level.from, level.wide_from) || !fits(level.to, level.wide_to)) return std::nullopt;
    brief.level[l] = {level.count, static_cast<int32_t>(level.from.stride), static_cast<int32_t>(level.to.stride),
                      static_cast<uint32_t>(level.from.table), static_cast<uint32_t>(level.to.table)};
  }
  return brief;
}

bool prefers_brief(const kernel::Part& part) {
  return part.kind == kernel::kind_tile && part.bytes <= transposed_bytes_max;
}

}  // namespace spinloom::gpu
