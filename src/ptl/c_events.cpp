// Event queues.
#include "ptl/call.hpp"
#include "ptl/convert.hpp"

namespace spinloom::ptl {
namespace {

// Takes an event of any of these queues, the first in their order; waits until the deadline.
int take(Process& process, const char* name, const std::vector<nic::QueueId>& queues, Time deadline, ptl_event_t* event,
         unsigned int* which) {
  int code = PTL_EQ_EMPTY;
  const auto ready = [&] {
    for (size_t i = 0; i < queues.size(); ++i) {
      const auto found = process.portals().eq_get(queues[i]);
      if (!found) continue;
      *event = event_of(process, *found);
      code = found->after_gap ? PTL_EQ_DROPPED : PTL_OK;
      *which = static_cast<unsigned int>(i);
      return true;
    }
    return false;
  };
  Blocked blocked;
  blocked.call = name;
  blocked.count = static_cast<uint32_t>(queues.size());
  return wait_until(process, blocked, deadline, ready) == Waited::aborted ? PTL_ABORTED : code;
}

// The NIC's queues of handles that belong to one interface; empty where one does not.
std::vector<nic::QueueId> queues_of(Process& process, const ptl_handle_eq_t* handles, unsigned int size) {
  std::vector<nic::QueueId> queues;
  for (unsigned int i = 0; i < size; ++i) {
    const Queue* queue = process.queue(handles[i]);
    if (queue == nullptr || decode(handles[i]).interface != decode(handles[0]).interface) return {};
    queues.push_back(queue->id);
  }
  return queues;
}

int take_one(const char* name, ptl_handle_eq_t handle, bool waits, ptl_event_t* event) {
  return priced(name, [&](Process& process) -> int {
    const Queue* queue = process.queue(handle);
    if (queue == nullptr || event == nullptr) return PTL_ARG_INVALID;
    unsigned int which = 0;
    return take(process, name, {queue->id}, waits ? Time::never() : Time{}, event, &which);
  });
}

}  // namespace
}  // namespace spinloom::ptl

using spinloom::ptl::priced;
using spinloom::ptl::Process;

extern "C" {

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t* eq_handle) {
  return priced("PtlEQAlloc", [&](Process& process) -> int {
    using namespace spinloom::ptl;
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || eq_handle == nullptr) return PTL_ARG_INVALID;
    if (interface->queues.size() >= static_cast<uint32_t>(interface->limits.max_eqs)) return PTL_NO_SPACE;
    // One for each portal table entry on top: the news that flow control disabled it always fits.
    const ptl_size_t slots = std::min<ptl_size_t>(count, UINT32_MAX - portals_each) + portals_each;
    const auto queue = process.portals().eq_alloc(static_cast<uint32_t>(slots), portals_each);
    if (!queue) return code_of(queue.error());
    *eq_handle = interface->queues.add({*queue});
    return PTL_OK;
  });
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
  return priced("PtlEQFree", [&](Process& process) -> int {
    const auto* queue = process.queue(eq_handle);
    if (queue == nullptr) return PTL_ARG_INVALID;
    const auto freed = process.portals().eq_free(queue->id);
    if (!freed) return spinloom::ptl::code_of(freed.error());
    process.owner_of(eq_handle, spinloom::ptl::Kind::queue)->queues.remove(eq_handle);
    return PTL_OK;
  });
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  return spinloom::ptl::take_one("PtlEQGet", eq_handle, false, event);
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  return spinloom::ptl::take_one("PtlEQWait", eq_handle, true, event);
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t* event,
              unsigned int* which) {
  return priced("PtlEQPoll", [&](Process& process) -> int {
    using namespace spinloom::ptl;
    if (eq_handles == nullptr || size == 0 || event == nullptr || which == nullptr) return PTL_ARG_INVALID;
    const auto queues = queues_of(process, eq_handles, size);
    if (queues.empty()) return PTL_ARG_INVALID;
    return take(process, "PtlEQPoll", queues, deadline_of(process, timeout), event, which);
  });
}

}  // extern "C"
