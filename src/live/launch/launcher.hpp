// Launcher - asks the program that started this process about the job, and exchanges texts between the ranks.
//
// Contract: find_launcher() uses what the environment offers: PMI-1, PMIx, or nothing, which means a job of one
//   process. An environment of several ranks with neither of the two is an Error, not a job of one. exchange()
//   publishes a text of this rank, waits for all ranks, and returns the texts of all in the order of ranks. leave()
//   is the last call; a process that ends by exit(0) without it has also left. One Launcher serves several NICs of a
//   process: each calls enter() first, and the process has left when all of these have called leave().
// Invariants: (1) trouble is an Error that names the launcher's interface and its answer; (2) exchange() may be
//   called several times, equally often by every rank; (3) an MPI library of this process, and a program that speaks
//   PMI-1 itself, find the launcher as they would without us: the message that ends the connection is sent only when
//   nobody else can need it any more.
// Threads: one at a time; enter(), leave() and withdraw() from any. Time: exchange() waits for the slowest rank, as
//   long as StartWait says.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.hpp"

namespace spinloom::live {

// The time for which exchange() waits for ranks that have not called PtlInit. After report_after_s it prints a line,
// unless the limit comes first; after limit_s it returns an Error.
struct StartWait {
  uint32_t report_after_s = 10;
  uint32_t limit_s = 300;  // 0: for ever

  [[nodiscard]] bool is_reported() const { return limit_s == 0 || report_after_s < limit_s; }
  [[nodiscard]] uint32_t first_wait_s() const { return is_reported() ? report_after_s : limit_s; }
};

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher();
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual uint32_t rank() const = 0;
  [[nodiscard]] virtual uint32_t size() const = 0;
  // A text has at most exchange_bytes_max printable characters and no blanks.
  [[nodiscard]] virtual Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait& wait) = 0;
  // The name of this job, if the launcher says that all of its ranks are on this machine, and nothing that one rank can
  // see keeps them apart there; else empty. No other job of this user has that name on this machine. Waits for no
  // other rank.
  [[nodiscard]] virtual Result<std::string> job_here() { return std::string(); }
  // True if anything else in this process uses the connection that finish() ends, or may use it later.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  // Tells the launcher that this process has left the job and may end.
  virtual void finish() {}
  // Tells the launcher that this process ends with a failure and has not left, so that the launcher ends the job. Where
  // an interface has no such call, nothing happens: the launcher then sees the process end.
  virtual void abort(int code) { std::ignore = code; }
  // The launcher of the whole process, where this one serves one of its threads; otherwise this one.
  [[nodiscard]] virtual Launcher& of_process() { return *this; }

 private:
  friend void enter(Launcher& launcher);
  friend void withdraw(Launcher& launcher);
  friend void leave(Launcher& launcher);
  std::atomic<uint32_t> entered_nics_{0};  // NICs of this process that have entered and not left
};

inline constexpr size_t exchange_bytes_max = 512;

[[nodiscard]] Result<std::unique_ptr<Launcher>> find_launcher();
// The most ranks of a job: rank r is node r, and node 0xffff would be PTL_NID_ANY.
inline constexpr uint32_t live_rank_count_max = 0xffff;
// Returns an Error if a job has more ranks than that.
[[nodiscard]] Status check_rank_count(uint32_t ranks);
// From now on the process calls `at_exit` and finishes when it ends by exit(0). If it ends in another way, it has
// crashed, as far as the launcher knows. A process has one such function, for all its NICs. If `launcher` is destroyed
// before the end of the process, nothing is called.
void set_exit_action(Launcher& launcher, void (*at_exit)());
// Says that a rank could not start. If no rank of the process has started when it ends with a failure, the launcher
// ends the job.
void note_failed_start(Launcher& launcher);
// Announces a NIC that takes part in the exchanges and will leave.
void enter(Launcher& launcher);
// Takes enter() back: this NIC could not start, and nobody finishes because of it.
void withdraw(Launcher& launcher);
// Says that a NIC has left. After the last one the process finishes: now, or, if others in this process may still need
// the launcher, when the process ends by exit() with any code.
void leave(Launcher& launcher);

// For launchers that read no more of a job's output once they are told to end it. Flushes what this process has
// printed, unless that would block, and waits until all of it has been read from its pipes, but no longer than the
// limit.
void hand_over_output(int limit_ms = 1'000);

// The launchers by interface; null where the environment does not offer it.
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmi1();
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmix();

// For ranks that do not come to the exchange: warn_of_waiting() prints a line, start_timeout() makes the Error.
void warn_of_waiting(uint32_t ranks, const StartWait& wait);
[[nodiscard]] Error start_timeout(const char* launcher, uint32_t ranks, const StartWait& wait);

}  // namespace spinloom::live
