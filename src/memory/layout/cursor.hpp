// Cursor - maps a packed position of a message to memory, one contiguous piece at a time.
//
// Contract: a message is `count` elements of a blob. seek(position) goes to any packed byte in O(depth * log
//   entries). next(bytes_max) returns the next piece of at most `bytes_max` bytes and moves on; it may stop within a
//   block and resumes there. It returns a piece of 0 bytes at the end, or if bytes_max <= 0.
// Invariants: (1) pieces come in packed order and cover each byte once; (2) offsets count from the buffer
//   address given to MPI (true_lb is included).
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {

struct Piece {
  int64_t offset = 0;
  int64_t bytes = 0;
};

// The position of a cursor in a blob's nodes.
template <class W>
struct CursorState {
  std::array<typename W::Level, SPL_LAYOUT_DEPTH_MAX> levels{};
  int depth = 0;
  const typename W::Node* node = nullptr;  // the current leaf
  typename W::Unsigned base = 0;           // its offset from the true_lb of the element
  typename W::Unsigned leaf_position = 0;  // packed bytes of the leaf in front of the position
};

class Cursor {
 public:
  // Fails if count is negative, or if the bytes or the offsets of the message do not fit in 64 bits. The cursor begins
  // at position 0.
  static Result<Cursor> open(Blob blob, int64_t count);

  Status seek(int64_t position);  // 0 .. total()
  Piece next(int64_t bytes_max);
  [[nodiscard]] int64_t position() const { return position_; }
  [[nodiscard]] int64_t total() const { return count_ * blob_.size(); }

 private:
  Cursor(Blob blob, int64_t count);
  template <class W>
  void descend(CursorState<W>& state, int64_t within_element);
  template <class W>
  Piece next_piece(CursorState<W>& state, int64_t bytes_max);

  Blob blob_;
  int64_t count_ = 0;
  int64_t position_ = 0;
  int64_t element_offset_ = 0;  // the offset of the current element from the first, in memory
  std::variant<CursorState<Narrow>, CursorState<Wide>> state_;
};

}  // namespace spinloom::layout
