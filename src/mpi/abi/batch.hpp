// Batch - the requests of one call, as the MPI shall see them, with what the layer knows of each.
//
// Contract: requests() are handed to the MPI; they are the program's own array where none is replaced. finish() ends
//   one that the MPI has completed. The destructor writes the MPI's changes back to the program's array, and gives the
//   layer back what it knows of the requests that have not completed.
// Invariants: (1) where another request carries the start of a persistent one, the MPI gets that other request, and the
//   program's handle stays.
// Threads: one for each Batch; it takes the lock itself. Time: none.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// Room for an array of things: without an allocation for up to `few` of them. fill() makes `count` copies of a value
// there and returns the first.
template <class Thing>
class Few {
 public:
  static constexpr size_t few = 16;

  Thing* fill(size_t count, const Thing& value) {
    if (count > few) {
      many_.assign(count, value);
      return many_.data();
    }
    std::fill_n(few_.begin(), count, value);
    return few_.data();
  }

 private:
  std::array<Thing, few> few_;
  std::vector<Thing> many_;
};

class Batch {
 public:
  Batch(int count, Request* requests) : count_(count < 0 ? 0 : static_cast<size_t>(count)), program_(requests) {
    const Lock lock;
    layer.attend();
    if (layer.open.empty()) return;
    for (size_t i = 0; i < count_; ++i) {
      Open* const known = layer.take(requests[i]);
      if (known == nullptr) continue;
      if (!any()) entries_ = room_.fill(count_, {nullptr, false, false});
      entries_[i] = {known, known->substituted, false};
      substitutes_ = substitutes_ || known->substituted;
    }
    if (!substitutes_) return;
    work_.assign(requests, requests + count_);
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].is_substitute) work_[i] = entries_[i].known->inner;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (!any() || !(substitutes_ || layer.threaded)) return;
    const Lock lock;
    for (size_t i = 0; i < count_; ++i) {
      const Entry& entry = entries_[i];
      if (substitutes_ && !entry.is_substitute) program_[i] = work_[i];
      if (entry.known == nullptr || entry.is_done) continue;
      if (entry.is_substitute) entry.known->inner = work_[i];
      layer.put_back(entry.known->handle, entry.known);
    }
  }

  // Looks at what has arrived for these requests, among threads. Without threads, progress() finds them by itself.
  void look() {
    if (!any() || !layer.threaded) return;
    const Lock lock;
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].known != nullptr && !entries_[i].is_done) layer.look_at(*entries_[i].known);
    }
  }

  [[nodiscard]] bool any() const { return entries_ != nullptr; }
  [[nodiscard]] Request* requests() { return substitutes_ ? work_.data() : program_; }
  [[nodiscard]] bool knows(int i) const { return any() && entries_[i].known != nullptr && !entries_[i].is_done; }
  // Ends request `i`, which the MPI has completed with `code`. Returns the code that the program gets for it.
  [[nodiscard]] int finish(int i, Status* status, int code) {
    if (!knows(i) || entries_[i].is_done) return code;
    entries_[i].is_done = true;
    Open* const known = entries_[i].known;
    return layer.finish(known->handle, known, status, code);
  }

 private:
  struct Entry {
    Open* known;
    bool is_substitute;
    bool is_done;
  };

  size_t count_;
  Request* program_;
  bool substitutes_ = false;
  Few<Entry> room_;
  Entry* entries_ = nullptr;  // null if the layer knows none of the requests
  std::vector<Request> work_;
};

// Ends the requests of a call that has completed all of them, but for those that the MPI calls pending. Returns the
// code of the program's call: `code` itself where the call has failed as a whole.
[[nodiscard]] int finish_all(Batch& batch, int count, Status* statuses, int code);

}  // namespace spinloom::mpi::SPINLOOM_ABI
