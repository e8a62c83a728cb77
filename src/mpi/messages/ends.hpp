// Ends - the two sides of a copy from one message's place to another's.
//
// Contract: an Offer tells a peer where a message lies, or where one is to go. A CopyEnd is such a place by addresses
//   of this process. copy_part() copies the packed bytes of a range from one CopyEnd to another; both hold as many
//   bytes.
// Threads: pure over disjoint ranges. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "mpi/messages/message.hpp"

namespace spinloom::mpi {

// The place of a message, by addresses of its owner.
struct Offer {
  uint64_t buffer;  // the buffer that MPI was given; for one run, its first byte
  int64_t count;  // elements
  uint64_t layout_number;  // a number that the owner gives to one layout only; 0: the bytes are one run
  uint64_t blob;  // address of the layout, which the owner has published
  uint64_t blob_bytes;
  bool is_read_by_cma = false;  // the message is not in the heap: system calls read it
  bool joins = false;  // its owner may help to copy
  bool is_on_device = false;  // the message is in a GPU's memory, and `buffer` is not set
  bool is_within =
      false;  // the owner is the receiver, too: `blob` is the address of a layout::Blob that the sender keeps
  friend bool operator==(const Offer&, const Offer&) = default;
};

struct CopyEnd {
  const layout::Blob* blob = nullptr;  // null: one run
  int64_t count = 0;
  std::byte* base = nullptr;  // the buffer; for one run, its first byte
};

[[nodiscard]] inline int64_t bundle_bytes(const CopyEnd& end) {
  return end.blob == nullptr ? 1 : bundle_bytes(end.blob->size(), end.blob->extent(), end.blob->true_extent());
}

// The place of the first `count` elements of a message, whose form must be known.
[[nodiscard]] CopyEnd end_of(const Message& message, int64_t count);
[[nodiscard]] Status copy_part(const CopyEnd& from, const CopyEnd& to, Range range);

}  // namespace spinloom::mpi
