// Event queues.
#include "portals/calls/call.hpp"
#include "portals/calls/convert.hpp"

namespace spinloom::calls {
namespace {

struct Queues {
  const ptl_handle_eq_t* handles;
  unsigned int size;
};

// True if all queues exist and belong to one interface.
bool are_valid(Process& process, const Queues& queues) {
  for (unsigned int i = 0; i < queues.size; ++i) {
    if (process.queue(queues.handles[i]) == nullptr) return false;
    if (decode(queues.handles[i]).interface != decode(queues.handles[0]).interface) return false;
  }
  return true;
}

// The results of a call that takes an event.
struct EventResult {
  ptl_event_t* event;
  unsigned int which = 0;
  int code = PTL_EQ_EMPTY;
};

// Takes an event of the first queue, in the order given, that has one.
LookResult take_event(Process& process, const Queues& queues, EventResult& result) {
  for (unsigned int i = 0; i < queues.size; ++i) {
    const Queue* const queue = process.queue(queues.handles[i]);
    if (queue == nullptr) return LookResult::gone;
    const auto found = process.portals().eq_get(queue->id);
    if (!found) continue;
    *result.event = event_of(process, *found);
    result.code = found->after_gap ? PTL_EQ_DROPPED : PTL_OK;
    result.which = i;
    return LookResult::ready;
  }
  return LookResult::nothing;
}

int wait_for(Process& process, const char* name, const Queues& queues, ptl_time_t timeout, EventResult& result) {
  const BlockedCall blocked{.call = name, .handles = {queues.handles, queues.size}};
  process.note_look(queues.handles[0]);
  switch (wait_until(process, blocked, timeout, [&] { return take_event(process, queues, result); })) {
    case WaitResult::aborted: return PTL_ABORTED;
    case WaitResult::gone: return PTL_INTERRUPTED;
    default: return result.code;
  }
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t* eq_handle) {
  return nic_call("PtlEQAlloc", [&](Process& process) -> int {
    using namespace spinloom::calls;
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || eq_handle == nullptr) return PTL_ARG_INVALID;
    if (interface->queues.size() >= static_cast<uint32_t>(interface->limits.max_eqs)) return PTL_NO_SPACE;
    // One more slot for each portal table entry, for the event which says that flow control has disabled it.
    const ptl_size_t slots = std::min<ptl_size_t>(count, UINT32_MAX - portals_each) + portals_each;
    const auto queue = process.portals().eq_alloc(static_cast<uint32_t>(slots), portals_each);
    if (!queue) return code_of(queue.error());
    *eq_handle = interface->queues.add({*queue});
    return PTL_OK;
  });
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
  return spinloom::calls::freeing_nic_call("PtlEQFree", [&](Process& process) -> int {
    const auto* queue = process.queue(eq_handle);
    if (queue == nullptr) return PTL_ARG_INVALID;
    const auto freed = process.portals().eq_free(queue->id);
    if (!freed) return spinloom::calls::code_of(freed.error());
    process.owner_of(eq_handle, spinloom::calls::Kind::queue)->queues.remove(eq_handle);
    return PTL_OK;
  });
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  return nic_call("PtlEQGet", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const Queues single{&eq_handle, 1};
    if (event == nullptr || !are_valid(process, single)) return PTL_ARG_INVALID;
    EventResult result{event};
    process.note_look(eq_handle);
    const LookResult look = look_twice(process, [&] { return take_event(process, single, result); });
    return look == LookResult::gone ? static_cast<int>(PTL_ARG_INVALID) : result.code;
  });
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) {
  return nic_call("PtlEQWait", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const Queues single{&eq_handle, 1};
    if (event == nullptr || !are_valid(process, single)) return PTL_ARG_INVALID;
    EventResult result{event};
    return wait_for(process, "PtlEQWait", single, PTL_TIME_FOREVER, result);
  });
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t* event,
              unsigned int* which) {
  return nic_call("PtlEQPoll", [&](Process& process) -> int {
    using namespace spinloom::calls;
    if (eq_handles == nullptr || size == 0 || event == nullptr || which == nullptr) return PTL_ARG_INVALID;
    const Queues queues{eq_handles, size};
    if (!are_valid(process, queues)) return PTL_ARG_INVALID;
    EventResult result{event};
    const int code = wait_for(process, "PtlEQPoll", queues, timeout, result);
    if (code == PTL_OK || code == PTL_EQ_DROPPED) *which = result.which;
    return code;
  });
}

}  // extern "C"
