// Rules for the calls that start, complete, cancel and free requests.
#pragma once

#include <utility>

#include "mpi/abi/batch.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::rules {

// Keeps the handles that the call may change, and has statuses of its own where the program wants none and the trace
// needs them.
class RequestsRule : public Rule {
 public:
  static constexpr bool always = true;
  RequestsRule() = default;
  RequestsRule(const RequestsRule&) = delete;
  RequestsRule& operator=(const RequestsRule&) = delete;
  // Gives back the claims on requests that have not ended.
  ~RequestsRule() {
    if (claimed_ != nullptr) recorder.give_back(count_, claimed_);
  }

 protected:
  void keep(int count, const Request* requests) {
    count_ = count < 0 ? 0 : count;
    handles_ = handle_storage_.fill(static_cast<size_t>(count_), {});
    std::copy_n(requests, count_, handles_);
    if (!recorder.is_threaded()) return;
    claimed_ = slots_.fill(static_cast<size_t>(count_), Slots::none);
    recorder.claim(count_, handles_, claimed_);
  }
  void replace(Status*& theirs, int count) {
    if (theirs != status_ignore || !recorder.wants_status()) return;
    theirs = statuses_.fill(static_cast<size_t>(count < 0 ? 0 : count), {});
  }
  void note_ended(trace::Signature& signature, int index, const Status* status) {
    if (index < 0 || index >= count_ || handles_[index] == handles().request_null) return;
    const uint64_t key = key_of(handles_[index]);
    const uint32_t slot =
        claimed_ == nullptr ? recorder.slots().find(key) : std::exchange(claimed_[index], Slots::none);
    recorder.note_ended(signature, key, slot, status == status_ignore ? nullptr : status);
  }
  void note_all_ended(trace::Signature& signature, const Status* statuses) {
    for (int i = 0; i < count_; ++i) {
      const Status* const status = statuses == status_ignore ? status_ignore : statuses + i;
      if (signature.error == error_in_status && status != status_ignore && status->error == error_pending) continue;
      note_ended(signature, i, status);
    }
  }
  void note_some_ended(trace::Signature& signature, int done, const int* indices, const Status* statuses) {
    if (done == undefined) return;
    for (int i = 0; i < done; ++i)
      note_ended(signature, indices[i], statuses == status_ignore ? status_ignore : statuses + i);
  }
  // True if the call itself has failed: then no request counts as ended. A call with one request gives that request's
  // error as its own.
  [[nodiscard]] static bool has_failed(const trace::Signature& signature, int count) {
    return signature.error != success && signature.error != error_in_status && count != 1;
  }

 private:
  int count_ = 0;
  Request* handles_ = nullptr;
  uint32_t* claimed_ = nullptr;  // the slots of these requests; null without threads
  SmallArray<Request> handle_storage_;
  SmallArray<uint32_t> slots_;
  SmallArray<Status> statuses_;
};

struct Wait : RequestsRule {
  void before(Request*& request, Status*& status) {
    keep(1, request);
    replace(status, 1);
  }
  void after(trace::Signature& signature, Request*, Status* status) { note_ended(signature, 0, status); }
};
struct Waitall : RequestsRule {
  void before(int& count, Request*& requests, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& signature, int count, Request*, Status* statuses) {
    if (!has_failed(signature, count)) note_all_ended(signature, statuses);
  }
};
struct Waitany : RequestsRule {
  void before(int& count, Request*& requests, int*&, Status*& status) {
    keep(count, requests);
    replace(status, 1);
  }
  void after(trace::Signature& signature, int, Request*, int* index, Status* status) {
    note_ended(signature, *index, status);
  }
};
struct Waitsome : RequestsRule {
  void before(int& count, Request*& requests, int*&, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& signature, int count, Request*, int* done, int* indices, Status* statuses) {
    if (!has_failed(signature, count)) note_some_ended(signature, *done, indices, statuses);
  }
};
struct Test : RequestsRule {
  void before(Request*& request, int*&, Status*& status) {
    keep(1, request);
    replace(status, 1);
  }
  void after(trace::Signature& signature, Request*, int* flag, Status* status) {
    if (*flag == 0 && signature.error == success) return recorder.mark_as_poll();
    note_ended(signature, 0, status);
  }
};
struct Testall : RequestsRule {
  void before(int& count, Request*& requests, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& signature, int count, Request*, int* flag, Status* statuses) {
    if (has_failed(signature, count)) return;
    if (*flag == 0 && signature.error == success) return recorder.mark_as_poll();
    note_all_ended(signature, statuses);
  }
};
struct Testany : RequestsRule {
  void before(int& count, Request*& requests, int*&, int*&, Status*& status) {
    keep(count, requests);
    replace(status, 1);
  }
  void after(trace::Signature& signature, int, Request*, int* index, int* flag, Status* status) {
    if (*flag == 0 && signature.error == success) return recorder.mark_as_poll();
    note_ended(signature, *index, status);
  }
};
struct Testsome : RequestsRule {
  void before(int& count, Request*& requests, int*&, int*&, Status*& statuses) {
    keep(count, requests);
    replace(statuses, count);
  }
  void after(trace::Signature& signature, int count, Request*, int* done, int* indices, Status* statuses) {
    if (has_failed(signature, count)) return;
    if (*done == 0 && signature.error == success) return recorder.mark_as_poll();
    note_some_ended(signature, *done, indices, statuses);
  }
};

// These leave the requests as they are; where one has ended, that shows in the call that ends it.
struct Look : Rule {
  void after(trace::Signature&, Request, const int* flag, Status*) { note_poll(*flag); }
  void after(trace::Signature&, int, const Request*, int* flag, Status*) { note_poll(*flag); }
  void after(trace::Signature&, int, const Request*, int*, int* flag, Status*) { note_poll(*flag); }

 protected:
  static void note_poll(int flag) {
    if (flag == 0) recorder.mark_as_poll();
  }
};
struct LookSome : Look {
  void after(trace::Signature&, int, const Request*, int* done, int*, Status*) { note_poll(*done); }
};

struct Start : Rule {
  void after(trace::Signature& signature, Request* request) { note_started(signature, *request); }
  void after(trace::Signature& signature, int count, Request* requests) {
    for (int i = 0; i < count; ++i) note_started(signature, requests[i]);
  }

 private:
  static void note_started(trace::Signature& signature, Request request) {
    const uint32_t slot = recorder.slots().find(key_of(request));
    if (slot == Slots::none) return;
    recorder.slots().at(slot).is_active = true;
    signature.requests.push_back(slot);
  }
};

struct Cancel : Rule {
  void after(trace::Signature& signature, Request* request) {
    const uint32_t slot = recorder.slots().find(key_of(*request));
    if (slot == Slots::none) return;
    signature.requests.push_back(slot);
    recorder.slots().set_cancelling(slot, true);
  }
};
struct Free : Rule {
  void before(Request*& request) { key_ = key_of(*request); }
  void after(trace::Signature& signature, Request*) {
    const uint32_t slot = recorder.slots().find(key_);
    if (slot == Slots::none) return;
    signature.requests.push_back(slot);
    recorder.slots().remove(key_);
  }

 private:
  uint64_t key_ = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::rules
