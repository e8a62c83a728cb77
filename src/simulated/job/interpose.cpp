// Functions that replace the C library's for a rank's program: they act on the rank instead of the process. Outside of
// ranks they call the library or the kernel.
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "simulated/job/hooks.hpp"

namespace {

constexpr int64_t ps_per_ns = 1000;
constexpr int64_t ns_per_s = 1'000'000'000;
constexpr int64_t ps_per_s = ps_per_ns * ns_per_s;

template <class Function>
Function library_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_duration(const struct timespec& duration) {
  return duration.tv_sec >= 0 && duration.tv_nsec >= 0 && duration.tv_nsec < ns_per_s;
}

int64_t picoseconds(const struct timespec& duration) {
  return duration.tv_sec >= INT64_MAX / ps_per_s ? INT64_MAX
                                                 : duration.tv_sec * ps_per_s + duration.tv_nsec * ps_per_ns;
}

}  // namespace

extern "C" {

void exit(int code) {
  if (spl_job_running()) spl_job_exit(code, false);
  library_function<void (*)(int)>("exit")(code);
  _exit(code);
}

void quick_exit(int code) noexcept {
  if (spl_job_running()) spl_job_exit(code, true);
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

void _exit(int code) {
  if (spl_job_running()) spl_job_exit(code, true);
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

void _Exit(int code) noexcept { quick_exit(code); }

char* getenv(const char* name) noexcept {
  if (const char* value = spl_job_environment(name)) return const_cast<char*>(value);
  static const auto from_library = library_function<char* (*)(const char*)>("getenv");
  return from_library(name);
}

int clock_gettime(clockid_t clock, struct timespec* out) noexcept {
  if (!spl_job_running()) return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  const int64_t ns = spl_job_time_ps() / ps_per_ns;
  out->tv_sec = ns / ns_per_s;
  out->tv_nsec = ns % ns_per_s;
  return 0;
}

int gettimeofday(struct timeval* out, void*) noexcept {
  struct timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) noexcept {
  struct timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int nanosleep(const struct timespec* duration, struct timespec* remaining) {
  if (!spl_job_running()) return static_cast<int>(syscall(SYS_nanosleep, duration, remaining));
  if (!is_duration(*duration)) {
    errno = EINVAL;
    return -1;
  }
  spl_job_sleep_ps(picoseconds(*duration));
  return 0;
}

// All clocks are modelled time. Returns the errno.
int clock_nanosleep(clockid_t clock, int flags, const struct timespec* request, struct timespec* remaining) {
  if (!spl_job_running()) {
    return syscall(SYS_clock_nanosleep, clock, flags, request, remaining) == 0 ? 0 : errno;
  }
  if (!is_duration(*request)) return EINVAL;
  int64_t duration_ps = picoseconds(*request);
  if ((flags & TIMER_ABSTIME) != 0) duration_ps -= spl_job_time_ps();
  if (duration_ps > 0) spl_job_sleep_ps(duration_ps);
  return 0;
}

int sched_yield() noexcept {
  if (!spl_job_running()) return static_cast<int>(syscall(SYS_sched_yield));
  spl_job_yield();
  return 0;
}

void thrd_yield() { sched_yield(); }

int thrd_sleep(const struct timespec* duration, struct timespec* remaining) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, duration, remaining);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;  // the return values of C11
}

unsigned int sleep(unsigned int seconds) {
  const struct timespec duration{static_cast<time_t>(seconds), 0};
  nanosleep(&duration, nullptr);
  return 0;
}

int usleep(useconds_t microseconds) {
  const struct timespec duration{static_cast<time_t>(microseconds / 1'000'000),
                                 static_cast<long>(microseconds % 1'000'000) * 1000};
  return nanosleep(&duration, nullptr);
}

}  // extern "C"
