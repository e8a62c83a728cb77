// Call - wraps the C functions of Portals: finds the calling process, spends the price of a call, and turns an Error
// into a return code.
//
// Contract: enter("PtlPut", work) finds the process that runs now and calls work(process). It returns PTL_NO_INIT
//   before PtlInit, after the last PtlFini, and if no driver has entered a process. priced() does the same for a call
//   that talks to the NIC, and spends the host's time of such a call before the work. PtlInit, PtlFini and PtlAbort do
//   without these wrappers.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "base/result.hpp"
#include "portals/calls/process.hpp"

namespace spinloom::calls {

// Records the call for reports. Returns false before PtlInit and after the last PtlFini.
[[nodiscard]] bool begin(Process& process, const char* name);

// The return code of a C call for an Error from the NIC's side.
[[nodiscard]] int code_of(const Error& error);

// Lives as long as a call. While it lives, calls of other threads wait, except while this call itself waits.
class Inside {
 public:
  explicit Inside(Host& host) : host_(host) { host_.begin_call(); }
  ~Inside() { host_.end_call(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Host& host_;
};

template <class Work>
int enter(const char* name, Work work) {
  Process* const process = Process::current();
  if (process == nullptr) return PTL_NO_INIT;
  const Inside inside(process->host());
  return begin(*process, name) ? work(*process) : static_cast<int>(PTL_NO_INIT);
}

template <class Work>
int priced(const char* name, Work work) {
  return enter(name, [&](Process& process) {
    process.host().call();
    return work(process);
  });
}

[[nodiscard]] inline int answer(const Status& status) {
  return status ? static_cast<int>(PTL_OK) : code_of(status.error());
}

// The result of a look at a call's objects. gone: one of them has been freed.
enum class Look : uint8_t { ready, nothing, gone };
enum class Waited : uint8_t { ready, late, aborted, gone };

[[nodiscard]] inline Waited waited(Look look) {
  if (look == Look::gone) return Waited::gone;
  return look == Look::ready ? Waited::ready : Waited::late;
}

// Calls `look`; if it finds nothing, polls the driver and calls `look` once more. `look` must find its objects by
// their handles each time, because other calls may run between the two.
template <class LookAt>
Look look_twice(Process& process, LookAt look) {
  const Look first = look();
  if (first != Look::nothing) return first;
  process.host().poll();
  return look();
}

// Waits until `look` finds something, the timeout is over, PtlAbort is called, or an object is freed. Does not read
// the clock if something is there at once or the timeout is 0. Reports show `blocked` while the call waits.
template <class LookAt>
Waited wait_until(Process& process, const Blocked& blocked, ptl_time_t timeout, LookAt look) {
  if (process.aborted()) return Waited::aborted;
  if (timeout == 0) return waited(look_twice(process, look));
  Look found = look();
  if (found != Look::nothing) return waited(found);
  constexpr int64_t ps_per_ms = 1'000'000'000;
  const bool for_ever = timeout == PTL_TIME_FOREVER;
  Host& host = process.host();
  const Time deadline = for_ever ? Time::never() : host.port().now() + Time{int64_t{timeout} * ps_per_ms};
  const Waiter waiter(process);
  for (;;) {
    {
      const Blocking waits(process, blocked);
      host.wait(deadline);
    }
    if (process.aborted()) return Waited::aborted;
    found = look();
    if (found != Look::nothing) return waited(found);
    if (!for_ever && host.port().now() >= deadline) return waited(look_twice(process, look));
  }
}

// For calls that free an object: wakes all waiting threads afterwards, so that those which wait for the object return.
template <class Work>
int freeing(const char* name, Work work) {
  const int code = priced(name, work);
  if (code == PTL_OK) Process::current()->wake_waiters();
  return code;
}

}  // namespace spinloom::calls
