// Ends - the two sides of a copy from one message's place to another's.
//
// Contract: an Offer tells a peer where a message lies, or where one is wanted. An End is such a place by addresses of
//   this process. copy_part() copies the packed bytes of a range from one End to another; both hold as many bytes.
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
  uint64_t buffer;  // as it was given to MPI
  int64_t count;  // elements
  uint64_t form;  // a number that the owner gives to one layout only; 0: the bytes are one run
  uint64_t blob;  // the layout
  uint64_t blob_bytes;
  bool by_cma = false;  // not in the heap: to be read by system calls
  bool joins = false;  // its owner may help to copy
  bool on_device = false;  // in a GPU's memory: `buffer` says nothing
  bool within = false;  // to its owner itself: `blob` is the layout's object, which the sender keeps
  friend bool operator==(const Offer&, const Offer&) = default;
};

struct End {
  const layout::Blob* blob = nullptr;  // null: one run
  int64_t count = 0;
  std::byte* base = nullptr;
};

[[nodiscard]] inline int64_t bundle_bytes(const End& end) {
  return end.blob == nullptr ? 1 : bundle_bytes(end.blob->size(), end.blob->extent(), end.blob->true_extent());
}

// The place of the first `count` elements of a message, whose form must be known.
[[nodiscard]] End end_of(const Message& message, int64_t count);
// Copies the packed bytes of a range.
[[nodiscard]] Status copy_part(const End& from, const End& to, Range range);

}  // namespace spinloom::mpi
