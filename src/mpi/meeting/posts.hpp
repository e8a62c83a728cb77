// Posts - counts a rank's posts of a window (MPI_Win_post) to each other rank, in memory that peers see.
//
// Contract: make() takes room for a window of `ranks` ranks in memory that peers map; without room address() is 0.
//   add() counts one more post to each of the given ranks, before the MPI's call; take_back() undoes it if the MPI has
//   refused the post. An origin finds its own count offset_of() bytes behind the address.
// Invariants: (1) an origin's n-th start with a target in its group matches the target's n-th post with that origin in
//   its group (MPI 4.1, 12.5.2): an origin that has started n times may access the target's memory if it reads a count
//   of n or more. (2) A rank that reads a count sees all that the target has written before the post.
// Threads: any. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

namespace spinloom::mpi {

class Posts {
 public:
  using Count = std::atomic<uint64_t>;

  Posts() = default;
  Posts(Posts&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)) {}
  Posts& operator=(Posts&& other) noexcept {
    std::swap(counts_, other.counts_);
    return *this;
  }
  ~Posts();

  [[nodiscard]] static Posts make(size_t ranks);
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(counts_); }
  [[nodiscard]] static uint64_t offset_of(int origin) { return static_cast<uint64_t>(origin) * sizeof(Count); }

  void add(std::span<const int> origins) const {
    if (counts_ == nullptr) return;
    for (const int origin : origins) counts_[origin].fetch_add(1, std::memory_order_seq_cst);
  }
  void take_back(std::span<const int> origins) const {
    if (counts_ == nullptr) return;
    for (const int origin : origins) counts_[origin].fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  Count* counts_ = nullptr;
};

}  // namespace spinloom::mpi
