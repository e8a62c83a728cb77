// Blocks - memory of one process as a list of pieces, in the order of the bytes that they hold together.
//
// Contract: a call borrows a list only while it runs. A BlockCursor walks through a list: address() and left()
//   describe the rest of the current block, which is never empty. skip() moves on by any number of bytes, across
//   blocks.
// Invariants: (1) empty blocks are passed over, wherever they point; (2) a cursor never leaves its list.
// Threads: plain values. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/assert.hpp"

namespace spinloom::peer {

struct Block {
  uint64_t address = 0;
  uint64_t length = 0;
};

using Blocks = std::span<const Block>;

// Returns the bytes of all blocks together; nothing if the number does not fit into 64 bits.
[[nodiscard]] inline std::optional<uint64_t> bytes_of(Blocks blocks) {
  uint64_t bytes = 0;
  for (const Block& block : blocks) {
    if (__builtin_add_overflow(bytes, block.length, &bytes)) return std::nullopt;
  }
  return bytes;
}

class BlockCursor {
 public:
  explicit BlockCursor(Blocks blocks) : at_(blocks.data()), end_(blocks.data() + blocks.size()) { skip_empty(); }

  [[nodiscard]] bool done() const { return at_ == end_; }
  [[nodiscard]] uint64_t address() const { return at_->address + within_; }
  [[nodiscard]] uint64_t left() const { return at_->length - within_; }
  void skip(uint64_t bytes) {
    while (bytes > 0) {
      SPL_ASSERT(!done(), bytes, " B behind the end of a list");
      if (bytes < left()) {
        within_ += bytes;
        return;
      }
      bytes -= left();
      ++at_;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    within_ = 0;
    while (at_ != end_ && at_->length == 0) ++at_;
  }

  const Block* at_;
  const Block* end_;
  uint64_t within_ = 0;
};

}  // namespace spinloom::peer
