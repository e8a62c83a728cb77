// ThreadsRank - a rank of spinloom-threads: its copy of the program, run on a thread of its own.
//
// Contract: begin() starts the thread. The rank ends when main() returns, or its thread calls exit() or pthread_exit();
//   wait() returns its exit code then. A rank that ends with another code than 0, and has neither closed its interfaces
//   nor done without the library, ends the process, as a failing process ends its job. A process that a rank forks is
//   no rank: what ends a rank ends that process alone.
// Invariants: (1) a rank's thread stays when the rank has ended, because peers may still copy out of its stack; (2)
//   a thread that a rank's thread creates belongs to that rank.
// Threads: any; leave() on the rank's own. Time: none.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <csetjmp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/namespaces/program.hpp"

namespace spinloom::process {

class ThreadsRank {
 public:
  ThreadsRank(const namespaces::Program& loaded, uint32_t number, uint32_t count, std::vector<std::string> command)
      : program_(loaded), number_(number), count_(count), command_(std::move(command)) {}

  // The rank that this thread belongs to: it runs the rank, or a thread of the rank has created it. Null on others.
  [[nodiscard]] static ThreadsRank* current();
  // Makes this thread one of the rank.
  void adopt();

  [[nodiscard]] Status begin();
  [[nodiscard]] int wait();
  // True on the thread that runs main().
  [[nodiscard]] bool runs_main() const;
  // True in a process that the rank has forked.
  [[nodiscard]] bool is_child() const;
  // Ends such a process. Destructors of the rank's copy run unless `at_once` is set.
  [[noreturn]] void leave_child(int code, bool at_once);
  // Ends the rank, where the program exits on the thread that runs main(). Destructors run unless `at_once` is set.
  [[noreturn]] void leave(int code, bool at_once);

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  static void* run(void* rank);
  [[nodiscard]] int run_main();
  void end(int code, bool at_once);

  const namespaces::Program& program_;
  uint32_t number_;
  uint32_t count_;
  std::vector<std::string> command_;
  namespaces::LoadedCopy program_copy_;
  std::jmp_buf exit_jump_{};
  pid_t process_id_ = 0;
  bool destructors_run_ = false;
  std::mutex lock_;  // guards the code
  std::condition_variable exit_code_set_;
  std::optional<int> exit_code_;
};

// The C library's exit() and _exit(), not those that end a rank.
[[noreturn]] void exit_process(int code);
[[noreturn]] void exit_process_at_once(int code);

}  // namespace spinloom::process
