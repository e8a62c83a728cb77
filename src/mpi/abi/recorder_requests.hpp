// Rules for the calls that start, complete, cancel and free requests.
#pragma once

#include <utility>

#include "mpi/abi/batch.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

// Keeps the handles that the call may change, and has statuses of its own where the program wants none and the trace
// needs them.
class Requests : public Rule {
 public:
  static constexpr bool always = true;
  Requests() = default;
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  // Gives back the claims on requests that have not ended.
  ~Requests() {
    if (claimed_ != nullptr) recorder.give_back(count_, claimed_);
  }

 protected:
  void keep(int count, const Request* requests) {
    count_ = count < 0 ? 0 : count;
    kept_ = handles_.fill(static_cast<size_t>(count_), {});
    std::copy_n(requests, count_, kept_);
    if (!recorder.is_threaded()) return;
    claimed_ = slots_.fill(static_cast<size_t>(count_), Slots::none);
    recorder.claim(count_, kept_, claimed_);
  }
  void replace(Status*& theirs, int count) {
    if (theirs != status_ignore || !recorder.wants_status()) return;
    theirs = statuses_.fill(static_cast<size_t>(count < 0 ? 0 : count), {});
  }
  void ended(trace::Signature& to, int index, const Status* status) {
    if (index < 0 || index >= count_ || kept_[index] == handles().request_null) return;
    const uint64_t key = key_of(kept_[index]);
    const uint32_t slot =
        claimed_ == nullptr ? recorder.slots().find(key) : std::exchange(claimed_[index], Slots::none);
    recorder.ended(to, key, slot, status == status_ignore ? nullptr : status);
  }
  void all_ended(trace::Signature& to, const Status* statuses) {
    for (int i = 0; i < count_; ++i) {
      const Status* const status = statuses == status_ignore ? status_ignore : statuses + i;
      if (to.error == error_in_status && status != status_ignore && status->error == error_pending) continue;
      ended(to, i, status);
    }
  }
  void some_ended(trace::Signature& to, int done, const int* indices, const Status* statuses) {
    if (done == undefined) return;
    for (int i = 0; i < done; ++i) ended(to, indices[i], statuses == status_ignore ? status_ignore : statuses + i);
  }
  // True if the call itself has failed: then no request counts as ended. A call with one request gives that request's
  // error as its own.
  [[nodiscard]] static bool failed(const trace::Signature& to, int count) {
    return to.error != success && to.error != error_in_status && count != 1;
  }

 private:
  int count_ = 0;
  Request* kept_ = nullptr;
  uint32_t* claimed_ = nullptr;  // the slots of these requests; null without threads
  Few<Request> handles_;
  Few<uint32_t> slots_;
  Few<Status> statuses_;
};

struct Wait : Requests {
  void before(Request*& request, Status*& status) {
    keep(1, request);
    replace(status, 1);
  }
  void after(trace::Signature& to, Request*, Status* status) { ended(to, 0, status); }
};
struct Waitall : Requests {
  void before(int& count, Request*& requests, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& to, int count, Request*, Status* statuses) {
    if (!failed(to, count)) all_ended(to, statuses);
  }
};
struct Waitany : Requests {
  void before(int& count, Request*& requests, int*&, Status*& status) {
    keep(count, requests);
    replace(status, 1);
  }
  void after(trace::Signature& to, int, Request*, int* index, Status* status) { ended(to, *index, status); }
};
struct Waitsome : Requests {
  void before(int& count, Request*& requests, int*&, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& to, int count, Request*, int* done, int* indices, Status* statuses) {
    if (!failed(to, count)) some_ended(to, *done, indices, statuses);
  }
};
struct Test : Requests {
  void before(Request*& request, int*&, Status*& status) {
    keep(1, request);
    replace(status, 1);
  }
  void after(trace::Signature& to, Request*, int* flag, Status* status) {
    if (*flag == 0 && to.error == success) return recorder.mark_as_poll();
    ended(to, 0, status);
  }
};
struct Testall : Requests {
  void before(int& count, Request*& requests, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& to, int count, Request*, int* flag, Status* statuses) {
    if (failed(to, count)) return;
    if (*flag == 0 && to.error == success) return recorder.mark_as_poll();
    all_ended(to, statuses);
  }
};
struct Testany : Requests {
  void before(int& count, Request*& requests, int*&, int*&, Status*& status) {
    keep(count, requests);
    replace(status, 1);
  }
  void after(trace::Signature& to, int, Request*, int* index, int* flag, Status* status) {
    if (*flag == 0 && to.error == success) return recorder.mark_as_poll();
    ended(to, *index, status);
  }
};
struct Testsome : Requests {
  void before(int& count, Request*& requests, int*&, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& to, int count, Request*, int* done, int* indices, Status* statuses) {
    if (failed(to, count)) return;
    if (*done == 0 && to.error == success) return recorder.mark_as_poll();
    some_ended(to, *done, indices, statuses);
  }
};

// These leave the requests as they are; where one has ended, that shows in the call that ends it.
struct Look : Rule {
  void after(trace::Signature&, Request, const int* flag, Status*) { polled(*flag); }
  void after(trace::Signature&, int, const Request*, int* flag, Status*) { polled(*flag); }
  void after(trace::Signature&, int, const Request*, int*, int* flag, Status*) { polled(*flag); }

 protected:
  static void polled(int flag) {
    if (flag == 0) recorder.mark_as_poll();
  }
};
struct LookSome : Look {
  void after(trace::Signature&, int, const Request*, int* done, int*, Status*) { polled(*done); }
};

struct Start : Rule {
  void after(trace::Signature& to, Request* request) { started(to, *request); }
  void after(trace::Signature& to, int count, Request* requests) {
    for (int i = 0; i < count; ++i) started(to, requests[i]);
  }

 private:
  static void started(trace::Signature& to, Request request) {
    const uint32_t slot = recorder.slots().find(key_of(request));
    if (slot == Slots::none) return;
    recorder.slots().at(slot).is_active = true;
    to.requests.push_back(slot);
  }
};

struct Cancel : Rule {
  void after(trace::Signature& to, Request* request) {
    const uint32_t slot = recorder.slots().find(key_of(*request));
    if (slot == Slots::none) return;
    to.requests.push_back(slot);
    recorder.slots().set_cancelling(slot, true);
  }
};
struct Free : Rule {
  void before(Request*& request) { key_ = key_of(*request); }
  void after(trace::Signature& to, Request*) {
    const uint32_t slot = recorder.slots().find(key_);
    if (slot == Slots::none) return;
    to.requests.push_back(slot);
    recorder.slots().remove(key_);
  }

 private:
  uint64_t key_ = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
