// Message - bytes that one launch moves from one side to another, each side a layout or packed bytes.
//
// Contract: the n-th packed byte of `from` becomes the n-th packed byte of `to`. A side without a blob is packed bytes.
//   Addresses are the ends given at launch (message.ends_index says which pair) plus the side's offset; for a layout
//   that is the buffer address as MPI defines it.
//     pack:    Message{Side::of(blob, count), Side::packed()}
//     unpack:  Message{Side::packed(), Side::of(blob, count)}
//     copy:    Message{Side::of(blob, count), Side::of(other, other_count)}
//     set:     many messages, each with offsets under the same pair of ends, or with a pair of its own
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/layout/blob.hpp"

namespace spinloom::gpu {

struct Side {
  std::optional<layout::Blob> blob;
  int64_t count = 1;
  int64_t offset = 0;

  static Side of(layout::Blob blob, int64_t count = 1, int64_t offset = 0) { return {std::move(blob), count, offset}; }
  static Side packed(int64_t offset = 0) { return {std::nullopt, 1, offset}; }
};

struct Message {
  Side from;
  Side to;
  uint32_t ends_index = 0;  // the number of its pair of addresses among those that a launch is given
};

// A pair of addresses, given at launch.
struct Ends {
  const void* from = nullptr;
  void* to = nullptr;
};

}  // namespace spinloom::gpu
