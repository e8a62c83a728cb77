#include "simulated/job/standstill.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "simulated/job/place.hpp"

// glibc has no name for this field before 2.38.
#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace spinloom::job {
namespace {

constexpr int64_t compute_ns = 1'000'000'000;  // a second of processor time
constexpr uint32_t warn_after_s = 10;
constexpr timespec tick_interval{0, 250'000'000};  // a quarter of a second of processor time

// The state that consecutive looks have found unchanged.
struct Observation {
  const Rank* rank = nullptr;  // the running rank; null: none
  Time time{};
  int64_t since_ns = 0;  // processor_time_ns() at the first of these looks
  bool has_warned = false;
};

struct Watch {
  uint32_t limit_s = 0;
  Observation observed;
} watch;

// Asks the kernel, because the launcher's clock_gettime() gives modelled time.
int64_t processor_time_ns() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * compute_ns + now.tv_nsec;
}

void warn_of_standstill(const Job& job, const Rank& rank, const char* place) {
  char line[1024];
  const int length = std::snprintf(line, sizeof line,
                                   "spinloom: rank %u has computed for %u s without a call%s, and modelled time stands "
                                   "still; after %u s the run ends (SPINLOOM_SIM_COMPUTE_S)\n",
                                   rank.rank().value, warn_after_s, place, watch.limit_s);
  if (length > 0) job.write_unprefixed(line, static_cast<size_t>(length));
}

[[noreturn]] void end_standstill(Job& job, const Rank& rank, const char* place) {
  job.rescue_output();
  job.report().say(
      "trouble stalled rank %u has computed for %u s without a call%s, and modelled time stands still at %.3f us; the "
      "last Portals call was %s. A rank that waits by looking at its memory waits for ever: between two looks it must "
      "make a call (PtlCTGet, PtlEQGet), sleep or yield. Longer computations need a larger SPINLOOM_SIM_COMPUTE_S (0: "
      "no limit)",
      rank.rank().value, watch.limit_s, place, microseconds(rank.now()), last_call_of(rank));
  syscall(SYS_exit_group, EXIT_FAILURE);  // _exit() would end the running rank only
  __builtin_unreachable();
}

void observe_running(Job& job, const void* context) {
  const Rank* const rank = job.running_rank();
  const int64_t now_ns = processor_time_ns();
  const Time time = rank == nullptr ? Time{} : rank->now();
  Observation& observed = watch.observed;
  if (rank == nullptr || rank != observed.rank || time != observed.time) {
    observed = {rank, time, now_ns, false};
    return;
  }
  const int64_t computed = now_ns - observed.since_ns;
  if (computed >= watch.limit_s * compute_ns) end_standstill(job, *rank, place_of(job, *rank, context).text);
  if (observed.has_warned || warn_after_s >= watch.limit_s || computed < warn_after_s * compute_ns) return;
  observed.has_warned = true;
  warn_of_standstill(job, *rank, place_of(job, *rank, context).text);
}

void on_tick(int, siginfo_t*, void* context) {
  const int error = errno;
  if (Job* const job = Job::current()) observe_running(*job, context);
  errno = error;
}

}  // namespace

// The signal is the last one of real time, which programs hardly use. It comes to this thread only, on the stack for
// crashes (simulated/job/crash.hpp), whatever fiber runs; children that a rank forks have no such timer.
void watch_for_standstill(uint32_t limit_s) {
  if (limit_s == 0) return;
  watch.limit_s = limit_s;
  struct sigaction action{};
  action.sa_sigaction = on_tick;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(SIGRTMAX, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMAX;
  event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  const itimerspec every{tick_interval, tick_interval};
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0) timer_settime(timer, 0, &every, nullptr);
}

}  // namespace spinloom::job
