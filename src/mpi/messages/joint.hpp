// JointCopy - one copy that both ends of a message do, part by part, until none is left.
//
// The receiver begins with the first part and the sender with the last, so that they write to lines in common only
// where they meet, even if the elements of a type lie between each other.
//
// Contract: the receiver open()s it; then either end take()s parts, copies them by copy_part(), and calls finish() for
//   each. A sender that cannot copy a part that it has taken calls refuse(), and takes no more while has_refused(): the
//   receiver copies that part. is_over() is true when all parts are in place.
// Invariants: (1) an end that has taken a part may use the other's memory and layout until it finishes or refuses the
//   part, because the receiver waits for it; (2) each part is copied once, unless a copy failed:
//   then the receiver finishes its parts without copying them, and waits for the sender's.
// Threads: the two ends, which may be processes; it lies in shared memory. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "mpi/messages/ends.hpp"
#include "mpi/messages/message.hpp"

namespace spinloom::mpi {

class JointCopy {
 public:
  enum class Side : uint8_t { receiver, sender };

  // `bundle_bytes`: parts are multiples of this (message.hpp), and of at least 64 bytes.
  void open(const Offer& target, int64_t bytes, int64_t bundle_bytes);

  [[nodiscard]] bool has_more() const { return taken_parts(taken_.load(std::memory_order_relaxed)) < parts_; }
  [[nodiscard]] std::optional<Range> take(Side side);
  void finish() { copied_.fetch_add(1, std::memory_order_release); }
  void refuse(Range part) { refused_.store(part.first + 1, std::memory_order_release); }
  // True if there is a refused part that the receiver has not taken.
  [[nodiscard]] bool has_refused() const { return refused_.load(std::memory_order_relaxed) != 0; }
  // Returns the part that the sender has refused, once.
  [[nodiscard]] std::optional<Range> take_refused();
  [[nodiscard]] bool is_over() const { return copied_.load(std::memory_order_acquire) == parts_; }
  [[nodiscard]] const Offer& target() const { return target_; }

 private:
  static constexpr uint32_t sender_shift = 32;  // the lowest bit of `taken_` that counts the sender's parts
  [[nodiscard]] static uint64_t taken_parts(uint64_t both) {
    return (both >> sender_shift) + static_cast<uint32_t>(both);
  }
  [[nodiscard]] Range part_from(int64_t first) const;

  Offer target_;
  int64_t bytes_;
  int64_t part_bytes_;
  uint32_t parts_;
  std::atomic<uint64_t> taken_;  // calls of take() by the receiver (low half) and by the sender (high half)
  std::atomic<uint32_t> copied_;
  std::atomic<int64_t> refused_;  // the first byte of the refused part, plus 1; 0: none
};

}  // namespace spinloom::mpi
