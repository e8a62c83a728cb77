// Segment - runs MPITypes' processing state (include/spinloom/segment.h) on the host.
//
// Contract: advance(target) walks to a packed byte as a catch-up does, or restarts when the target lies behind.
//   state() returns the bytes of a checkpoint, ready to be copied to a NIC. A narrow blob has a narrow state; then
//   the message must stay within the blob's reach (Blob::narrow_reaches).
// Invariants: state() depends on the position alone.
// Threads: one owner. Time: none; advance() returns the number of blocks walked, from which host work is priced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "spinloom/segment.h"

namespace spinloom::layout {

class Segment {
 public:
  static Result<Segment> open(Blob blob, int64_t count);

  Result<int64_t> advance(int64_t target);
  [[nodiscard]] int64_t position() const;
  [[nodiscard]] std::span<const std::byte> state() const;
  [[nodiscard]] static int64_t state_bytes(const Blob& blob) { return spl_segment_bytes(blob.data()); }

 private:
  Segment(Blob blob, int64_t count);

  Blob blob_;
  int64_t count_ = 0;
  std::variant<spl_segment_narrow, spl_segment_wide> state_;
};

}  // namespace spinloom::layout
