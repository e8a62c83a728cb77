// The calls that complete, cancel and free requests.
#include <sched.h>

#include "mpi/abi/batch.hpp"
#include "mpi/abi/calls.hpp"
#include "mpi/abi/too_long.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The program's statuses, or statuses of our own where it wants none.
class CallStatuses {
 public:
  CallStatuses(int count, Status* theirs) : statuses_(theirs) {
    if (theirs == status_ignore) statuses_ = own_.fill(static_cast<size_t>(count < 0 ? 0 : count), {});
  }
  [[nodiscard]] Status* get() { return statuses_; }

 private:
  SmallArray<Status> own_;
  Status* statuses_;
};

// Collects the codes of several requests into what the call returns: MPI_ERR_IN_STATUS and each status's error.
class Codes {
 public:
  Codes(Status* statuses, int count, int code) : statuses_(statuses), count_(count), code_(code) {}
  [[nodiscard]] int of(int i) const { return code_ == error_in_status ? statuses_[i].error : code_; }
  void set(int i, int code) {
    if (code == success) return;
    if (code_ == success) {
      for (int k = 0; k < count_; ++k) statuses_[k].error = success;
      code_ = error_in_status;
    }
    statuses_[i].error = code;
  }
  [[nodiscard]] int result() const { return code_; }

 private:
  Status* statuses_;
  int count_;
  int code_;
};

// Ends some requests after a call that has completed them: entry k of `statuses` belongs to request indices[k].
int finish_some(Batch& batch, int done, const int* indices, Status* statuses, int code) {
  if (done == undefined || (code != success && code != error_in_status)) return code;
  Codes codes(statuses, done, code);
  for (int k = 0; k < done; ++k) {
    if (!batch.tracks(indices[k])) continue;
    codes.set(k, batch.finish(indices[k], &statuses[k], codes.of(k)));
  }
  return codes.result();
}

// Waits until test(&flag) sets the flag or fails. While messages are offered, calls that would wait in the MPI do this
// instead, and look after those messages meanwhile.
template <class Test>
int until(Batch& batch, Test test) {
  const int tries_before_yield = layer.is_threaded ? 1 : 200;  // another thread may want the lock
  for (int tries = 1;; ++tries) {
    batch.look_for_arrivals();
    layer.progress(Layer::Waiting::blocked);
    int flag = 0;
    const int code = test(&flag);
    if (code != success || flag != 0) return code;
    if (tries % tries_before_yield == 0) sched_yield();
  }
}

// Tests whether all requests have ended, each by a call of its own, because MPICH's MPI_Testall gives an error for a
// persistent collective call that has not ended.
class SeparateTests {
 public:
  explicit SeparateTests(int count) : is_over_(count < 0 ? 0 : static_cast<size_t>(count)) {}
  int test(Batch& batch, int* flag, Status* statuses) {
    *flag = 1;
    Request* const requests = batch.requests();
    for (size_t i = 0; i < is_over_.size(); ++i) {
      if (is_over_[i]) continue;
      int is_over = 0;
      int code = real.Test(&requests[i], &is_over, &statuses[i]);
      // Finished at once: the MPI may give its handle to another request while the rest is waited for.
      if (is_over != 0 || code != success) code = batch.finish(static_cast<int>(i), &statuses[i], code);
      statuses[i].error = code;
      if (code != success) has_failed_ = true;
      is_over_[i] = is_over != 0 || code != success;
      if (!is_over_[i]) *flag = 0;
    }
    return *flag != 0 && has_failed_ ? error_in_status : success;
  }

 private:
  std::vector<bool> is_over_;
  bool has_failed_ = false;
};

bool is_index(int index, int count) { return index >= 0 && index < count; }

}  // namespace

int finish_all(Batch& batch, int count, Status* statuses, int code) {
  if (code != success && code != error_in_status) return code;
  Codes codes(statuses, count, code);
  for (int i = 0; i < count; ++i) {
    if (!batch.tracks(i)) continue;
    const int own_code = codes.of(i);
    if (own_code == error_pending) continue;
    codes.set(i, batch.finish(i, &statuses[i], own_code));
  }
  return codes.result();
}

int Wait(Request* request, Status* status) {
  Batch batch(1, request);
  const bool polls = layer.has_work();
  if (!batch.has_tracked() && !polls) return real.Wait(request, status);
  const ReceivingCallBy receiving(by_end<EndCall::wait>);
  CallStatus seen(status);
  const int code = polls ? until(batch, [&](int* flag) { return real.Test(batch.requests(), flag, seen.get()); })
                         : real.Wait(batch.requests(), seen.get());
  return batch.finish(0, seen.get(), code);
}

int Test(Request* request, int* flag, Status* status) {
  if (layer.has_work()) layer.progress(Layer::Waiting::asks);
  Batch batch(1, request);
  if (!batch.has_tracked()) return real.Test(request, flag, status);
  const ReceivingCallBy receiving(by_end<EndCall::test>);
  CallStatus seen(status);
  const int code = real.Test(batch.requests(), flag, seen.get());
  if (code == success && *flag == 0) return code;
  return batch.finish(0, seen.get(), code);
}

int Waitall(int count, Request* requests, Status* statuses) {
  Batch batch(count, requests);
  const bool polls = layer.has_work();
  if (!batch.has_tracked() && !polls) return real.Waitall(count, requests, statuses);
  const ReceivingCallBy receiving(by_end<EndCall::waitall>);
  CallStatuses seen(count, statuses);
  SeparateTests tests(polls ? count : 0);
  const int code = polls ? until(batch, [&](int* flag) { return tests.test(batch, flag, seen.get()); })
                         : real.Waitall(count, batch.requests(), seen.get());
  return finish_all(batch, count, seen.get(), code);
}

int Testall(int count, Request* requests, int* flag, Status* statuses) {
  if (layer.has_work()) layer.progress(Layer::Waiting::asks);
  Batch batch(count, requests);
  if (!batch.has_tracked()) return real.Testall(count, requests, flag, statuses);
  const ReceivingCallBy receiving(by_end<EndCall::testall>);
  CallStatuses seen(count, statuses);
  const int code = real.Testall(count, batch.requests(), flag, seen.get());
  if (code == success && *flag == 0) return code;
  return finish_all(batch, count, seen.get(), code);
}

int Waitany(int count, Request* requests, int* index, Status* status) {
  Batch batch(count, requests);
  const bool polls = layer.has_work();
  if (!batch.has_tracked() && !polls) return real.Waitany(count, requests, index, status);
  const ReceivingCallBy receiving(by_end<EndCall::waitany>);
  CallStatus seen(status);
  const int code =
      polls ? until(batch, [&](int* flag) { return real.Testany(count, batch.requests(), index, flag, seen.get()); })
            : real.Waitany(count, batch.requests(), index, seen.get());
  return is_index(*index, count) ? batch.finish(*index, seen.get(), code) : code;
}

int Testany(int count, Request* requests, int* index, int* flag, Status* status) {
  if (layer.has_work()) layer.progress(Layer::Waiting::asks);
  Batch batch(count, requests);
  if (!batch.has_tracked()) return real.Testany(count, requests, index, flag, status);
  const ReceivingCallBy receiving(by_end<EndCall::testany>);
  CallStatus seen(status);
  const int code = real.Testany(count, batch.requests(), index, flag, seen.get());
  return *flag != 0 && is_index(*index, count) ? batch.finish(*index, seen.get(), code) : code;
}

int Waitsome(int count, Request* requests, int* done, int* indices, Status* statuses) {
  Batch batch(count, requests);
  const bool polls = layer.has_work();
  if (!batch.has_tracked() && !polls) return real.Waitsome(count, requests, done, indices, statuses);
  const ReceivingCallBy receiving(by_end<EndCall::waitsome>);
  CallStatuses seen(count, statuses);
  const int code = polls ? until(batch,
                                 [&](int* flag) {
                                   const int tested = real.Testsome(count, batch.requests(), done, indices, seen.get());
                                   *flag = *done;
                                   return tested;
                                 })
                         : real.Waitsome(count, batch.requests(), done, indices, seen.get());
  return finish_some(batch, *done, indices, seen.get(), code);
}

int Testsome(int count, Request* requests, int* done, int* indices, Status* statuses) {
  if (layer.has_work()) layer.progress(Layer::Waiting::asks);
  Batch batch(count, requests);
  if (!batch.has_tracked()) return real.Testsome(count, requests, done, indices, statuses);
  const ReceivingCallBy receiving(by_end<EndCall::testsome>);
  CallStatuses seen(count, statuses);
  const int code = real.Testsome(count, batch.requests(), done, indices, seen.get());
  return finish_some(batch, *done, indices, seen.get(), code);
}

namespace {

// Finds out whether a request has ended, and if so puts its bytes in place now; the call that completes the request
// later leaves them there.
int look(Request request, int* flag, Status* status) {
  const Lock lock;  // another thread may put what has come in place
  layer.attend();
  if (layer.has_work()) layer.progress(Layer::Waiting::asks);
  TrackedRequest* const tracked = layer.take(request);
  if (tracked != nullptr) layer.put_back(request, tracked);
  if (tracked == nullptr) return real.Request_get_status(request, flag, status);
  CallStatus seen(status);
  const int code = real.Request_get_status(tracked->is_substituted ? tracked->substitute : request, flag, seen.get());
  if (code != success || *flag == 0 || !tracked->is_receive || (tracked->is_persistent && !tracked->is_active))
    return code;
  if (tracked->claim) give_status(tracked->claim->status, seen.get());
  if (tracked->landed_bytes < 0) {
    // A message that is too long is left to the completion, which raises the error.
    if (!layer.fits(*tracked, *seen.get())) return success;
    const int landed = tracked->claim ? layer.deliver_claim(*tracked->claim, tracked->place, seen.get())
                                      : layer.deliver(tracked->place, seen.get());
    if (landed != success) return landed;
    tracked->landed_bytes = bytes_of(*seen.get(), real);
  }
  real.Status_set_elements_x(seen.get(), handles().byte, tracked->landed_bytes);
  return success;
}

}  // namespace

int Request_get_status(Request request, int* flag, Status* status) { return look(request, flag, status); }

int Request_get_status_all(int count, const Request* requests, int* flag, Status* statuses) {
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    int done = 0;
    const int code = look(requests[i], &done, statuses == status_ignore ? statuses : &statuses[i]);
    if (code != success) return code;
    if (done == 0) *flag = 0;
  }
  return success;
}

int Request_get_status_any(int count, const Request* requests, int* index, int* flag, Status* status) {
  bool any_active = false;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == handles().request_null) continue;
    const int code = look(requests[i], flag, status);
    if (code != success || *flag != 0) {
      *index = i;
      return code;
    }
    any_active = true;
  }
  *index = undefined;
  if (any_active) return success;
  return real.Request_get_status_any(0, requests, index, flag, status);
}

int Request_get_status_some(int count, const Request* requests, int* done, int* indices, Status* statuses) {
  bool any_active = false;
  *done = 0;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == handles().request_null) continue;
    any_active = true;
    int flag = 0;
    const int code = look(requests[i], &flag, statuses == status_ignore ? statuses : &statuses[*done]);
    if (code != success) return code;
    if (flag != 0) indices[(*done)++] = i;
  }
  if (!any_active) *done = undefined;
  return success;
}

int Cancel(Request* request) {
  TrackedRequest* tracked = nullptr;
  {
    const Lock lock;
    tracked = layer.take(*request);
    if (tracked != nullptr) layer.put_back(*request, tracked);
  }
  if (tracked == nullptr) return layer.cancel_offer(*request) ? success : real.Cancel(request);
  if (!tracked->is_receive && !may_cancel_sends) return success;
  if (tracked->is_substituted && !tracked->is_receive) {
    return layer.cancel_offer(tracked->substitute) ? success : real.Cancel(&tracked->substitute);
  }
  if (tracked->is_substituted || tracked->claim) return success;  // it has met its message; MPI lets such a cancel fail
  tracked->is_cancelling = true;
  return real.Cancel(request);
}

int Request_free(Request* request) {
  const Lock lock;
  TrackedRequest* const tracked = layer.take(*request);
  if (tracked == nullptr) return real.Request_free(request);
  const Request handle = *request;
  int code = success;
  if (tracked->is_receive && tracked->is_active && !tracked->claim) {
    // The bytes of the receive must still be put in place when they arrive.
    if (tracked->is_substituted) {
      if (tracked->is_persistent) code = real.Request_free(request);
      layer.orphans.push_back({tracked->substitute, tracked});
      tracked->is_persistent = false;
    } else {
      layer.orphans.push_back({handle, tracked});
      *request = handles().request_null;
    }
    if (!layer.is_threaded) layer.tracked_requests.erase(key_of(handle));
    return code;
  }
  if (tracked->is_receive && tracked->is_active) {
    Status status{};
    code = layer.deliver_claim(*tracked->claim, tracked->place, &status);
  }
  if (tracked->is_substituted) real.Request_free(&tracked->substitute);
  const int freed = real.Request_free(request);
  layer.release(handle, tracked);
  return code == success ? freed : code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
