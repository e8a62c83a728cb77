// Blocks - the contiguous blocks of a message, one after the other, without a list of them.
//
// Contract: for_each_block() visits the blocks of `count` elements of a blob in packed order; pieces that touch are one
//   block. visit(piece) returns whether to go on. Offsets count from the buffer address given to MPI. A block may
//   consist of any number of pieces: may_continue() is called every pieces_between_checks pieces, and also returns
//   whether to go on. A visit that stops early is no Error.
// Invariants: the blocks are those of oracle::for_each_block, as far as they are visited.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/cursor.hpp"

namespace spinloom::layout {

inline constexpr int64_t pieces_between_checks = int64_t{1} << 18;

template <class Visit, class MayContinue>
Status for_each_block(const Blob& blob, int64_t count, Visit&& visit, MayContinue&& may_continue) {
  SPL_ASSIGN(Cursor cursor, Cursor::open(blob, count));
  if (cursor.total() == 0) return {};
  SPL_TRY(cursor.seek(0));
  Piece block;
  for (int64_t pieces = 1;; ++pieces) {
    if (pieces % pieces_between_checks == 0 && !may_continue()) return {};
    const Piece piece = cursor.next(cursor.total());
    if (piece.bytes > 0 && block.offset + block.bytes == piece.offset && block.bytes > 0) {
      block.bytes += piece.bytes;
      continue;
    }
    if (block.bytes > 0 && !visit(block)) return {};
    if (piece.bytes == 0) return {};
    block = piece;
  }
}

template <class Visit>
Status for_each_block(const Blob& blob, int64_t count, Visit&& visit) {
  return for_each_block(blob, count, std::forward<Visit>(visit), [] { return true; });
}

}  // namespace spinloom::layout
