// Calls that start, complete, look at and free requests whose buffers are bounced, or in which freed requests go on.
#include "mpi/abi/bounced.hpp"
#include "mpi/abi/calls.hpp"
#include "mpi/abi/gapless_type.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The requests of one call, as the program gave them, and the statuses that tell of them. They are taken out while the
// MPI completes them, and put back where they have not ended.
class BouncedBatch {
 public:
  BouncedBatch(int count, const Request* requests, Status* statuses) : statuses_(statuses) {
    const auto length = static_cast<size_t>(count < 0 ? 0 : count);
    handles_.assign(requests, requests + length);
    for (const Request handle : handles_) {
      bounced_.push_back(bounced_requests.take(handle));
      has_bounced_ = has_bounced_ || bounced_.back() != nullptr;
    }
    if (!has_bounced_ || statuses != status_ignore) return;
    own_statuses_.resize(length);
    statuses_ = own_statuses_.data();
  }
  BouncedBatch(const BouncedBatch&) = delete;
  BouncedBatch& operator=(const BouncedBatch&) = delete;
  ~BouncedBatch() {
    bounced_requests.put_back(handles_, bounced_);
    if (bounced_requests.has_orphans()) bounced_requests.look_at_orphans(false);
  }
  [[nodiscard]] Status* statuses() { return statuses_; }
  // Ends request `i`, which has ended with `code`; its status is number `k`.
  void end(int i, int k, int code) {
    const auto at = static_cast<size_t>(i);
    if (at >= bounced_.size() || bounced_[at] == nullptr) return;
    const int landed = code == success ? land(*bounced_[at], statuses_[k]) : success;
    if (landed != success) code_ = landed;
    if (!bounced_[at]->is_persistent)
      bounced_[at].reset();
    else
      bounced_[at]->is_active = false;
  }
  // The code that the program's call returns.
  [[nodiscard]] int result(int code) const { return code == success ? code_ : code; }

 private:
  Status* statuses_;
  std::vector<Status> own_statuses_;
  std::vector<Request> handles_;
  std::vector<std::shared_ptr<BouncedRequest>> bounced_;
  bool has_bounced_ = false;
  int code_ = success;
};

using HookedStart = HookedCall<"Start", Request*>;
using HookedStartall = HookedCall<"Startall", int, Request*>;
using HookedWait = HookedCall<"Wait", Request*, Status*>;
using HookedTest = HookedCall<"Test", Request*, int*, Status*>;
using HookedWaitall = HookedCall<"Waitall", int, Request*, Status*>;
using HookedTestall = HookedCall<"Testall", int, Request*, int*, Status*>;
using HookedWaitany = HookedCall<"Waitany", int, Request*, int*, Status*>;
using HookedTestany = HookedCall<"Testany", int, Request*, int*, int*, Status*>;
using HookedWaitsome = HookedCall<"Waitsome", int, Request*, int*, int*, Status*>;
using HookedTestsome = HookedCall<"Testsome", int, Request*, int*, int*, Status*>;
using HookedLook = HookedCall<"Request_get_status", Request, int*, Status*>;
using HookedLookAtAll = HookedCall<"Request_get_status_all", int, const Request*, int*, Status*>;
using HookedLookAtAny = HookedCall<"Request_get_status_any", int, const Request*, int*, int*, Status*>;
using HookedLookAtSome = HookedCall<"Request_get_status_some", int, const Request*, int*, int*, Status*>;
using HookedFree = HookedCall<"Request_free", Request*>;
using HookedFinalize = HookedCall<"Finalize">;

#define SPINLOOM_UNLESS_BOUNCED(Hooked, ...)                     \
  if (bounced_requests.none()) return Hooked::next(__VA_ARGS__); \
  if (layer.library->contains(__builtin_return_address(0))) return Hooked::mpi_function(__VA_ARGS__)

// Makes a request inactive again that did not start after all, and drops its offer.
void stop(BouncedRequest* bounced) {
  if (bounced == nullptr) return;
  drop_offer(bounced->bounce);
  bounced->is_active = false;
}

int start_bounced(Request* request) {
  SPINLOOM_UNLESS_BOUNCED(HookedStart, request);
  const std::shared_ptr<BouncedRequest> bounced = bounced_requests.find(*request);
  int code = bounced == nullptr ? success : fill(*bounced, *request);
  if (code == success) code = HookedStart::next(request);
  if (code != success) stop(bounced.get());
  return code;
}
int start_all_bounced(int count, Request* requests) {
  SPINLOOM_UNLESS_BOUNCED(HookedStartall, count, requests);
  std::vector<std::shared_ptr<BouncedRequest>> filled;
  for (int i = 0; i < count; ++i) {
    filled.push_back(bounced_requests.find(requests[i]));
    const int code = filled.back() == nullptr ? success : fill(*filled.back(), requests[i]);
    if (code == success) continue;
    for (const auto& bounced : filled) stop(bounced.get());
    return code;
  }
  const int code = HookedStartall::next(count, requests);
  for (const auto& bounced : filled) {  // some may have started
    if (code != success && bounced != nullptr) drop_offer(bounced->bounce);
  }
  return code;
}

int wait_bounced(Request* request, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedWait, request, status);
  BouncedBatch batch(1, request, status);
  const int code = HookedWait::next(request, batch.statuses());
  batch.end(0, 0, code);
  return batch.result(code);
}
int test_bounced(Request* request, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedTest, request, flag, status);
  BouncedBatch batch(1, request, status);
  const int code = HookedTest::next(request, flag, batch.statuses());
  if (code != success || *flag != 0) batch.end(0, 0, code);
  return batch.result(code);
}

// Ends all requests of a call that has completed them, some of them perhaps with errors of their own.
int end_all(BouncedBatch& batch, int count, int code) {
  if (code != success && code != error_in_status) return code;
  for (int i = 0; i < count; ++i) {
    const int own_code = code == success ? success : batch.statuses()[i].error;
    if (own_code != error_pending) batch.end(i, i, own_code);
  }
  return batch.result(code);
}
int wait_all_bounced(int count, Request* requests, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedWaitall, count, requests, statuses);
  BouncedBatch batch(count, requests, statuses);
  return end_all(batch, count, HookedWaitall::next(count, requests, batch.statuses()));
}
int test_all_bounced(int count, Request* requests, int* flag, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedTestall, count, requests, flag, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = HookedTestall::next(count, requests, flag, batch.statuses());
  return code == success && *flag == 0 ? code : end_all(batch, count, code);
}

int wait_any_bounced(int count, Request* requests, int* index, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedWaitany, count, requests, index, status);
  BouncedBatch batch(count, requests, status);
  const int code = HookedWaitany::next(count, requests, index, batch.statuses());
  if (*index >= 0 && *index < count) batch.end(*index, 0, code);
  return batch.result(code);
}
int test_any_bounced(int count, Request* requests, int* index, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedTestany, count, requests, index, flag, status);
  BouncedBatch batch(count, requests, status);
  const int code = HookedTestany::next(count, requests, index, flag, batch.statuses());
  if (*flag != 0 && *index >= 0 && *index < count) batch.end(*index, 0, code);
  return batch.result(code);
}

int end_some(BouncedBatch& batch, const int* done, const int* indices, int code) {
  if (*done == undefined || (code != success && code != error_in_status)) return code;
  for (int k = 0; k < *done; ++k) {
    batch.end(indices[k], k, code == success ? success : batch.statuses()[k].error);
  }
  return batch.result(code);
}
int wait_some_bounced(int count, Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedWaitsome, count, requests, done, indices, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = HookedWaitsome::next(count, requests, done, indices, batch.statuses());
  return end_some(batch, done, indices, code);
}
int test_some_bounced(int count, Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedTestsome, count, requests, done, indices, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = HookedTestsome::next(count, requests, done, indices, batch.statuses());
  return end_some(batch, done, indices, code);
}

// Puts the bytes of a request that has ended in place now; the call that completes it leaves them there.
int land_seen(Request request, const Status& seen) {
  const std::shared_ptr<BouncedRequest> bounced = bounced_requests.find(request);
  if (bounced == nullptr || !bounced->is_active || bounced->has_landed) return success;
  const int landed = land_once(*bounced, seen);
  bounced->has_landed = true;
  return landed;
}
int look_bounced(Request request, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedLook, request, flag, status);
  CallStatus seen(status);
  const int code = HookedLook::next(request, flag, seen.get());
  return code != success || *flag == 0 ? code : land_seen(request, *seen.get());
}

// Statuses for `count` requests where the program wants none.
class CallStatuses {
 public:
  CallStatuses(int count, Status* program_statuses) : statuses_(program_statuses) {
    if (program_statuses != status_ignore) return;
    own_statuses_.resize(static_cast<size_t>(count < 0 ? 0 : count));
    statuses_ = own_statuses_.data();
  }
  CallStatuses(const CallStatuses&) = delete;
  CallStatuses& operator=(const CallStatuses&) = delete;
  [[nodiscard]] Status* get() { return statuses_; }

 private:
  std::vector<Status> own_statuses_;
  Status* statuses_;
};
int look_at_all_bounced(int count, const Request* requests, int* flag, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedLookAtAll, count, requests, flag, statuses);
  CallStatuses seen(count, statuses);
  int code = HookedLookAtAll::next(count, requests, flag, seen.get());
  for (int i = 0; i < count && code == success && *flag != 0; ++i) code = land_seen(requests[i], seen.get()[i]);
  return code;
}
int look_at_any_bounced(int count, const Request* requests, int* index, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(HookedLookAtAny, count, requests, index, flag, status);
  CallStatus seen(status);
  const int code = HookedLookAtAny::next(count, requests, index, flag, seen.get());
  if (code != success || *flag == 0 || *index < 0 || *index >= count) return code;
  return land_seen(requests[*index], *seen.get());
}
int look_at_some_bounced(int count, const Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(HookedLookAtSome, count, requests, done, indices, statuses);
  CallStatuses seen(count, statuses);
  int code = HookedLookAtSome::next(count, requests, done, indices, seen.get());
  for (int k = 0; code == success && k < *done && *done != undefined; ++k) {
    code = land_seen(requests[indices[k]], seen.get()[k]);
  }
  return code;
}

int free_bounced(Request* request) {
  SPINLOOM_UNLESS_BOUNCED(HookedFree, request);
  forget_parts(*request);
  std::shared_ptr<BouncedRequest> bounced = bounced_requests.take(*request);
  if (bounced == nullptr || !bounced->is_active) return HookedFree::next(request);
  if (bounced->bounce.file) {  // the program may close the file at once
    Status status{};
    const int code = layer.is_on ? SPINLOOM_ABI::Wait(request, &status) : real.Wait(request, &status);
    return code == success ? land(*bounced, status) : code;
  }
  bounced_requests.orphan(*request, std::move(bounced));
  *request = handles().request_null;
  return success;
}

int finalize_bounced() {
  if (!bounced_requests.none()) bounced_requests.look_at_orphans(true);
  GaplessType::drop_kept();
  return HookedFinalize::next();
}

#undef SPINLOOM_UNLESS_BOUNCED

// Calls in which a program may wait for a message that it receives by a request which it has freed.
template <Name name, class... Arguments>
struct OrphanPoll {
  using Hooked = HookedCall<name, Arguments...>;
  static int call(Arguments... arguments) {
    const int code = Hooked::next(arguments...);
    if (bounced_requests.has_orphans() && !layer.library->contains(__builtin_return_address(0))) {
      bounced_requests.look_at_orphans(false);
    }
    return code;
  }
  static ForwardingHook hook() { return Hooked::hook(&call); }
};

}  // namespace

const ForwardingHook* bounce_hook(std::string_view name) {
  static const ForwardingHook requests[] = {
      HookedStart::hook(&start_bounced),
      HookedStartall::hook(&start_all_bounced),
      HookedWait::hook(&wait_bounced),
      HookedTest::hook(&test_bounced),
      HookedWaitall::hook(&wait_all_bounced),
      HookedTestall::hook(&test_all_bounced),
      HookedWaitany::hook(&wait_any_bounced),
      HookedTestany::hook(&test_any_bounced),
      HookedWaitsome::hook(&wait_some_bounced),
      HookedTestsome::hook(&test_some_bounced),
      HookedLook::hook(&look_bounced),
      HookedLookAtAll::hook(&look_at_all_bounced),
      HookedLookAtAny::hook(&look_at_any_bounced),
      HookedLookAtSome::hook(&look_at_some_bounced),
      HookedFree::hook(&free_bounced),
      HookedFinalize::hook(&finalize_bounced),
      OrphanPoll<"Barrier", Comm>::hook(),
      OrphanPoll<"Probe", int, int, Comm, Status*>::hook(),
      OrphanPoll<"Iprobe", int, int, Comm, int*, Status*>::hook(),
      OrphanPoll<"Mprobe", int, int, Comm, MessageHandle*, Status*>::hook(),
      OrphanPoll<"Improbe", int, int, Comm, int*, MessageHandle*, Status*>::hook()};
  for (const std::span<const ForwardingHook> table :
       {std::span<const ForwardingHook>(requests), bounced_messages(), bounced_collectives(), bounced_reductions(),
        bounced_local(), bounced_files(), bounced_accesses(), bounced_parts()}) {
    for (const ForwardingHook& hook : table) {
      if (name == hook.name) return &hook;
    }
  }
  return nullptr;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
