// Windows - the memory of each rank that one-sided operations of others reach, by tag, and what has become of it.
//
// Contract: each put, atomic and fetching atomic has a place of its own in the window of its target and tag, so that
//   the end of a run shows whether every byte has come, and only there. Gets read the random data of Payloads. A rank
//   has a window for each tag that comes to it or that an `arrived` of it asks for; its number counts them in the order
//   of tags. Only what a rank of the sample does or gets counts.
// Invariants: (1) Windows without `has_memory` have no memory, and offsets in them are 0.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/schedule/schedule.hpp"
#include "simulated/node/zeroed.hpp"

namespace spinloom::goal {

class Payloads;

class Windows {
 public:
  struct Window {
    uint32_t tag = 0;
    uint64_t bytes = 0;
    uint64_t begin = 0;  // its offset in the memory of all windows
  };
  // Memory under an atomic holds this mask before a run; the atomic xors the data of its message in, which leaves data
  // xor mask. Memory under a fetching atomic holds data xor mask; the atomic swaps the data in and brings data xor mask
  // back.
  static constexpr uint8_t initial_mask = 0x55;

  Windows() = default;
  Windows(const schedule::Schedule& schedule, bool has_memory, const Sample& sample);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Makes the memory, as the operations must find it (initial_mask).
  void initialise(const schedule::Schedule& schedule, const Payloads& payloads);
  [[nodiscard]] std::span<const Window> windows_of(uint32_t rank) const {
    return windows_.empty() ? std::span<const Window>() : std::span<const Window>(windows_[rank]);
  }
  // The memory of all windows.
  [[nodiscard]] uint8_t* memory() { return memory_.data(); }
  // Returns the number of the window of a tag, among those of a rank.
  [[nodiscard]] uint32_t window_number(uint32_t rank, uint32_t tag) const;
  // Returns the offset in its window at which the bytes of an operation begin.
  [[nodiscard]] uint64_t offset(uint32_t rank, uint32_t operation) const {
    return offsets_.empty() ? 0 : offsets_[first_operations_[rank] + operation];
  }
  // Returns an Error unless every operation has done what it should, at the end of a run that was complete.
  [[nodiscard]] Status check(const schedule::Schedule& schedule, const Payloads& payloads) const;

 private:
  Sample sample_;
  std::vector<std::vector<Window>> windows_;  // empty: nothing is one-sided
  simulated::ZeroedBytes memory_;
  std::vector<uint64_t> first_operations_;  // one for each rank: the index in offsets_ of its first operation
  std::vector<uint64_t> offsets_;  // one for each operation of all ranks: the place where its bytes begin in its window
  uint64_t bytes_ = 0;  // the bytes of all windows
};

}  // namespace spinloom::goal
