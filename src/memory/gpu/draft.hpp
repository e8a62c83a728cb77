// Draft - a part before it is laid down: levels of a message with strides or listed offsets on both sides.
//
// Contract: drafts_of() takes one message apart: nested loops and lists as they stand; runs, and structs that would be
//   written in short runs, as tables of pieces; two layouts as common levels, or as pieces of both; whatever is too
//   large for tables as a walk; what is short and in several parts as one list (draft_list.hpp). All parts have fewer
//   than 2^31 bytes. Tables that no draft owns point into the blobs of the message, which must live as long.
// Invariants: (1) the drafts of a message move each of its packed bytes once.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "memory/gpu/kernel_parts.h"
#include "memory/gpu/message.hpp"

namespace spinloom::gpu {

struct DraftStep {
  int64_t stride = 0;
  const std::byte* table = nullptr;  // offsets, in place of the stride
  bool is_wide = false;  // the table holds offsets of 64 bits
  std::shared_ptr<const std::vector<int32_t>> list = nullptr;  // the table's owner, if that is no blob

  [[nodiscard]] int64_t at(int64_t digit) const {
    if (table == nullptr) return digit * stride;
    return is_wide ? reinterpret_cast<const int64_t*>(table)[digit] : reinterpret_cast<const int32_t*>(table)[digit];
  }
};

struct DraftLevel {
  int64_t count = 0;
  DraftStep from;
  DraftStep to;
};

// Pieces of a period of `starts.back()` bytes. A side without offsets is contiguous.
struct PieceTable {
  std::vector<uint32_t> starts;  // one more than pieces
  std::vector<int64_t> from;
  std::vector<int64_t> to;

  [[nodiscard]] int64_t pieces() const { return static_cast<int64_t>(starts.size()) - 1; }
};

struct Draft {
  std::vector<DraftLevel> levels;  // the one that turns fastest first
  int64_t block = 0;
  int64_t from = 0;
  int64_t to = 0;
  std::shared_ptr<const PieceTable> pieces;
  bool is_walk = false;  // true for a walk: levels are empty, and block is all bytes
  int64_t first = 0;  // the packed byte where a walk begins

  [[nodiscard]] int64_t bytes() const {
    int64_t all = block;
    for (const DraftLevel& level : levels) all *= level.count;
    return all;
  }
};

struct DraftOptions {
  bool only_pieces = false;  // no levels: tables of pieces where they are possible, else a walk
  bool only_walk = false;  // everything as a walk
  bool allow_lists = false;  // short messages of several parts as one list
  int64_t pieces_bytes_max = 0;  // the limit of one table of pieces
};

Result<std::vector<Draft>> drafts_of(const Message& message, const DraftOptions& options);

// Returns the packed bytes of a message. Returns an Error if neither side has a layout, the sides differ, or sizes do
// not fit.
Result<int64_t> bytes_of(const Message& message);

}  // namespace spinloom::gpu
