#include "simulated/job/crash.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "simulated/job/place.hpp"

namespace spinloom::job {
namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
alignas(16) char alternate_stack[64 << 10];

const char* name_of_signal(int number) {
  switch (number) {
    case SIGSEGV: return "a segmentation fault";
    case SIGBUS: return "a bus error";
    case SIGFPE: return "an arithmetic fault";
    case SIGILL: return "an illegal instruction";
    case SIGABRT: return "abort()";
    case SIGTRAP: return "a trap";
    default: return "a forbidden system call";
  }
}

void report_crash(const Job& job, int number, const void* address, const void* context) {
  const bool with_address = number == SIGSEGV || number == SIGBUS;
  char at_address[48] = "";
  if (with_address) std::snprintf(at_address, sizeof at_address, " at address %p", address);
  const Rank* rank = job.running_rank();
  if (rank == nullptr) {
    job.report().say(
        "trouble fault the simulated NICs met %s%s: a buffer of a put or an entry is memory that its rank "
        "does not have",
        name_of_signal(number), at_address);
    return;
  }
  if (with_address && rank->fiber().guards(address)) {
    job.report().say("trouble fault rank %u ran over the end of its stack (--stack) at %.3f us", rank->rank().value,
                     microseconds(rank->now()));
    return;
  }
  const PlaceText place = place_of(job, *rank, context);
  job.report().say("trouble fault rank %u crashed at %.3f us: %s%s%s; the last Portals call was %s", rank->rank().value,
                   microseconds(rank->now()), name_of_signal(number), at_address, place.text, last_call_of(*rank));
}

void on_signal(int number, siginfo_t* information, void* context) {
  if (Job* job = Job::current()) {
    job->rescue_output();
    report_crash(*job, number, information->si_addr, context);
  }
  syscall(SYS_exit_group, EXIT_FAILURE);  // _exit() would end the running rank only
}

}  // namespace

void watch_crashes() {
  stack_t stack{};
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof alternate_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int number : crash_signals) sigaction(number, &action, nullptr);
}

}  // namespace spinloom::job
