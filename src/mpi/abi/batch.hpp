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

// Room for an array of values: without an allocation for up to `inline_max` of them. fill() makes `count` copies of a
// value there and returns the first.
template <class Value>
class SmallArray {
 public:
  static constexpr size_t inline_max = 16;

  Value* fill(size_t count, const Value& value) {
    if (count > inline_max) {
      allocated_.assign(count, value);
      return allocated_.data();
    }
    std::fill_n(inline_.begin(), count, value);
    return inline_.data();
  }

 private:
  std::array<Value, inline_max> inline_;
  std::vector<Value> allocated_;
};

class Batch {
 public:
  Batch(int count, Request* requests)
      : count_(count < 0 ? 0 : static_cast<size_t>(count)), program_requests_(requests) {
    const Lock lock;
    layer.attend();
    if (layer.tracked_requests.empty()) return;
    for (size_t i = 0; i < count_; ++i) {
      TrackedRequest* const tracked = layer.take(requests[i]);
      if (tracked == nullptr) continue;
      if (!has_tracked()) entries_ = room_.fill(count_, {nullptr, false, false});
      entries_[i] = {tracked, tracked->is_substituted, false};
      has_substitutes_ = has_substitutes_ || tracked->is_substituted;
    }
    if (!has_substitutes_) return;
    substituted_.assign(requests, requests + count_);
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].is_substitute) substituted_[i] = entries_[i].tracked->substitute;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (!has_tracked() || !(has_substitutes_ || layer.is_threaded)) return;
    const Lock lock;
    for (size_t i = 0; i < count_; ++i) {
      const Entry& entry = entries_[i];
      if (has_substitutes_ && !entry.is_substitute) program_requests_[i] = substituted_[i];
      if (entry.tracked == nullptr || entry.is_done) continue;
      if (entry.is_substitute) entry.tracked->substitute = substituted_[i];
      layer.put_back(entry.tracked->handle, entry.tracked);
    }
  }

  // Looks at what has arrived for these requests, among threads. Without threads, progress() finds them by itself.
  void look_for_arrivals() {
    if (!has_tracked() || !layer.is_threaded) return;
    const Lock lock;
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].tracked != nullptr && !entries_[i].is_done) layer.look_at(*entries_[i].tracked);
    }
  }

  [[nodiscard]] bool has_tracked() const { return entries_ != nullptr; }
  [[nodiscard]] Request* requests() { return has_substitutes_ ? substituted_.data() : program_requests_; }
  [[nodiscard]] bool tracks(int i) const {
    return has_tracked() && entries_[i].tracked != nullptr && !entries_[i].is_done;
  }
  // Ends request `i`, which the MPI has completed with `code`. Returns the code that the program gets for it.
  [[nodiscard]] int finish(int i, Status* status, int code) {
    if (!tracks(i) || entries_[i].is_done) return code;
    entries_[i].is_done = true;
    TrackedRequest* const tracked = entries_[i].tracked;
    return layer.finish(tracked->handle, tracked, status, code);
  }

 private:
  struct Entry {
    TrackedRequest* tracked;
    bool is_substitute;
    bool is_done;
  };

  size_t count_;
  Request* program_requests_;
  bool has_substitutes_ = false;
  SmallArray<Entry> room_;
  Entry* entries_ = nullptr;  // null if the layer knows none of the requests
  std::vector<Request> substituted_;
};

// Ends the requests of a call that has completed all of them, but for those that the MPI calls pending. Returns the
// code of the program's call: `code` itself where the call has failed as a whole.
[[nodiscard]] int finish_all(Batch& batch, int count, Status* statuses, int code);

}  // namespace spinloom::mpi::SPINLOOM_ABI
