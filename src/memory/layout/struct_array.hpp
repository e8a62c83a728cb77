// Struct array - a layout that is an array of structs, made ready once: a call is then the call of one kernel.
//
// Contract: from_blob() looks at a blob: its element is a struct of a few short runs (struct_moves.hpp), or an array of
//   them. If accepts(count) is true, pack() and unpack() move whole messages of `count` elements; else the caller uses
//   another way. base is the buffer address given to MPI. unpack() needs is_disjoint(). copy_structs() copies from one
//   array to another, if both take their counts. It returns false, and has done nothing, unless the target
//   is_disjoint(), both have the same fields and equally many structs, and they lie in different memory.
// Invariants: those of StructMoves.
// Threads: immutable. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/layout/blob.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/struct_moves.hpp"

namespace spinloom::layout {

class StructArray {
 public:
  // Returns null where a blob is something else, or where another kernel is quicker.
  static std::unique_ptr<const StructArray> from_blob(const Blob& blob);

  [[nodiscard]] bool accepts(int64_t count) const {
    return static_cast<uint64_t>(count) - 1 < static_cast<uint64_t>(count_max_) &&
           set_ == detail::kernels_in_use.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_disjoint() const { return moves_.is_disjoint(); }

  void pack(int64_t count, const std::byte* base, std::byte* packed) const {
    moves_.pack(packed, base + origin_, count * structs_);
  }
  void unpack(int64_t count, std::byte* base, const std::byte* packed) const {
    moves_.unpack(base + origin_, packed, count * structs_);
  }
  friend bool copy_structs(const StructArray& to, int64_t to_count, std::byte* target, const StructArray& from,
                           int64_t from_count, const std::byte* source);

 private:
  struct Shape {
    int64_t structs;  // structs of one element
    int64_t count_max;
  };
  StructArray(const KernelSet& set, const Blob& blob, const Shape& shape, const StructMoves& moves);

  struct MemoryRange {
    uintptr_t first;
    uintptr_t last;
  };
  [[nodiscard]] MemoryRange memory_range(int64_t count, const std::byte* base) const;

  const KernelSet* set_;
  int64_t count_max_;
  int64_t structs_;
  int64_t origin_;
  int64_t true_lb_;
  int64_t true_extent_;
  int64_t extent_;
  StructMoves moves_;
};

}  // namespace spinloom::layout
