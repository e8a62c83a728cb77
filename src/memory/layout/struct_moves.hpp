// Struct moves - structs of a few short runs as moves of 1 to 32 bytes: what a compiler makes of known fields.
//
// Contract: prepare() takes a leaf of at most struct_runs_max runs, struct_run_bytes_max bytes each on the average
//   (is_struct()), repeated at a stride. A run of n bytes becomes moves of the largest power of two in n, up to 32, and
//   one for the rest, which may overlap the one before it. They are grouped, each group with the kernel for its
//   lengths.
//   unpack() and copy() need is_disjoint() of the side that is written, copy() two for which matches() is true.
// Invariants: (1) only the runs' bytes are read or written; (2) a group moves many structs before the next one
//   begins: not in packed order.
// Threads: immutable. Time: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/layout/kernel.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {

template <class Node>
bool is_struct(const Node& leaf) {
  return leaf.kind <= SPL_LEAF_LAST && static_cast<int64_t>(leaf.count) <= struct_runs_max &&
         static_cast<int64_t>(leaf.size) <= static_cast<int64_t>(leaf.count) * struct_run_bytes_max;
}

class StructMoves {
 public:
  // Prepares the moves. False: the runs need too many moves, or they or the structs lie too far apart.
  template <class W>
  [[nodiscard]] bool prepare(const KernelSet& set, const typename W::Node& leaf, int64_t stride);

  // True if structs may be written in any order, because no byte is written twice: the runs' offsets rise, and the
  // structs do not overlap.
  [[nodiscard]] bool is_disjoint() const { return is_disjoint_; }
  // True if the runs of both have the same lengths and the same kernels.
  [[nodiscard]] bool matches(const StructMoves& other) const;

  void pack(std::byte* packed, const std::byte* memory, int64_t structs) const {
    run_groups<&Group::packed, &Group::memory>(packed, *this, memory, structs);
  }
  void unpack(std::byte* memory, const std::byte* packed, int64_t structs) const {
    run_groups<&Group::memory, &Group::packed>(memory, *this, packed, structs);
  }
  // Copies from structs that lie elsewhere.
  void copy(std::byte* to, const StructMoves& source, const std::byte* from, int64_t structs) const {
    run_groups<&Group::memory, &Group::memory>(to, source, from, structs);
  }

 private:
  struct Group {
    MovesKernel kernel;
    MoveSide memory;
    MoveSide packed;
  };
  static constexpr size_t moves_max = 33;  // enough for struct_runs_max runs below 32 bytes, two moves each
  static constexpr size_t groups_max = 11;  // a group has at least three moves, except the last

  // Runs every group over a tile of structs that stays in the first-level cache, then over the next tile.
  template <MoveSide Group::* to_side, MoveSide Group::* from_side>
  [[gnu::always_inline]] void run_groups(std::byte* to, const StructMoves& source, const std::byte* from,
                                         int64_t structs) const {
    if (group_count_ == 1)
      return groups_[0].kernel(to, from, structs, groups_[0].*to_side, source.groups_[0].*from_side);
    for (; structs > struct_tile; structs -= struct_tile) {
      run_groups_on_tile<to_side, from_side>(to, source, from, struct_tile);
      to += struct_tile * (groups_[0].*to_side).step;
      from += struct_tile * (source.groups_[0].*from_side).step;
    }
    run_groups_on_tile<to_side, from_side>(to, source, from, structs);
  }
  template <MoveSide Group::* to_side, MoveSide Group::* from_side>
  [[gnu::always_inline]] void run_groups_on_tile(std::byte* to, const StructMoves& source, const std::byte* from,
                                                 int64_t structs) const {
    const Group* other = source.groups_.data();
    for (const Group* group = groups_.data(); group != groups_.data() + group_count_; ++group, ++other) {
      group->kernel(to, from, structs, group->*to_side, other->*from_side);
    }
  }

  size_t group_count_ = 0;
  bool is_disjoint_ = false;
  std::array<Group, groups_max> groups_;
};

}  // namespace spinloom::layout
