// The C calls of counters, and the triggered operations that change a counter. PtlCTPersist and PtlCTAutoReset are in
// c_outbound.cpp.
#include "portals/calls/call.hpp"

namespace spinloom::calls {
namespace {

void fill_event(const nic::CounterValue& value, ptl_ct_event_t& event) {
  event.success = value.success;
  event.failure = value.failure;
}
nic::CounterValue value_of(const ptl_ct_event_t& value) { return {value.success, value.failure}; }

bool has_reached(const nic::CounterValue& value, ptl_size_t test) { return value.success >= test || value.failure > 0; }

struct Counters {
  const ptl_handle_ct_t* handles;
  const ptl_size_t* tests;
  unsigned int size;
};

// True if all counters exist and belong to one interface.
bool are_valid(Process& process, const Counters& counters) {
  for (unsigned int i = 0; i < counters.size; ++i) {
    if (process.counter(counters.handles[i]) == nullptr) return false;
    if (decode(counters.handles[i]).interface != decode(counters.handles[0]).interface) return false;
  }
  return true;
}

// Waits until a counter has reached its test or has counted a failure; takes the first such counter in the order given.
int wait_for(Process& process, const char* name, const Counters& counters, ptl_time_t timeout, ptl_ct_event_t& event,
             unsigned int& which) {
  const BlockedCall blocked{.call = name, .handles = {counters.handles, counters.size}, .tests = counters.tests};
  process.note_look(counters.handles[0]);
  const auto look = [&] {
    for (unsigned int i = 0; i < counters.size; ++i) {
      const Counter* const counter = process.counter(counters.handles[i]);
      if (counter == nullptr) return LookResult::gone;
      const nic::CounterValue value = process.portals().ct_get(counter->id);
      if (!has_reached(value, counters.tests[i])) continue;
      fill_event(value, event);
      which = i;
      return LookResult::ready;
    }
    return LookResult::nothing;
  };
  switch (wait_until(process, blocked, timeout, look)) {
    case WaitResult::ready: return PTL_OK;
    case WaitResult::aborted: return PTL_ABORTED;
    case WaitResult::gone: return PTL_INTERRUPTED;
    default: return PTL_CT_NONE_REACHED;
  }
}

// An increment counts successes or failures, not both.
bool is_countable(const ptl_ct_event_t& increment) { return increment.success == 0 || increment.failure == 0; }

// Changes a counter and waits until the host can read the new value.
template <class Change>
int change(const char* name, ptl_handle_ct_t handle, bool is_good, Change change_it) {
  return nic_call(name, [&](Process& process) -> int {
    const Counter* counter = process.counter(handle);
    if (counter == nullptr || !is_good) return PTL_ARG_INVALID;
    return return_code(process.submit_and_wait(change_it(counter->id)));
  });
}

struct TriggeredChange {
  ptl_handle_ct_t handle;
  bool is_good;
  ptl_handle_ct_t trigger;
  ptl_size_t threshold;
};

// A triggered change of a counter. Both counters must belong to one interface.
template <class Change>
int triggered(const char* name, const TriggeredChange& asked, Change change_it) {
  return nic_call(name, [&](Process& process) -> int {
    const Counter* counter = process.counter(asked.handle);
    const Counter* awaited = process.counter(asked.trigger);
    if (!asked.is_good || counter == nullptr || awaited == nullptr ||
        decode(asked.handle).interface != decode(asked.trigger).interface) {
      return PTL_ARG_INVALID;
    }
    return return_code(
        change_it(process.portals(), counter->id, nic::Trigger{awaited->id, asked.threshold, awaited->every}));
  });
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) {
  return nic_call("PtlCTAlloc", [&](Process& process) -> int {
    auto* interface = process.interface_of(ni_handle);
    if (interface == nullptr || ct_handle == nullptr) return PTL_ARG_INVALID;
    if (interface->counters.size() >= static_cast<uint32_t>(interface->limits.max_cts)) return PTL_NO_SPACE;
    const auto counter = process.portals().ct_alloc(static_cast<uint32_t>(interface->limits.max_triggered_ops));
    if (!counter) return spinloom::calls::code_of(counter.error());
    *ct_handle = interface->counters.add({*counter, 0});
    return PTL_OK;
  });
}

int PtlCTFree(ptl_handle_ct_t ct_handle) {
  return spinloom::calls::freeing_nic_call("PtlCTFree", [&](Process& process) -> int {
    const auto* counter = process.counter(ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    const auto freed = process.portals().ct_free(counter->id);
    if (!freed) return spinloom::calls::code_of(freed.error());
    process.owner_of(ct_handle, spinloom::calls::Kind::counter)->counters.remove(ct_handle);
    return PTL_OK;
  });
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) {
  return nic_call("PtlCTCancelTriggered", [&](Process& process) -> int {
    const auto* counter = process.counter(ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    return spinloom::calls::return_code(process.portals().ct_cancel(counter->id));
  });
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) {
  return nic_call("PtlCTGet", [&](Process& process) -> int {
    if (process.counter(ct_handle) == nullptr || event == nullptr) return PTL_ARG_INVALID;
    process.note_look(ct_handle);
    process.host().poll();
    const auto* counter = process.counter(ct_handle);  // looked up again, because another call may have freed it
    if (counter == nullptr) return PTL_ARG_INVALID;
    spinloom::calls::fill_event(process.portals().ct_get(counter->id), *event);
    return PTL_OK;
  });
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t* event) {
  return nic_call("PtlCTWait", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const Counters single{&ct_handle, &test, 1};
    if (event == nullptr || !are_valid(process, single)) return PTL_ARG_INVALID;
    unsigned int which = 0;
    return wait_for(process, "PtlCTWait", single, PTL_TIME_FOREVER, *event, which);
  });
}

int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t* event, unsigned int* which) {
  return nic_call("PtlCTPoll", [&](Process& process) -> int {
    using namespace spinloom::calls;
    if (ct_handles == nullptr || tests == nullptr || size == 0 || event == nullptr || which == nullptr) {
      return PTL_ARG_INVALID;
    }
    const Counters counters{ct_handles, tests, size};
    if (!are_valid(process, counters)) return PTL_ARG_INVALID;
    return wait_for(process, "PtlCTPoll", counters, timeout, *event, *which);
  });
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) {
  return spinloom::calls::change("PtlCTSet", ct_handle, true, [&](auto counter) {
    return spinloom::nic::CounterSet{counter, spinloom::calls::value_of(new_ct)};
  });
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) {
  const bool is_good = spinloom::calls::is_countable(increment);
  return spinloom::calls::change("PtlCTInc", ct_handle, is_good, [&](auto counter) {
    return spinloom::nic::CounterInc{counter, spinloom::calls::value_of(increment)};
  });
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  const bool is_good = spinloom::calls::is_countable(increment);
  return spinloom::calls::triggered("PtlTriggeredCTInc", {ct_handle, is_good, trig_ct_handle, threshold},
                                    [&](auto& nic, auto counter, const auto& trigger) {
                                      return nic.ct_inc(counter, spinloom::calls::value_of(increment), trigger);
                                    });
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
  return spinloom::calls::triggered("PtlTriggeredCTSet", {ct_handle, true, trig_ct_handle, threshold},
                                    [&](auto& nic, auto counter, const auto& trigger) {
                                      return nic.ct_set(counter, spinloom::calls::value_of(new_ct), trigger);
                                    });
}

}  // extern "C"
