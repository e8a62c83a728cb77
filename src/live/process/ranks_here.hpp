// RanksHere - the ranks of this process: one for all its threads, or several, each with threads of its own.
//
// Contract: join() makes the calling thread's rank take part in the job. split() makes several ranks; then a thread
//   enters one of them before it joins. end() ends the calling thread's rank. leave_all() leaves the job for the ranks
//   whose programs have closed their interfaces without ending the rank.
// Invariants: (1) a rank joins once, whichever of its threads asks; (2) a forked child has no ranks.
// Threads: any. Time: join() may wait for the other ranks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "live/launch/thread_launchers.hpp"
#include "live/process/live_process.hpp"
#include "portals/calls/ranks.hpp"

namespace spinloom::process {

class RanksHere {
 public:
  // The functions that the program's library supplies: one returns the settings, the other runs when the process ends
  // by exit(0).
  struct Program {
    Settings (*settings)();
    void (*at_exit)();
  };
  explicit RanksHere(const Program& program) : program_(program) {}

  [[nodiscard]] Result<calls::Process*> join();
  [[nodiscard]] Status split(uint32_t count);
  [[nodiscard]] Status enter(uint32_t number);
  enum class EndResult : uint8_t { clean, with_calls_open };
  [[nodiscard]] Result<EndResult> end();
  // Leaves for all ranks whose program has closed its interfaces. For the others, which may have calls under way in
  // other threads, it only notes in the state file that they have ended.
  void leave_all();
  void forget_in_child();

 private:
  // One rank. The LiveProcess and the Process are never freed: threads may be inside a call when the process ends.
  struct Rank {
    std::mutex joining;
    calls::Process::Seat seat{nullptr};
    uint32_t number = 0;
    std::shared_ptr<live::Launcher> launcher;  // null: to be found when the rank joins
    calls::Host* host = nullptr;
    std::vector<LiveProcess*> nics;  // the NICs of `host`
    calls::Process* process = nullptr;
    bool ended = false;
  };

  [[nodiscard]] Rank* current_rank();
  [[nodiscard]] static Status join_job(Rank& rank, const Settings& settings,
                                       const std::shared_ptr<live::Launcher>& launcher);
  static bool leave(Rank& rank);

  static thread_local Rank* entered_;  // the rank of this thread, in a process of several

  Program program_;
  std::atomic<bool> forked_{false};
  std::mutex lock_;  // guards the members below
  bool exit_action_set_ = false;  // true: `at_exit` has been registered for the end of the process
  Rank single_rank_;             // the rank of all threads, in a process that is not split
  bool single_rank_used_ = false;
  // The launcher of a single rank that could not start: the rank may try again.
  std::shared_ptr<live::Launcher> unused_launcher_;
  Settings settings_;  // those of a process that is split
  std::shared_ptr<live::ThreadLaunchers> launchers_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // the ranks of a process that is split; else empty
};

}  // namespace spinloom::process
