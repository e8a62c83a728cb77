#include "mpi/abi/bounced_requests.hpp"

#include <sched.h>

#include "mpi/abi/bounced.hpp"
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

BouncedRequests& bounced_requests = *new BouncedRequests;  // calls come until the very end of the process

void BouncedRequests::keep(Request handle, std::shared_ptr<BouncedRequest> request) {
  const std::lock_guard lock(mutex_);
  open_.put(key_of(handle), std::move(request));
  count();
}

void BouncedRequests::count() {
  count_.store(open_.size() + orphans_.size(), std::memory_order_relaxed);
  orphan_count_.store(orphans_.size(), std::memory_order_relaxed);
}

std::shared_ptr<BouncedRequest> BouncedRequests::find(Request handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<BouncedRequest>* const found = open_.find(key_of(handle));
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<BouncedRequest> BouncedRequests::take(Request handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<BouncedRequest>* const found = open_.find(key_of(handle));
  if (found == nullptr) return nullptr;
  std::shared_ptr<BouncedRequest> taken = std::move(*found);
  open_.erase(key_of(handle));
  return taken;
}

void BouncedRequests::put_back(std::span<const Request> handles, std::span<std::shared_ptr<BouncedRequest>> requests) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != nullptr) open_.put(key_of(handles[i]), std::move(requests[i]));
  }
  count();
}

void BouncedRequests::orphan(Request handle, std::shared_ptr<BouncedRequest> request) {
  const std::lock_guard lock(mutex_);
  orphans_.push_back({handle, std::move(request)});
  count();
}

void BouncedRequests::look_at_orphans(bool all) {
  const std::lock_guard lock(mutex_);
  for (bool waits = true; waits;) {
    std::erase_if(orphans_, [](Orphan& orphan) {
      int flag = 0;
      Status status{};
      const int code =
          layer.is_on ? SPINLOOM_ABI::Test(&orphan.handle, &flag, &status) : real.Test(&orphan.handle, &flag, &status);
      if (code == success && flag == 0) return false;
      if (code == success) (void)land(*orphan.request, status);
      if (orphan.request->is_persistent) {
        (void)(layer.is_on ? SPINLOOM_ABI::Request_free(&orphan.handle) : real.Request_free(&orphan.handle));
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
  const int code = layer.is_on ? SPINLOOM_ABI::Request_get_status(request, &flag, status_ignore)
                               : real.Request_get_status(request, &flag, status_ignore);
  return code == success && flag != 0;
}

void land_part(BouncedRequest& bounced, size_t i) {
  const std::lock_guard lock(bounced.parts->mutex);
  if (i >= bounced.parts->is_in_place.size() || bounced.parts->is_in_place[i]) return;
  bounced.bounce.land_part(i);
  bounced.parts->is_in_place[i] = true;
}

namespace {

void land_parts(BouncedRequest& bounced) {
  for (size_t i = 0; !bounced.parts->is_sent && i < bounced.parts->is_in_place.size(); ++i) land_part(bounced, i);
}

// Starts the parts of a receive. Those of a send are filled later, when the program says that they are ready.
void start_parts(BouncedRequest& bounced) {
  const std::lock_guard lock(bounced.parts->mutex);
  if (bounced.parts->is_sent) return;
  bounced.parts->is_in_place.assign(bounced.parts->is_in_place.size(), false);
  bounced.bounce.fill();
}

}  // namespace

// For a receive that was cancelled, nothing is put in place.
int land_once(BouncedRequest& bounced, const Status& status) {
  int is_cancelled = 0;
  if (bounced.has_bytes_in_status && real.Test_cancelled(&status, &is_cancelled) != success) is_cancelled = 0;
  if (bounced.has_landed || is_cancelled != 0) return success;
  try {
    if (bounced.parts != nullptr)
      land_parts(bounced);
    else
      bounced.bounce.land(bounced.has_bytes_in_status ? bytes_of(status, real) : -1);
    return success;
  } catch (const Refused& refused) {
    return bounced.bounce.raise(code_of(refused.error));
  } catch (...) {
    return bounced.bounce.raise(error_other);
  }
}

int land(BouncedRequest& bounced, const Status& status) {
  if (!bounced.is_active) return success;
  const int code = land_once(bounced, status);
  if (bounced.is_persistent) bounced.is_active = bounced.has_landed = false;
  return code;
}

int fill(BouncedRequest& bounced, Request handle) {
  try {
    if (bounced.parts != nullptr) {
      start_parts(bounced);
    } else {
      const bool is_offered = layer.knows(handle) && offer_bounced(bounced.bounce, false);
      bounced.bounce.fill(is_offered ? bounced.bounce.sent_buffer() : nullptr);
    }
    bounced.is_active = true;
    bounced.has_landed = false;
    return success;
  } catch (const Refused& refused) {
    return bounced.bounce.raise(code_of(refused.error));
  } catch (...) {
    return bounced.bounce.raise(error_other);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
