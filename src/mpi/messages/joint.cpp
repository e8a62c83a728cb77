#include "mpi/messages/joint.hpp"

#include <algorithm>

#include "memory/layout/kernel.hpp"

namespace spinloom::mpi {

// A part is long enough that both ends write few lines in common, and short enough that neither waits long for the
// last. Parts of very long messages are long enough to be written past the caches, as the whole would be.
void JointCopy::open(const Offer& target, int64_t bytes, int64_t bundle_bytes) {
  constexpr int64_t parts_wanted = 8;
  constexpr int64_t part_bytes_min = 4 << 10;
  constexpr int64_t part_bytes_max = 1 << 20;
  const int64_t unit = std::max<int64_t>(64, bundle_bytes);
  const auto units = [unit](int64_t wanted) { return std::max<int64_t>(1, wanted / unit) * unit; };
  target_ = target;
  bytes_ = bytes;
  part_bytes_ = bytes >= 2 * layout::stream_bytes_min
                    ? units(layout::stream_bytes_min + unit - 1)
                    : units(std::clamp(bytes / parts_wanted, part_bytes_min, part_bytes_max));
  parts_ = static_cast<uint32_t>((bytes + part_bytes_ - 1) / part_bytes_);
  taken_.store(0, std::memory_order_relaxed);
  copied_.store(0, std::memory_order_relaxed);
  refused_.store(0, std::memory_order_relaxed);
}

Range JointCopy::part_from(int64_t first) const { return {first, std::min(first + part_bytes_, bytes_)}; }

std::optional<Range> JointCopy::take(Side side) {
  const uint64_t increment = side == Side::receiver ? 1 : uint64_t{1} << sender_shift;
  const uint64_t before = taken_.fetch_add(increment, std::memory_order_acq_rel);
  if (taken_parts(before) >= parts_) return std::nullopt;
  const int64_t part = side == Side::receiver ? static_cast<uint32_t>(before)
                                              : parts_ - 1 - static_cast<int64_t>(before >> sender_shift);
  return part_from(part * part_bytes_);
}

std::optional<Range> JointCopy::take_refused() {
  if (!has_refused()) return std::nullopt;
  return part_from(refused_.exchange(0, std::memory_order_acquire) - 1);
}

}  // namespace spinloom::mpi
