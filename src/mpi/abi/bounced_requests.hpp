// BouncedRequests - requests whose buffers are bounced until they have ended.
//
// Contract: keep() notes one by its handle; who completes requests takes them out before the MPI does, lands those that
//   have ended, and puts the others back. Requests that the program frees while they are active go on as orphans, which
//   are looked at in the program's later calls.
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
  std::vector<bool> is_in_place;  // of what is received
};

// A request whose call's buffers are bounced.
struct BouncedRequest {
  BounceBuffers bounce;
  bool by_status = false;  // how much has come is told by the status
  bool is_persistent = false;
  bool is_active = true;
  bool has_landed = false;  // MPI_Request_get_status has put it in place already
  std::unique_ptr<Parts> parts;  // null but for partitioned messages
};

class BouncedRequests {
 public:
  [[nodiscard]] bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  void keep(Request handle, std::shared_ptr<BouncedRequest> request);
  [[nodiscard]] std::shared_ptr<BouncedRequest> find(Request handle);
  // Removes it before the MPI completes the request: another thread may be given the same handle at once.
  [[nodiscard]] std::shared_ptr<BouncedRequest> take(Request handle);
  // Those that are not null; the others have ended.
  void put_back(std::span<const Request> handles, std::span<std::shared_ptr<BouncedRequest>> requests);
  // What the program has freed before its end: the request is the MPI's until it has ended.
  void orphan(Request handle, std::shared_ptr<BouncedRequest> request);
  [[nodiscard]] bool has_orphans() const { return orphan_count_.load(std::memory_order_relaxed) != 0; }
  // `all`: waits for them.
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

// Puts what a request has got in place, once it has ended well. The code that the program gets.
[[nodiscard]] int land(BouncedRequest& bounced, const Status& status);
// The same where the request stays open.
[[nodiscard]] int land_once(BouncedRequest& bounced, const Status& status);
// One part of what a partitioned message has brought.
void land_part(BouncedRequest& bounced, size_t i);
// Before a persistent request is started.
[[nodiscard]] int fill(BouncedRequest& bounced, Request handle);
// True if a request has ended already: then nothing need be kept for it.
[[nodiscard]] bool has_ended(Request request);

}  // namespace spinloom::mpi::SPINLOOM_ABI
