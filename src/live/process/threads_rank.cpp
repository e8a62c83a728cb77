#include "live/process/threads_rank.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/printable.hpp"
#include "portals4_spin.h"

namespace spinloom::process {
namespace {

constexpr size_t stack_least_bytes = 8 << 20;
constexpr size_t signal_stack_bytes = 64 << 10;
constexpr int exit_environment = 3;

thread_local ThreadsRank* current_rank = nullptr;
thread_local bool is_main_thread = false;

// The size of a rank's stack: that of a process's first thread, and at least stack_least_bytes.
size_t stack_bytes() {
  rlimit given{};
  const bool limited = getrlimit(RLIMIT_STACK, &given) == 0 && given.rlim_cur != RLIM_INFINITY;
  return std::max<size_t>(limited ? given.rlim_cur : 0, stack_least_bytes);
}

// Gives this thread another stack for signals, so that an overflow of its own stack can be reported.
void take_signal_stack() {
  stack_t stack{};
  stack.ss_sp = std::malloc(signal_stack_bytes);
  stack.ss_size = signal_stack_bytes;
  if (stack.ss_sp != nullptr) sigaltstack(&stack, nullptr);
}

[[noreturn]] void park() {
  for (;;) pause();
}

// Does its work when it is destroyed. A rank ends so if its program calls pthread_exit() in main(), which unwinds the
// stack up to here.
template <class Work>
class AtUnwinding {
 public:
  explicit AtUnwinding(Work work) : work_(work) {}
  ~AtUnwinding() { work_(); }
  AtUnwinding(const AtUnwinding&) = delete;
  AtUnwinding& operator=(const AtUnwinding&) = delete;

 private:
  Work work_;
};

}  // namespace

ThreadsRank* ThreadsRank::current() { return current_rank; }

bool ThreadsRank::runs_main() const { return is_main_thread; }

void ThreadsRank::adopt() {
  current_rank = this;
  std::ignore = PtlSpinRankEnter(number_);
}

// Gets the process id from the kernel, because a child of vfork() shares this memory.
bool ThreadsRank::is_child() const { return getpid() != process_id_; }

void ThreadsRank::leave_child(int code, bool at_once) {
  if (!at_once && !std::exchange(destructors_run_, true)) program_.run_destructors(program_copy_);
  if (!at_once) std::fflush(nullptr);
  exit_process_at_once(code);
}

Status ThreadsRank::begin() {
  process_id_ = getpid();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes());
  pthread_t thread{};
  const int error = pthread_create(&thread, &attributes, &ThreadsRank::run, this);
  pthread_attr_destroy(&attributes);
  if (error == 0) return {};
  return fail(Code::environment, "a thread with a stack of ", stack_bytes(), " B: ", std::strerror(error),
              "; ulimit -s and -u limit them");
}

int ThreadsRank::wait() {
  std::unique_lock inside(lock_);
  exit_code_set_.wait(inside, [this] { return exit_code_.has_value(); });
  return *exit_code_;
}

void* ThreadsRank::run(void* given) {
  auto& rank = *static_cast<ThreadsRank*>(given);
  is_main_thread = true;
  rank.adopt();
  take_signal_stack();
  auto copy = rank.program_.load();
  if (!copy) {
    std::fprintf(stderr, "spinloom-threads: %s\n", printable(copy.error().message).c_str());
    exit_process(exit_environment);
  }
  rank.program_copy_ = *copy;
  const AtUnwinding ended([&rank] {
    rank.end(EXIT_SUCCESS, false);
    park();
  });
  // NOLINTNEXTLINE(cert-err52-cpp): exit() runs no destructors of the frames that it leaves
  if (setjmp(rank.exit_jump_) == 0) rank.end(rank.run_main(), false);
  park();
}

int ThreadsRank::run_main() {
  std::vector<char*> words;
  for (std::string& word : command_) words.push_back(word.data());
  words.push_back(nullptr);
  return program_copy_.main(static_cast<int>(command_.size()), words.data(), environ);
}

void ThreadsRank::leave(int code, bool at_once) {
  end(code, at_once);  // exit() may be called inside destructors: then the rest of them does not run
  // NOLINTNEXTLINE(cert-err52-cpp): as in run()
  std::longjmp(exit_jump_, 1);
}

void ThreadsRank::end(int code, bool at_once) {
  if (is_child()) leave_child(code, at_once);
  if (!at_once && !std::exchange(destructors_run_, true)) program_.run_destructors(program_copy_);
  if (!at_once) std::fflush(stdout);
  if (PtlSpinRankEnd() == PTL_IN_USE && code != EXIT_SUCCESS) exit_process(code);
  const std::lock_guard inside(lock_);
  exit_code_ = code;
  exit_code_set_.notify_all();
}

}  // namespace spinloom::process
