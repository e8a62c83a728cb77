#include "mpi/abi/lent_requests.hpp"

#include <sched.h>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/lent.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

LentRequests& lent_requests = *new LentRequests;  // calls come until the very end of the process

void LentRequests::keep(Request handle, std::shared_ptr<LentRequest> request) {
  const std::lock_guard lock(mutex_);
  open_.put(key_of(handle), std::move(request));
  count();
}

void LentRequests::count() {
  count_.store(open_.size() + orphans_.size(), std::memory_order_relaxed);
  orphan_count_.store(orphans_.size(), std::memory_order_relaxed);
}

std::shared_ptr<LentRequest> LentRequests::find(Request handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LentRequest>* const found = open_.find(key_of(handle));
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<LentRequest> LentRequests::take(Request handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LentRequest>* const found = open_.find(key_of(handle));
  if (found == nullptr) return nullptr;
  std::shared_ptr<LentRequest> taken = std::move(*found);
  open_.erase(key_of(handle));
  return taken;
}

void LentRequests::put_back(std::span<const Request> handles, std::span<std::shared_ptr<LentRequest>> requests) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != nullptr) open_.put(key_of(handles[i]), std::move(requests[i]));
  }
  count();
}

void LentRequests::orphan(Request handle, std::shared_ptr<LentRequest> request) {
  const std::lock_guard lock(mutex_);
  orphans_.push_back({handle, std::move(request)});
  count();
}

void LentRequests::look_at_orphans(bool all) {
  const std::lock_guard lock(mutex_);
  for (bool waits = true; waits;) {
    std::erase_if(orphans_, [](Orphan& orphan) {
      int flag = 0;
      Status status{};
      const int code =
          layer.on ? SPINLOOM_ABI::Test(&orphan.handle, &flag, &status) : real.Test(&orphan.handle, &flag, &status);
      if (code == success && flag == 0) return false;
      if (code == success) (void)land(*orphan.request, status);
      if (orphan.request->is_persistent) {
        (void)(layer.on ? SPINLOOM_ABI::Request_free(&orphan.handle) : real.Request_free(&orphan.handle));
      }
      return true;
    });
    waits = all && !orphans_.empty();
    if (waits) sched_yield();
  }
  count();
}

bool has_ended(Request request) {
  int flag = 0;
  const int code = layer.on ? SPINLOOM_ABI::Request_get_status(request, &flag, status_ignore)
                            : real.Request_get_status(request, &flag, status_ignore);
  return code == success && flag != 0;
}

void land_part(LentRequest& lent, size_t i) {
  const std::lock_guard lock(lent.parts->mutex);
  if (i >= lent.parts->is_in_place.size() || lent.parts->is_in_place[i]) return;
  lent.loan.land_part(i);
  lent.parts->is_in_place[i] = true;
}

namespace {

void land_parts(LentRequest& lent) {
  for (size_t i = 0; !lent.parts->is_sent && i < lent.parts->is_in_place.size(); ++i) land_part(lent, i);
}

// What is sent of it is filled when the program says that it is ready.
void start_parts(LentRequest& lent) {
  const std::lock_guard lock(lent.parts->mutex);
  if (lent.parts->is_sent) return;
  lent.parts->is_in_place.assign(lent.parts->is_in_place.size(), false);
  lent.loan.fill();
}

}  // namespace

// Nothing of a receive that was cancelled.
int land_once(LentRequest& lent, const Status& status) {
  int is_cancelled = 0;
  if (lent.by_status && real.Test_cancelled(&status, &is_cancelled) != success) is_cancelled = 0;
  if (lent.has_landed || is_cancelled != 0) return success;
  try {
    if (lent.parts != nullptr)
      land_parts(lent);
    else
      lent.loan.land(lent.by_status ? bytes_of(status, real) : -1);
    return success;
  } catch (const Refused& refused) {
    return lent.loan.raise(code_of(refused.error));
  } catch (...) {
    return lent.loan.raise(error_other);
  }
}

int land(LentRequest& lent, const Status& status) {
  if (!lent.is_active) return success;
  const int code = land_once(lent, status);
  if (lent.is_persistent) lent.is_active = lent.has_landed = false;
  return code;
}

int fill(LentRequest& lent, Request handle) {
  try {
    if (lent.parts != nullptr) {
      start_parts(lent);
    } else {
      const bool is_offered = layer.knows(handle) && offer_lent(lent.loan, false);
      lent.loan.fill(is_offered ? lent.loan.sent() : nullptr);
    }
    lent.is_active = true;
    lent.has_landed = false;
    return success;
  } catch (const Refused& refused) {
    return lent.loan.raise(code_of(refused.error));
  } catch (...) {
    return lent.loan.raise(error_other);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
