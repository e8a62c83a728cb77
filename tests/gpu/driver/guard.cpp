#include "guard.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fault.hpp"
#include "memory.hpp"

namespace fake {

#if defined(__x86_64__)
namespace {

constexpr greg_t trap_flag = 0x100;
constexpr int stack_max = 24;
const char* guarded = "";

// The allocations that the current instruction may touch, at most two.
thread_local Allocation let[2];
thread_local int lets = 0;

const char* file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

bool is_between(const char* file) {
  return std::strncmp(file, "libc.so", 7) == 0 || std::strncmp(file, "libcuda.so", 10) == 0;
}

// Returns the file of the code that the faulting instruction works for: the innermost frame outside libc and libcuda.
const char* culprit() {
  void* frames[stack_max];
  const int count = backtrace(frames, stack_max);
  for (int i = 0; i < count; ++i) {
    const char* const file = file_of(frames[i]);
    if (!is_between(file)) return file;
  }
  return "";
}

void on_fault(int, siginfo_t* info, void* context) {
  const char* const who = culprit();
  if (std::strcmp(who, guarded) == 0) {
    std::fprintf(stderr, "%s touches memory of the device at %p\n", who, info->si_addr);
    void* frames[stack_max];
    backtrace_symbols_fd(frames, backtrace(frames, stack_max), STDERR_FILENO);
    // A launcher ends the job of a process that a signal has killed. Hydra does not always, where one exits.
    kill(getpid(), SIGKILL);
  }
  const auto found = Memory::all().let(reinterpret_cast<uint64_t>(info->si_addr));
  const auto is_known = [&](const Allocation& one) { return found && one.number == found->number; };
  const bool is_new = std::find_if(let, let + lets, is_known) == let + lets;
  if (!found || (is_new && lets == 2)) {
    tell_fault(*info);
    signal(SIGSEGV, SIG_DFL);  // it comes again, and ends the process
    return;
  }
  if (is_new) let[lets++] = *found;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

void on_step(int, siginfo_t*, void* context) {
  while (lets > 0) Memory::all().shut(let[--lets]);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

}  // namespace

bool guard_begin(const char* library) {
  guarded = library;
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs
  struct sigaction action{};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = &on_fault;
  const bool faults = sigaction(SIGSEGV, &action, nullptr) == 0;
  action.sa_sigaction = &on_step;
  return faults && sigaction(SIGTRAP, &action, nullptr) == 0;
}
#else
bool guard_begin(const char*) { return false; }
#endif

}  // namespace fake
