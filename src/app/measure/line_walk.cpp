#include "app/measure/line_walk.hpp"

#include <algorithm>

#include "app/measure/line.hpp"
#include "base/limits.hpp"
#include "memory/layout/blocks.hpp"
#include "simulated/node/host_cache.hpp"

namespace spinloom::app {
namespace {

constexpr int64_t page_bytes = 4096;
constexpr int passes = 2;

// Returns the physical number of a page: the upper 44 bits of splitmix64's mixing step. Pages lie anywhere, so that a
// stride of many pages does not meet in one set of a large cache. Two pages hardly ever get the same number.
uint64_t physical_page(uint64_t page) {
  page = (page ^ (page >> 30)) * 0xbf58476d1ce4e5b9u;
  page = (page ^ (page >> 27)) * 0x94d049bb133111ebu;
  return (page ^ (page >> 31)) >> 20;
}

// The memory of one side: its place, the last line that was touched, and the step to it.
class Side {
 public:
  explicit Side(uint64_t base) : base_(base) {}

  template <class Access>  // access(line, member of LineWalk::LineCounts that counts it)
  void touch(int64_t offset, int64_t bytes, Access&& access) {
    const uint64_t from = (base_ + static_cast<uint64_t>(offset)) / line_bytes;
    const uint64_t to = (base_ + static_cast<uint64_t>(offset + bytes - 1)) / line_bytes;
    for (uint64_t line = from; line <= to; ++line) {
      if (line == last_line_) continue;
      const auto step = static_cast<int64_t>(line - last_line_);
      const bool is_repeated =
          step - last_step_ <= 1 && last_step_ - step <= 1;  // a stride need not be a whole number of lines
      const auto kind = step == 1     ? &LineWalk::LineCounts::next
                        : is_repeated ? &LineWalk::LineCounts::strided
                                      : &LineWalk::LineCounts::scattered;
      last_line_ = line;
      last_step_ = step;
      access(line, kind);
    }
  }

 private:
  uint64_t base_;
  uint64_t last_line_ = UINT64_MAX / 2;  // no line
  int64_t last_step_ = 0;
};

class Caches {
 public:
  Caches(const std::vector<CacheLevel>& levels, const std::vector<CacheLevel>& page_levels) {
    for (const CacheLevel& level : levels) caches_.emplace_back(level.bytes, level.ways, line_bytes);
    for (const CacheLevel& level : page_levels) page_caches_.emplace_back(level.bytes, level.ways, page_bytes);
    clear();
  }

  void clear() {
    counts_.accesses = 0;
    counts_.levels.assign(caches_.size(), {});
    counts_.pages.assign(page_caches_.size(), 0);
  }

  void access(uint64_t line, bool is_write, uint64_t LineWalk::LineCounts::* kind) {
    ++counts_.accesses;
    const uint64_t page = line * line_bytes / page_bytes;
    for (size_t level = 0; level < page_caches_.size() && !page_caches_[level].access(page, is_write); ++level)
      ++counts_.pages[level];
    constexpr uint64_t lines_a_page = page_bytes / line_bytes;
    const uint64_t physical_line = physical_page(page) * lines_a_page + line % lines_a_page;
    size_t levels_missed = 0;
    while (levels_missed < caches_.size() && !caches_[levels_missed].access(physical_line, is_write)) ++levels_missed;
    if (levels_missed == 0) return;
    ++(counts_.levels[levels_missed - 1].*kind);
  }

  [[nodiscard]] const LineWalk& counts() const { return counts_; }

 private:
  std::vector<simulated::HostCache> caches_;
  std::vector<simulated::HostCache> page_caches_;
  LineWalk counts_;
};

}  // namespace

Result<Movement> movement_named(const std::string& name) {
  if (name == "pack") return Movement::pack;
  if (name == "unpack") return Movement::unpack;
  if (name == "copy") return Movement::copy;
  return fail(Code::invalid, "there is no movement '", name, "': pack, unpack or copy");
}

Result<LineWalk> walk_lines(const layout::Blob& blob, int64_t count, Movement movement,
                            const std::vector<CacheLevel>& levels, const std::vector<CacheLevel>& page_levels,
                            WalkOrder order) {
  for (const CacheLevel& level : levels) {
    if (level.ways < 1 || level.bytes < level.ways * line_bytes) {
      return fail(Code::invalid, "a cache of ", level.bytes, " bytes and ", level.ways, " ways holds no line a way");
    }
  }
  // The other side lies far away, but not a power of two apart, so that both do not share cache sets.
  constexpr uint64_t array_base = uint64_t{1} << 44;
  constexpr uint64_t other_base = (uint64_t{1} << 45) + 37 * line_bytes;
  std::vector<layout::Piece> blocks;
  SPL_TRY(layout::for_each_block(blob, count, [&](const layout::Piece& block) {
    blocks.push_back(block);
    return static_cast<int64_t>(blocks.size()) <= limits::message_blocks_max;
  }));
  if (static_cast<int64_t>(blocks.size()) > limits::message_blocks_max) {
    return fail(Code::exhausted, "a message of more than ", limits::message_blocks_max,
                " blocks (message_blocks_max) is not followed through the caches");
  }
  if (order == WalkOrder::memory) {
    std::sort(blocks.begin(), blocks.end(),
              [](const layout::Piece& a, const layout::Piece& b) { return a.offset < b.offset; });
  }
  Caches caches(levels, page_levels);
  for (int pass = 0; pass < passes; ++pass) {
    caches.clear();
    Side array(array_base - static_cast<uint64_t>(blob.true_lb()));
    Side other(movement == Movement::copy ? other_base - static_cast<uint64_t>(blob.true_lb()) : other_base);
    int64_t packed = 0;
    for (const layout::Piece& block : blocks) {
      array.touch(block.offset, block.bytes,
                  [&](uint64_t line, auto kind) { caches.access(line, movement == Movement::unpack, kind); });
      other.touch(movement == Movement::copy ? block.offset : packed, block.bytes,
                  [&](uint64_t line, auto kind) { caches.access(line, movement != Movement::unpack, kind); });
      packed += block.bytes;
    }
  }
  return caches.counts();
}

}  // namespace spinloom::app
