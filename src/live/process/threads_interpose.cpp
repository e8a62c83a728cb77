// Functions that replace the C library's in programs of spinloom-threads: exit() ends a rank, and a new thread belongs
// to the rank of the thread that creates it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <tuple>

#include "live/process/threads_rank.hpp"

namespace {

using spinloom::process::ThreadsRank;

template <class Function>
Function library_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <class Start>
struct NewThread {
  ThreadsRank* rank;
  Start start;
  void* argument;
};

template <class Start>
auto begin(void* new_thread_address) {
  const std::unique_ptr<NewThread<Start>> new_thread(static_cast<NewThread<Start>*>(new_thread_address));
  const NewThread<Start> thread = *new_thread;
  thread.rank->adopt();
  return thread;
}

// Ends the rank if this is its main() thread, or a child that it has forked. On another thread it returns, and the
// whole process ends: that rank's other threads would go on otherwise.
void leave(int code, bool at_once) {
  ThreadsRank* const rank = ThreadsRank::current();
  if (rank != nullptr && rank->is_child()) rank->leave_child(code, at_once);
  if (rank != nullptr && rank->runs_main()) rank->leave(code, at_once);
}

}  // namespace

namespace spinloom::process {

void exit_process(int code) {
  library_function<void (*)(int)>("exit")(code);
  exit_process_at_once(code);
}

void exit_process_at_once(int code) {
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

}  // namespace spinloom::process

extern "C" {

void exit(int code) {
  leave(code, false);
  spinloom::process::exit_process(code);
}

void quick_exit(int code) noexcept {
  leave(code, true);
  spinloom::process::exit_process_at_once(code);
}

void _exit(int code) {
  leave(code, true);
  spinloom::process::exit_process_at_once(code);
}

void _Exit(int code) noexcept { quick_exit(code); }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto create =
      library_function<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  using Start = void* (*)(void*);
  ThreadsRank* const rank = ThreadsRank::current();
  if (rank == nullptr) return create(thread, attributes, start, argument);
  auto new_thread = std::make_unique<NewThread<Start>>(rank, start, argument);
  const auto run = [](void* new_thread_address) -> void* {
    const auto started = begin<Start>(new_thread_address);
    return started.start(started.argument);
  };
  const int error = create(thread, attributes, run, new_thread.get());
  if (error == 0) std::ignore = new_thread.release();
  return error;
}

int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  static const auto create = library_function<int (*)(thrd_t*, thrd_start_t, void*)>("thrd_create");
  ThreadsRank* const rank = ThreadsRank::current();
  if (rank == nullptr) return create(thread, start, argument);
  auto new_thread = std::make_unique<NewThread<thrd_start_t>>(rank, start, argument);
  const auto run = [](void* new_thread_address) -> int {
    const auto started = begin<thrd_start_t>(new_thread_address);
    return started.start(started.argument);
  };
  const int error = create(thread, run, new_thread.get());
  if (error == thrd_success) std::ignore = new_thread.release();
  return error;
}

}  // extern "C"
