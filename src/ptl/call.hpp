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

enum class Waited : uint8_t { ready, late, aborted };

// Waits until `ready`, the deadline, or PtlAbort. `blocked` is what a report says meanwhile.
template <class Ready>
Waited wait_until(Process& process, const Blocked& blocked, Time deadline, Ready ready) {
  if (ready()) return Waited::ready;
  const Waiter waiter(process);
  do {
    const bool late = deadline != Time::never() && (deadline == Time{} || process.host().port().now() >= deadline);
    if (late) {
      process.host().poll();
      return ready() ? Waited::ready : Waited::late;
    }
    if (waiter.aborted()) return Waited::aborted;
    process.block(&blocked);
    process.host().wait(deadline);
    process.block(nullptr);
  } while (!ready());
  return Waited::ready;
}

[[nodiscard]] inline Time deadline_of(Process& process, ptl_time_t milliseconds) {
  constexpr int64_t ps_per_ms = 1'000'000'000;
  if (milliseconds == PTL_TIME_FOREVER) return Time::never();
  return process.host().port().now() + Time{int64_t{milliseconds} * ps_per_ms};
}

}  // namespace spinloom::ptl
