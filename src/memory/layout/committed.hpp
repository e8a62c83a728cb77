// Committed - a datatype ready to move data: the type, its blob, and what a caller must know before memory is touched.
//
// Contract: commit() normalises once; types with the same blob share it. reach() says which bytes `count` elements may
//   touch. pack() and unpack() do what those of copy.hpp do, copy() what that of transfer.hpp does. unpack() and copy()
//   refuse a target that writes a byte twice, which those functions do not check. base is the buffer address given to
//   MPI.
// Invariants: (1) an Error means that no byte of the destination was written; (2) source and destination of a copy
//   may lie in the same memory: then everything is read before anything is written.
// Threads: any number of calls side by side over disjoint destinations; copies share one blob. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/struct_array.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

// packed_bytes() returns the bytes of data of `count` elements, reach_of() the bytes of memory that they may touch.
// Both fail on a negative count, and where sizes or displacements do not fit in 64 bits.
[[nodiscard]] Result<int64_t> packed_bytes(const Type& type, int64_t count);
[[nodiscard]] Result<oracle::Reach> reach_of(const Type& type, int64_t count);

// The packed bytes [first, last) of a message.
struct PackedRange {
  int64_t first = 0;
  int64_t last = 0;
};

class Committed {
 public:
  static Result<Committed> commit(const Type& type);

  [[nodiscard]] const Type& type() const { return shared_->type; }
  [[nodiscard]] const Blob& blob() const { return shared_->blob; }

  [[nodiscard]] Result<int64_t> packed_bytes(int64_t count) const { return layout::packed_bytes(type(), count); }
  [[nodiscard]] Result<oracle::Reach> reach(int64_t count) const { return reach_of(type(), count); }
  // Fails with Code::invalid and the place if a message of `count` elements would write a byte twice. Only a good
  // answer is cached. Fails with Code::exhausted if the answer takes too long a list of pieces (overlap.hpp).
  [[nodiscard]] Status check_receive(int64_t count) const;

  Status pack(int64_t count, const std::byte* base, PackedRange range, std::span<std::byte> packed) const;
  Status unpack(int64_t count, std::byte* base, PackedRange range, std::span<const std::byte> packed) const;
  // Public calls for whole messages try these first (copy.hpp). False: nothing has been done, and pack() or unpack()
  // must be called.
  [[nodiscard]] bool pack_at_once(int64_t count, const std::byte* base, std::byte* packed) const {
    if (const StructArray* const array = struct_array(count)) {
      array->pack(count, base, packed);
      return true;
    }
    return layout::pack_at_once(blob(), count, base, packed);
  }
  [[nodiscard]] bool unpack_at_once(int64_t count, std::byte* base, const std::byte* packed) const {
    if (const StructArray* const array = struct_array(count); array != nullptr && array->is_disjoint()) {
      array->unpack(count, base, packed);
      return true;
    }
    return is_receive_checked(count) && layout::unpack_at_once(blob(), count, base, packed);
  }
  // True if an earlier check_receive() has shown that a message of `count` elements writes no byte twice.
  [[nodiscard]] bool is_receive_checked(int64_t count) const {
    return count <= shared_->disjoint_count.load(std::memory_order_relaxed);
  }
  // Returns the layout as an array of structs; null if it is none for `count` elements.
  [[nodiscard]] const StructArray* struct_array(int64_t count) const {
    const StructArray* const array = shared_->struct_array.get();
    return array != nullptr && array->accepts(count) ? array : nullptr;
  }

 private:
  struct Shared {
    Type type;
    Blob blob;
    std::atomic<int64_t> disjoint_count{0};  // the largest count that is known to write no byte twice
    std::unique_ptr<const StructArray> struct_array;
  };

  explicit Committed(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

// One side of a copy.
template <class Byte>
struct MessageBuffer {
  const Committed* layout = nullptr;
  int64_t count = 0;
  Byte* base = nullptr;
};

// copy() and copy_any() copy between messages that hold the same number of packed bytes. copy() first tries the quick
// way for arrays of structs.
Status copy_any(const MessageBuffer<const std::byte>& from, const MessageBuffer<std::byte>& to);
inline Status copy(const MessageBuffer<const std::byte>& from, const MessageBuffer<std::byte>& to) {
  const StructArray* const read = from.layout->struct_array(from.count);
  const StructArray* const written = to.layout->struct_array(to.count);
  if (read != nullptr && written != nullptr &&
      copy_structs(*written, to.count, to.base, *read, from.count, from.base)) {
    return {};
  }
  return copy_any(from, to);
}

}  // namespace spinloom::layout
