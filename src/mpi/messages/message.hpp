// Message - the bytes of one message in a program's memory: a buffer, a count and the form of the datatype.
//
// Contract: make_form() normalises a decoded type once. pack() and unpack() move the packed bytes [first, last) of a
//   message.
// Invariants: (1) a `is_known` Form without a layout is one run of `size` bytes at the buffer, repeated every `extent`
//   bytes (the basic types). Only a Form that was made of a peer's Blob has neither: it serves for reach() alone. (2)
//   Bytes of a Form with `is_known` false are moved by the MPI itself.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "memory/layout/committed.hpp"
#include "memory/layout/type.hpp"
#include "mpi/messages/published.hpp"

namespace spinloom::mpi {

class TypeTally;

// If elements lie between each other, as columns of a matrix do, several share a cache line (8 columns of doubles).
// A part of a copy should hold whole groups of them, so that no two parts touch the same lines. Returns the bytes of a
// group; 1: no elements share a line.
[[nodiscard]] inline int64_t bundle_bytes(int64_t size, int64_t extent, int64_t true_extent) {
  constexpr int64_t line_bytes = 64;
  const bool lie_between = extent > 0 && extent < line_bytes && extent < true_extent && size <= INT64_MAX / line_bytes;
  return lie_between ? size * ((line_bytes + extent - 1) / extent) : 1;
}

struct Form {
  bool is_known = true;
  int64_t size = 0;
  int64_t extent = 0;
  int64_t true_lb = 0;
  bool is_one_run = true;  // the bytes of one element are contiguous
  int64_t record_bytes = 0;  // length of a record in place of such a message; 0: no length would do
  int64_t true_extent = 0;
  double spread = 1;  // cache lines that an element touches, for each line that its packed bytes fill
  double jumps = 0;  // the share of these lines that lie far from the line touched before
  double block_bytes = 0;  // the mean length of its contiguous blocks; 0: one run
  uint64_t number = 0;  // no other Form of this process has it; 0 without a layout
  std::optional<layout::Committed> layout;
  mutable Published published;  // the layout, where peers can read it; made when it is first needed
  mutable TypeTally* tally = nullptr;  // counts messages for the report; null: no report is wanted

  Form() = default;
  // Takes only the bounds of a peer's layout.
  explicit Form(const layout::Blob& blob)
      : size(blob.size()),
        extent(blob.extent()),
        true_lb(blob.true_lb()),
        is_one_run(false),
        true_extent(blob.true_extent()) {}
  [[nodiscard]] bool is_contiguous(int64_t count) const { return is_one_run && (count <= 1 || extent == size); }
  // The number of bytes that are packed before they are handed to the receiver.
  [[nodiscard]] int64_t chunk_bytes(int64_t least) const {
    return std::max(least, bundle_bytes(size, extent, true_extent));
  }
  // The least count that is not is_contiguous().
  [[nodiscard]] int64_t contiguous_below() const { return !is_one_run ? INT64_MIN : extent == size ? INT64_MAX : 2; }
};
using FormPointer = std::shared_ptr<const Form>;

[[nodiscard]] FormPointer basic_form(int64_t size, int64_t extent);
[[nodiscard]] FormPointer unknown_form(int64_t size);
// Returns unknown_form() if the type cannot be normalised.
[[nodiscard]] FormPointer make_form(const layout::Type& type);

struct Range {
  int64_t first = 0;
  int64_t last = 0;
};

class Message {
 public:
  Message(const Form& form, int64_t count, const void* buffer)
      : form_(form), count_(count), base_(static_cast<std::byte*>(const_cast<void*>(buffer))) {}

  [[nodiscard]] int64_t bytes() const { return form_.size * count_; }
  [[nodiscard]] const Form& form() const { return form_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] std::byte* buffer() const { return base_; }
  // Gives the range of memory that the message may touch. Returns false if it has no bytes, or if its bounds overflow.
  [[nodiscard]] bool reach(const std::byte*& first, int64_t& bytes) const;
  void pack(Range range, uint8_t* to) const;
  void unpack(Range range, const uint8_t* from) const;

 private:
  const Form& form_;
  int64_t count_;
  std::byte* base_;
};

}  // namespace spinloom::mpi
