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
      found_.push_back(bounced_requests.take(handle));
      any_ = any_ || found_.back() != nullptr;
    }
    if (!any_ || statuses != status_ignore) return;
    own_.resize(length);
    statuses_ = own_.data();
  }
  BouncedBatch(const BouncedBatch&) = delete;
  BouncedBatch& operator=(const BouncedBatch&) = delete;
  ~BouncedBatch() {
    bounced_requests.put_back(handles_, found_);
    if (bounced_requests.has_orphans()) bounced_requests.look_at_orphans(false);
  }
  [[nodiscard]] Status* statuses() { return statuses_; }
  // Ends request `i`, which has ended with `code`; its status is number `k`.
  void end(int i, int k, int code) {
    const auto at = static_cast<size_t>(i);
    if (at >= found_.size() || found_[at] == nullptr) return;
    const int landed = code == success ? land(*found_[at], statuses_[k]) : success;
    if (landed != success) code_ = landed;
    if (!found_[at]->is_persistent)
      found_[at].reset();
    else
      found_[at]->is_active = false;
  }
  // The code that the program's call returns.
  [[nodiscard]] int answer(int code) const { return code == success ? code_ : code; }

 private:
  Status* statuses_;
  std::vector<Status> own_;
  std::vector<Request> handles_;
  std::vector<std::shared_ptr<BouncedRequest>> found_;
  bool any_ = false;
  int code_ = success;
};

using ToStart = Next<"Start", Request*>;
using ToStartall = Next<"Startall", int, Request*>;
using ToWait = Next<"Wait", Request*, Status*>;
using ToTest = Next<"Test", Request*, int*, Status*>;
using ToWaitall = Next<"Waitall", int, Request*, Status*>;
using ToTestall = Next<"Testall", int, Request*, int*, Status*>;
using ToWaitany = Next<"Waitany", int, Request*, int*, Status*>;
using ToTestany = Next<"Testany", int, Request*, int*, int*, Status*>;
using ToWaitsome = Next<"Waitsome", int, Request*, int*, int*, Status*>;
using ToTestsome = Next<"Testsome", int, Request*, int*, int*, Status*>;
using ToLook = Next<"Request_get_status", Request, int*, Status*>;
using ToLookAtAll = Next<"Request_get_status_all", int, const Request*, int*, Status*>;
using ToLookAtAny = Next<"Request_get_status_any", int, const Request*, int*, int*, Status*>;
using ToLookAtSome = Next<"Request_get_status_some", int, const Request*, int*, int*, Status*>;
using ToFree = Next<"Request_free", Request*>;
using ToFinalize = Next<"Finalize">;

#define SPINLOOM_UNLESS_BOUNCED(To, ...)                     \
  if (bounced_requests.none()) return To::next(__VA_ARGS__); \
  if (layer.library->inside(__builtin_return_address(0))) return To::the_mpis(__VA_ARGS__)

// Makes a request inactive again that did not start after all, and drops its offer.
void stop(BouncedRequest* bounced) {
  if (bounced == nullptr) return;
  drop_offer(bounced->bounce);
  bounced->is_active = false;
}

int start_bounced(Request* request) {
  SPINLOOM_UNLESS_BOUNCED(ToStart, request);
  const std::shared_ptr<BouncedRequest> bounced = bounced_requests.find(*request);
  int code = bounced == nullptr ? success : fill(*bounced, *request);
  if (code == success) code = ToStart::next(request);
  if (code != success) stop(bounced.get());
  return code;
}
int start_all_bounced(int count, Request* requests) {
  SPINLOOM_UNLESS_BOUNCED(ToStartall, count, requests);
  std::vector<std::shared_ptr<BouncedRequest>> filled;
  for (int i = 0; i < count; ++i) {
    filled.push_back(bounced_requests.find(requests[i]));
    const int code = filled.back() == nullptr ? success : fill(*filled.back(), requests[i]);
    if (code == success) continue;
    for (const auto& bounced : filled) stop(bounced.get());
    return code;
  }
  const int code = ToStartall::next(count, requests);
  for (const auto& bounced : filled) {  // some may have started
    if (code != success && bounced != nullptr) drop_offer(bounced->bounce);
  }
  return code;
}

int wait_bounced(Request* request, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(ToWait, request, status);
  BouncedBatch batch(1, request, status);
  const int code = ToWait::next(request, batch.statuses());
  batch.end(0, 0, code);
  return batch.answer(code);
}
int test_bounced(Request* request, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(ToTest, request, flag, status);
  BouncedBatch batch(1, request, status);
  const int code = ToTest::next(request, flag, batch.statuses());
  if (code != success || *flag != 0) batch.end(0, 0, code);
  return batch.answer(code);
}

// Ends all requests of a call that has completed them, some of them perhaps with errors of their own.
int end_all(BouncedBatch& batch, int count, int code) {
  if (code != success && code != error_in_status) return code;
  for (int i = 0; i < count; ++i) {
    const int own = code == success ? success : batch.statuses()[i].error;
    if (own != error_pending) batch.end(i, i, own);
  }
  return batch.answer(code);
}
int wait_all_bounced(int count, Request* requests, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToWaitall, count, requests, statuses);
  BouncedBatch batch(count, requests, statuses);
  return end_all(batch, count, ToWaitall::next(count, requests, batch.statuses()));
}
int test_all_bounced(int count, Request* requests, int* flag, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToTestall, count, requests, flag, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = ToTestall::next(count, requests, flag, batch.statuses());
  return code == success && *flag == 0 ? code : end_all(batch, count, code);
}

int wait_any_bounced(int count, Request* requests, int* index, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(ToWaitany, count, requests, index, status);
  BouncedBatch batch(count, requests, status);
  const int code = ToWaitany::next(count, requests, index, batch.statuses());
  if (*index >= 0 && *index < count) batch.end(*index, 0, code);
  return batch.answer(code);
}
int test_any_bounced(int count, Request* requests, int* index, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(ToTestany, count, requests, index, flag, status);
  BouncedBatch batch(count, requests, status);
  const int code = ToTestany::next(count, requests, index, flag, batch.statuses());
  if (*flag != 0 && *index >= 0 && *index < count) batch.end(*index, 0, code);
  return batch.answer(code);
}

int end_some(BouncedBatch& batch, const int* done, const int* indices, int code) {
  if (*done == undefined || (code != success && code != error_in_status)) return code;
  for (int k = 0; k < *done; ++k) {
    batch.end(indices[k], k, code == success ? success : batch.statuses()[k].error);
  }
  return batch.answer(code);
}
int wait_some_bounced(int count, Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToWaitsome, count, requests, done, indices, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = ToWaitsome::next(count, requests, done, indices, batch.statuses());
  return end_some(batch, done, indices, code);
}
int test_some_bounced(int count, Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToTestsome, count, requests, done, indices, statuses);
  BouncedBatch batch(count, requests, statuses);
  const int code = ToTestsome::next(count, requests, done, indices, batch.statuses());
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
  SPINLOOM_UNLESS_BOUNCED(ToLook, request, flag, status);
  StatusOf seen(status);
  const int code = ToLook::next(request, flag, seen.get());
  return code != success || *flag == 0 ? code : land_seen(request, *seen.get());
}

// Statuses for `count` requests where the program wants none.
class SeenStatuses {
 public:
  SeenStatuses(int count, Status* theirs) : statuses_(theirs) {
    if (theirs != status_ignore) return;
    own_.resize(static_cast<size_t>(count < 0 ? 0 : count));
    statuses_ = own_.data();
  }
  SeenStatuses(const SeenStatuses&) = delete;
  SeenStatuses& operator=(const SeenStatuses&) = delete;
  [[nodiscard]] Status* get() { return statuses_; }

 private:
  std::vector<Status> own_;
  Status* statuses_;
};
int look_at_all_bounced(int count, const Request* requests, int* flag, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToLookAtAll, count, requests, flag, statuses);
  SeenStatuses seen(count, statuses);
  int code = ToLookAtAll::next(count, requests, flag, seen.get());
  for (int i = 0; i < count && code == success && *flag != 0; ++i) code = land_seen(requests[i], seen.get()[i]);
  return code;
}
int look_at_any_bounced(int count, const Request* requests, int* index, int* flag, Status* status) {
  SPINLOOM_UNLESS_BOUNCED(ToLookAtAny, count, requests, index, flag, status);
  StatusOf seen(status);
  const int code = ToLookAtAny::next(count, requests, index, flag, seen.get());
  if (code != success || *flag == 0 || *index < 0 || *index >= count) return code;
  return land_seen(requests[*index], *seen.get());
}
int look_at_some_bounced(int count, const Request* requests, int* done, int* indices, Status* statuses) {
  SPINLOOM_UNLESS_BOUNCED(ToLookAtSome, count, requests, done, indices, statuses);
  SeenStatuses seen(count, statuses);
  int code = ToLookAtSome::next(count, requests, done, indices, seen.get());
  for (int k = 0; code == success && k < *done && *done != undefined; ++k) {
    code = land_seen(requests[indices[k]], seen.get()[k]);
  }
  return code;
}

int free_bounced(Request* request) {
  SPINLOOM_UNLESS_BOUNCED(ToFree, request);
  forget_parts(*request);
  std::shared_ptr<BouncedRequest> bounced = bounced_requests.take(*request);
  if (bounced == nullptr || !bounced->is_active) return ToFree::next(request);
  if (bounced->bounce.file) {  // which may be closed at once
    Status status{};
    const int code = layer.on ? SPINLOOM_ABI::Wait(request, &status) : real.Wait(request, &status);
    return code == success ? land(*bounced, status) : code;
  }
  bounced_requests.orphan(*request, std::move(bounced));
  *request = handles().request_null;
  return success;
}

int finalize_bounced() {
  if (!bounced_requests.none()) bounced_requests.look_at_orphans(true);
  GaplessType::let_all_go();
  return ToFinalize::next();
}

#undef SPINLOOM_UNLESS_BOUNCED

// Calls in which a program may wait for a message that it receives by a request which it has freed.
template <Name name, class... Arguments>
struct Beside {
  using To = Next<name, Arguments...>;
  static int call(Arguments... arguments) {
    const int code = To::next(arguments...);
    if (bounced_requests.has_orphans() && !layer.library->inside(__builtin_return_address(0))) {
      bounced_requests.look_at_orphans(false);
    }
    return code;
  }
  static OffloadHook hook() { return To::hook(&call); }
};

}  // namespace

const OffloadHook* bounce_hook(std::string_view word) {
  static const OffloadHook requests[] = {ToStart::hook(&start_bounced),
                                         ToStartall::hook(&start_all_bounced),
                                         ToWait::hook(&wait_bounced),
                                         ToTest::hook(&test_bounced),
                                         ToWaitall::hook(&wait_all_bounced),
                                         ToTestall::hook(&test_all_bounced),
                                         ToWaitany::hook(&wait_any_bounced),
                                         ToTestany::hook(&test_any_bounced),
                                         ToWaitsome::hook(&wait_some_bounced),
                                         ToTestsome::hook(&test_some_bounced),
                                         ToLook::hook(&look_bounced),
                                         ToLookAtAll::hook(&look_at_all_bounced),
                                         ToLookAtAny::hook(&look_at_any_bounced),
                                         ToLookAtSome::hook(&look_at_some_bounced),
                                         ToFree::hook(&free_bounced),
                                         ToFinalize::hook(&finalize_bounced),
                                         Beside<"Barrier", Comm>::hook(),
                                         Beside<"Probe", int, int, Comm, Status*>::hook(),
                                         Beside<"Iprobe", int, int, Comm, int*, Status*>::hook(),
                                         Beside<"Mprobe", int, int, Comm, MessageHandle*, Status*>::hook(),
                                         Beside<"Improbe", int, int, Comm, int*, MessageHandle*, Status*>::hook()};
  for (const std::span<const OffloadHook> table :
       {std::span<const OffloadHook>(requests), bounced_messages(), bounced_collectives(), bounced_reductions(),
        bounced_local(), bounced_files(), bounced_accesses(), bounced_parts()}) {
    for (const OffloadHook& hook : table) {
      if (word == hook.name) return &hook;
    }
  }
  return nullptr;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
