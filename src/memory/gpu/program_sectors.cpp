#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "memory/gpu/program_part.hpp"

namespace spinloom::gpu {
namespace {

constexpr int64_t sector_bytes = 32;

// Estimates the bytes of whole sectors that one side of a draft touches, if the addresses given at launch begin
// sectors. Blocks begin at multiples of `alignment`.
int64_t sector_bytes_of(const Draft& draft, bool is_from, int64_t width) {
  uint64_t bits = static_cast<uint64_t>(is_from ? draft.from : draft.to) | sector_bytes;
  for (const DraftLevel& level : draft.levels) {
    const DraftStep& step = is_from ? level.from : level.to;
    bits |= static_cast<uint64_t>(step.table != nullptr ? width : step.stride);
  }
  const auto alignment = draft.pieces != nullptr ? width : static_cast<int64_t>(bits & (0 - bits));
  const auto bytes_in_sectors = [&](int64_t bytes) {
    return (bytes + sector_bytes - alignment + sector_bytes - 1) / sector_bytes * sector_bytes;
  };
  if (is_dense(draft, is_from)) return bytes_in_sectors(draft.bytes());
  const auto* const offsets = draft.pieces == nullptr ? nullptr : is_from ? &draft.pieces->from : &draft.pieces->to;
  std::vector<std::pair<int64_t, int64_t>> strides;  // length, count
  int64_t repetitions = 1;
  for (const DraftLevel& level : draft.levels) {
    const DraftStep& step = is_from ? level.from : level.to;
    if (step.table != nullptr) {
      repetitions *= level.count;
    } else {
      strides.emplace_back(std::abs(step.stride), level.count);
    }
  }
  std::sort(strides.begin(), strides.end());
  int64_t span = draft.block;
  int64_t block_bytes = bytes_in_sectors(span);
  if (offsets != nullptr && !offsets->empty()) {
    block_bytes = 0;
    int64_t end = -1;  // the end of the piece before
    for (size_t i = 0; i < offsets->size(); ++i) {
      const int64_t bytes = draft.pieces->starts[i + 1] - draft.pieces->starts[i];
      const int64_t gap = (*offsets)[i] - end;
      block_bytes += i > 0 && gap >= 0 && gap < sector_bytes ? bytes + gap : bytes_in_sectors(bytes);
      end = (*offsets)[i] + bytes;
    }
    span = block_bytes;
  }
  for (const auto& [stride, count] : strides) {
    if (stride <= std::max(sector_bytes, span)) {
      span = std::max(span, (count - 1) * stride + span);
      block_bytes = std::min(bytes_in_sectors(span), block_bytes * count);
    } else {
      repetitions *= count;
    }
  }
  return block_bytes * repetitions;
}

}  // namespace

bool is_dense(const Draft& draft, bool is_from) {
  if (draft.pieces != nullptr && !(is_from ? draft.pieces->from : draft.pieces->to).empty()) return false;
  int64_t bytes = draft.block;
  for (const DraftLevel& level : draft.levels) {
    const DraftStep& step = is_from ? level.from : level.to;
    if (step.table != nullptr || step.stride != bytes) return false;
    bytes *= level.count;
  }
  return true;
}

int64_t bytes_touched_by(const Draft& draft, const kernel::Part& part) {
  // The packed bytes of both sides: the sectors are not known without a walk of all blocks.
  if (draft.is_walk) return 2 * draft.block;
  // A sector that is written in part is read first.
  const int64_t written = sector_bytes_of(draft, false, part.width);
  const int64_t whole_sectors =
      std::min(written, draft.block / sector_bytes * sector_bytes * (draft.bytes() / draft.block));
  const bool dense = is_dense(draft, false);
  return sector_bytes_of(draft, true, part.width) + written + (dense ? 0 : written - whole_sectors);
}

}  // namespace spinloom::gpu
