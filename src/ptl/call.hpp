// Call - the frame around every C call: whose it is, its price, and the answer to an Error.
//
// Contract: enter("PtlPut", work) finds the process that runs now and runs work(process); outside PtlInit and PtlFini,
//   and where no driver has entered a process, the answer is PTL_NO_INIT. priced() also spends the host's time of a
//   communication call, before the work.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "base/result.hpp"
#include "ptl/process.hpp"

namespace spinloom::ptl {

// Notes the call; false before PtlInit.
[[nodiscard]] bool begin(Process& process, const char* name);

// The return code for trouble that the NIC's side reports.
[[nodiscard]] int code_of(const Error& error);

// Inside a call: other threads of the program wait, or the call waits itself.
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

// What a look at the objects of a call finds; gone: one of them has been freed.
enum class Look : uint8_t { ready, nothing, gone };
enum class Waited : uint8_t { ready, late, aborted, gone };

[[nodiscard]] inline Waited waited(Look look) {
  if (look == Look::gone) return Waited::gone;
  return look == Look::ready ? Waited::ready : Waited::late;
}

// Looks, and where nothing is there, once more at what has come meanwhile. `look` finds its objects by their handles
// each time: others may come in before the second one.
template <class LookAt>
Look look_twice(Process& process, LookAt look) {
  const Look first = look();
  if (first != Look::nothing) return first;
  process.host().poll();
  return look();
}

// Waits until `look` is ready, the timeout, PtlAbort, or the end of an object. What is there at once, or is not waited
// for, costs no look at the clock. `blocked` is what a report says meanwhile.
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
    process.block(&blocked);
    host.wait(deadline);
    process.block(nullptr);
    if (process.aborted()) return Waited::aborted;
    found = look();
    if (found != Look::nothing) return waited(found);
    if (!for_ever && host.port().now() >= deadline) return waited(look_twice(process, look));
  }
}

// A call that ends an object: who waits for it hears of it at once.
template <class Work>
int freeing(const char* name, Work work) {
  const int code = priced(name, work);
  if (code == PTL_OK) Process::current()->wake_waiters();
  return code;
}

}  // namespace spinloom::ptl
