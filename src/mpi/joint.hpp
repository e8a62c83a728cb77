// JointCopy - one copy that both ends of a message do, part by part: each takes the next part until none is left.
//
// Contract: the receiver open()s it; then either end take()s parts, copies them by copy_part(), and says finish(). An end
//   that cannot copy a part that it has taken says refuse(), and takes no more while has_refused(): the receiver copies
//   that part. is_over() says that all parts are in place.
// Invariants: (1) whoever has taken a part may read the other's memory and layout until it finishes or refuses it,
//   because the receiver waits for it; (2) parts are copied once.
// Threads: the two ends, which may be processes; it lies in shared memory. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "mpi/ends.hpp"
#include "mpi/message.hpp"

namespace spinloom::mpi {

class JointCopy {
 public:
  void open(const Offer& target, int64_t bytes);

  [[nodiscard]] bool has_more() const { return next_.load(std::memory_order_relaxed) < parts_; }
  [[nodiscard]] std::optional<Range> take();
  void finish() { copied_.fetch_add(1, std::memory_order_release); }
  void refuse(Range part) { refused_.store(part.first + 1, std::memory_order_release); }
  // Whether there is a refused part that the receiver has not taken.
  [[nodiscard]] bool has_refused() const { return refused_.load(std::memory_order_relaxed) != 0; }
  // The part that the sender has refused; once.
  [[nodiscard]] std::optional<Range> take_refused();
  [[nodiscard]] bool is_over() const { return copied_.load(std::memory_order_acquire) == parts_; }
  [[nodiscard]] const Offer& target() const { return target_; }

 private:
  [[nodiscard]] Range part_from(int64_t first) const;

  Offer target_;
  int64_t bytes_;
  int64_t part_bytes_;
  uint32_t parts_;
  std::atomic<uint32_t> next_;
  std::atomic<uint32_t> copied_;
  std::atomic<int64_t> refused_;  // where that part begins, and 1; 0: none
};

}  // namespace spinloom::mpi
