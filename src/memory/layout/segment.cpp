#include "memory/layout/segment.hpp"

#include "base/checked.hpp"

namespace spinloom::layout {

Result<Segment> Segment::open(Blob blob, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_ASSIGN([[maybe_unused]] const int64_t total, checked::mul(count, blob.size()));
  if (blob.is_narrow() && !blob.narrow_reaches(count)) {
    return fail(Code::overflow, count, " elements of a narrow blob with size ", blob.size(), " and extent ",
                blob.extent(), " exceed 2^31 bytes; build a wide blob");
  }
  return Segment(std::move(blob), count);
}

Segment::Segment(Blob blob, int64_t count) : blob_(std::move(blob)), count_(count) {
  // Zeroed, because states are copied and compared as bytes, padding included.
  if (blob_.is_narrow()) {
    spl_segment_init_narrow(&state_.emplace<spl_segment_narrow>(spl_segment_narrow{}), blob_.data());
  } else {
    spl_segment_init_wide(&state_.emplace<spl_segment_wide>(spl_segment_wide{}), blob_.data());
  }
}

Result<int64_t> Segment::advance(int64_t target) {
  const int64_t total = count_ * blob_.size();
  if (target < 0 || target > total) {
    return fail(Code::invalid, "position ", target, " lies outside the message of ", total, " bytes");
  }
  if (auto* const narrow = std::get_if<spl_segment_narrow>(&state_)) {
    const auto to = static_cast<uint32_t>(target);
    if (spl_segment_beyond_narrow(narrow, to)) {
      *narrow = {};
      spl_segment_init_narrow(narrow, blob_.data());
    }
    return spl_segment_catch_up_narrow(narrow, blob_.data(), to - narrow->position);
  }
  auto& wide = std::get<spl_segment_wide>(state_);
  const auto to = static_cast<uint64_t>(target);
  if (spl_segment_beyond_wide(&wide, to)) {
    wide = {};
    spl_segment_init_wide(&wide, blob_.data());
  }
  return static_cast<int64_t>(spl_segment_catch_up_wide(&wide, blob_.data(), to - wide.position));
}

int64_t Segment::position() const {
  return std::visit([](const auto& state) { return static_cast<int64_t>(state.position); }, state_);
}

std::span<const std::byte> Segment::state() const {
  const auto* const bytes =
      std::visit([](const auto& state) { return reinterpret_cast<const std::byte*>(&state); }, state_);
  return {bytes, spl_segment_bytes(blob_.data())};
}

}  // namespace spinloom::layout
