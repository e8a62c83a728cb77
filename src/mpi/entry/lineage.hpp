// Lineage - names a communicator alike on all of its ranks, without a message.
//
// Contract: a communicator's lineage is a Key that follows from how it was made: from its parent's key and the number
//   of the call among the parent's calls that make communicators. next_child() is called for each such call of the
//   communicator, even if this rank gets no communicator from it. next_child(group, tag) is called for those in which
//   only the ranks of a group take part. next_window() does the same for windows.
// Invariants: (1) calls that make communicators are made by all ranks of the parent in one order, so that all count
//   alike; a call of a group is counted by that group and tag alone, in the order of its members. (2) Communicators
//   with one lineage are one, or have no rank in common: the communicators of one call (MPI_Comm_split) are disjoint,
//   and so are the children of disjoint parents. So Key::of_members() tells all communicators of a world apart. (3)
//   Keys of 128 bits that are alike by chance would let two communicators count their calls together; among a million
//   of them the chance is 10^-27.
// Threads: the caller's lock. Time: none.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace spinloom::mpi {

struct Key {
  uint64_t low = 0;  // 0: no key
  uint64_t high = 0;

  [[nodiscard]] bool is_none() const { return low == 0; }
  [[nodiscard]] Key with(uint64_t word) const;
  [[nodiscard]] Key of_members(std::span<const int> in_world) const;
  auto operator<=>(const Key&) const = default;
};

class Lineage {
 public:
  explicit Lineage(Key key) : key_(key) {}
  [[nodiscard]] Key key() const { return key_; }
  [[nodiscard]] static Lineage of_world() { return Lineage(Key{1, 1}); }

  // Returns the key of the communicators that the next call makes.
  [[nodiscard]] Key next_child() { return key_.with(children).with(++children_); }
  // `group`: its members in the order of the new communicator.
  [[nodiscard]] Key next_child(std::span<const int> group, int tag);
  [[nodiscard]] Key next_window() { return key_.with(windows).with(++windows_); }

 private:
  static constexpr uint64_t children = 1;
  static constexpr uint64_t group_children = 2;
  static constexpr uint64_t windows = 3;

  Key key_;
  uint64_t children_ = 0;
  uint64_t windows_ = 0;
  std::map<std::vector<int>, uint64_t> group_calls_;  // numbers of calls, by tag and members
};

}  // namespace spinloom::mpi
