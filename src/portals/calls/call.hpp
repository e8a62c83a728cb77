// Call - wraps the C functions of Portals: finds the calling process, spends the price of a call, and turns an Error
// into a return code.
//
// Contract: enter("PtlPut", work) finds the process that runs now and calls work(process). It returns PTL_NO_INIT
//   before PtlInit, after the last PtlFini, and if no driver has entered a process. nic_call() does the same for a call
//   that talks to the NIC, and spends the host's time of such a call before the work. PtlInit, PtlFini and PtlAbort do
//   without these wrappers.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "base/result.hpp"
#include "portals/calls/process.hpp"

namespace spinloom::calls {

// Records the call for reports. Returns false before PtlInit and after the last PtlFini.
[[nodiscard]] bool record_call(Process& process, const char* name);

// The return code of a C call for an Error from the NIC's side.
[[nodiscard]] int code_of(const Error& error);

// Lives as long as a call. While it lives, calls of other threads wait, except while this call itself waits.
class CallScope {
 public:
  explicit CallScope(Host& host) : host_(host) { host_.begin_call(); }
  ~CallScope() { host_.end_call(); }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Host& host_;
};

template <class Work>
int enter(const char* name, Work work) {
  Process* const process = Process::current();
  if (process == nullptr) return PTL_NO_INIT;
  const CallScope scope(process->host());
  return record_call(*process, name) ? work(*process) : static_cast<int>(PTL_NO_INIT);
}

template <class Work>
int nic_call(const char* name, Work work) {
  return enter(name, [&](Process& process) {
    process.host().spend_call_time();
    return work(process);
  });
}

[[nodiscard]] inline int return_code(const Status& status) {
  return status ? static_cast<int>(PTL_OK) : code_of(status.error());
}

// The result of a look at a call's objects. gone: one of them has been freed.
enum class LookResult : uint8_t { ready, nothing, gone };
enum class WaitResult : uint8_t { ready, timeout, aborted, gone };

[[nodiscard]] inline WaitResult wait_result_of(LookResult look) {
  if (look == LookResult::gone) return WaitResult::gone;
  return look == LookResult::ready ? WaitResult::ready : WaitResult::timeout;
}

// Calls `look`; if it finds nothing, polls the driver and calls `look` once more. `look` must find its objects by
// their handles each time, because other calls may run between the two.
template <class LookAt>
LookResult look_twice(Process& process, LookAt look) {
  const LookResult first = look();
  if (first != LookResult::nothing) return first;
  process.host().poll();
  return look();
}

// Waits until `look` finds something, the timeout is over, PtlAbort is called, or an object is freed. Does not read
// the clock if something is there at once or the timeout is 0. Reports show `blocked` while the call waits.
template <class LookAt>
WaitResult wait_until(Process& process, const BlockedCall& blocked, ptl_time_t timeout, LookAt look) {
  if (process.is_aborted()) return WaitResult::aborted;
  if (timeout == 0) return wait_result_of(look_twice(process, look));
  LookResult found = look();
  if (found != LookResult::nothing) return wait_result_of(found);
  constexpr int64_t ps_per_ms = 1'000'000'000;
  const bool for_ever = timeout == PTL_TIME_FOREVER;
  Host& host = process.host();
  const Time deadline = for_ever ? Time::never() : host.port().now() + Time{int64_t{timeout} * ps_per_ms};
  const WaiterScope waiter_scope(process);
  for (;;) {
    {
      const BlockedScope blocked_scope(process, blocked);
      host.wait(deadline);
    }
    if (process.is_aborted()) return WaitResult::aborted;
    found = look();
    if (found != LookResult::nothing) return wait_result_of(found);
    if (!for_ever && host.port().now() >= deadline) return wait_result_of(look_twice(process, look));
  }
}

// For calls that free an object: wakes all waiting threads afterwards, so that those which wait for the object return.
template <class Work>
int freeing_nic_call(const char* name, Work work) {
  const int code = nic_call(name, work);
  if (code == PTL_OK) Process::current()->wake_waiters();
  return code;
}

}  // namespace spinloom::calls
