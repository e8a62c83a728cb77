// Batch - the requests of one call, as the MPI shall see them, with what the layer knows of each.
//
// Contract: requests() are handed to the MPI instead of the program's; finish() ends one that the MPI has completed. The
//   destructor writes the MPI's changes back to the program's array, and keeps what has not completed.
// Invariants: (1) a start of a persistent request that another request carries is replaced by that one, and the
//   program's handle stays. Threads: one. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Batch {
 public:
  Batch(int count, Request* requests) : count_(count < 0 ? 0 : static_cast<size_t>(count)), program_(requests) {
    const Lock lock;
    layer.attend();
    if (layer.open.empty()) return;
    for (size_t i = 0; i < count_; ++i) {
      Open* const known = layer.take(requests[i]);
      if (known == nullptr) continue;
      if (known_.empty()) {
        known_.resize(count_);
        handles_.assign(requests, requests + count_);
      }
      known_[i] = known;
      substitutes_ = substitutes_ || known->substituted;
    }
    if (!substitutes_) return;
    work_ = handles_;
    for (size_t i = 0; i < count_; ++i) {
      if (known_[i] != nullptr && known_[i]->substituted) work_[i] = known_[i]->inner;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    const Lock lock;
    for (size_t i = 0; i < known_.size(); ++i) {
      Open* const known = known_[i];
      if (substitutes_ && (known == nullptr || !is_substitute_[i])) program_[i] = work_[i];
      if (known == nullptr || done_[i]) continue;
      if (substitutes_ && is_substitute_[i]) known->inner = work_[i];
      layer.put_back(handles_[i], known);
    }
  }

  [[nodiscard]] bool any() const { return !known_.empty(); }
  [[nodiscard]] Request* requests() {
    if (any() && is_substitute_.empty()) note();
    return substitutes_ ? work_.data() : program_;
  }
  [[nodiscard]] bool knows(int i) const { return any() && known_[static_cast<size_t>(i)] != nullptr; }
  [[nodiscard]] Comm comm_of(int i) const { return known_[static_cast<size_t>(i)]->place.comm; }
  // The code that the program gets for this request.
  [[nodiscard]] int finish(int i, Status* status, int code) {
    const auto at = static_cast<size_t>(i);
    if (!knows(i) || done_[at]) return code;
    done_[at] = true;
    return layer.finish(handles_[at], known_[at], status, code);
  }

 private:
  void note() {
    done_.resize(count_);
    is_substitute_.resize(count_);
    for (size_t i = 0; i < count_; ++i) is_substitute_[i] = known_[i] != nullptr && known_[i]->substituted;
  }

  size_t count_;
  Request* program_;
  bool substitutes_ = false;
  std::vector<Open*> known_;
  std::vector<Request> handles_;  // as they were before the call
  std::vector<Request> work_;
  std::vector<char> is_substitute_;
  std::vector<char> done_;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
