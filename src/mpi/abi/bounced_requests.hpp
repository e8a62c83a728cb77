// BouncedRequests - requests whose buffers are bounced until they have ended.
//
// Contract: keep() notes one by its handle. A call that completes requests takes them out before it calls the MPI,
//   lands those that have ended, and puts the others back. Requests that the program frees while they are active go on
//   as orphans, which are looked at in the program's later calls; those of files are waited for.
// Invariants: (1) a handle that the MPI has given out again is never taken for the request that had it before.
// Threads: any; a request is one thread's at a time. Time: none.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "mpi/abi/bounce_buffers.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The parts of a partitioned message: each moves by itself.
struct Parts {
  Parts(size_t count, bool sent) : is_sent(sent), is_in_place(count) {}
  const bool is_sent;
  std::mutex mutex;
  std::vector<bool> is_in_place;  // one for each part of a receive: true if it has landed since the start
};

// A request whose call's buffers are bounced.
struct BouncedRequest {
  BounceBuffers bounce;
  bool has_bytes_in_status = false;  // the status says how many bytes have arrived
  bool is_persistent = false;
  bool is_active = true;
  bool has_landed = false;  // MPI_Request_get_status has put the bytes in place already
  std::unique_ptr<Parts> parts;  // null unless the message is partitioned
};

class BouncedRequests {
 public:
  [[nodiscard]] bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  void keep(Request handle, std::shared_ptr<BouncedRequest> request);
  [[nodiscard]] std::shared_ptr<BouncedRequest> find(Request handle);
  // Returns the request and forgets it, before the MPI completes it: another thread may then get the same handle.
  [[nodiscard]] std::shared_ptr<BouncedRequest> take(Request handle);
  // Puts back the requests that are not null; the others have ended.
  void put_back(std::span<const Request> handles, std::span<std::shared_ptr<BouncedRequest>> requests);
  // Keeps a request that the program has freed while it was active, until the MPI has completed it.
  void orphan(Request handle, std::shared_ptr<BouncedRequest> request);
  [[nodiscard]] bool has_orphans() const { return orphan_count_.load(std::memory_order_relaxed) != 0; }
  // Lands the orphans that have ended. `all`: waits until all have.
  void look_at_orphans(bool all);

 private:
  struct Orphan {
    Request handle;
    std::shared_ptr<BouncedRequest> request;
  };
  std::mutex mutex_;
  HandleMap<std::shared_ptr<BouncedRequest>> open_;
  std::vector<Orphan> orphans_;
  std::atomic<size_t> count_{0};
  std::atomic<size_t> orphan_count_{0};
  void count();
};
extern BouncedRequests& bounced_requests;

// Puts in place what a request has received that has ended without an error. Returns the code that the program gets.
[[nodiscard]] int land(BouncedRequest& bounced, const Status& status);
// land() for a request that stays open; the caller sets `has_landed`.
[[nodiscard]] int land_once(BouncedRequest& bounced, const Status& status);
// Puts one part of a partitioned message in place, unless it is there already.
void land_part(BouncedRequest& bounced, size_t i);
// Fills the bounce buffers of a persistent request before it is started, or offers its message. The parts of a
// partitioned send are filled later, when they are ready. Returns the code that the program gets.
[[nodiscard]] int fill(BouncedRequest& bounced, Request handle);
// True if a request has ended already: then nothing need be kept for it.
[[nodiscard]] bool has_ended(Request request);

}  // namespace spinloom::mpi::SPINLOOM_ABI
