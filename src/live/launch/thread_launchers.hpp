// ThreadLaunchers - a launcher for each rank of a job whose ranks are threads of this process.
//
// Contract: every process of the job makes as many ranks; rank number t of process p is rank p * count + t of the job.
//   Each rank's thread uses its own Launcher. One exchange of theirs is one or more exchanges of the process's
//   launcher, made by the thread that comes last. quit() says that a rank comes to no more exchanges.
// Invariants: (1) all ranks of the process get the same texts or the same Error; (2) where a rank has quit, or has
//   waited for too long, the exchange that the others wait in and all later ones are Errors.
// Threads: one for each rank. Time: that of Launcher::exchange().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "live/launch/launcher.hpp"

namespace spinloom::live {

class ThreadLaunchers : public std::enable_shared_from_this<ThreadLaunchers> {
 public:
  [[nodiscard]] static std::shared_ptr<ThreadLaunchers> create(std::shared_ptr<Launcher> process_launcher,
                                                               uint32_t count);

  [[nodiscard]] std::shared_ptr<Launcher> launcher_of(uint32_t number);
  void quit(uint32_t number);
  [[nodiscard]] Launcher& process_launcher() { return *process_launcher_; }
  [[nodiscard]] uint32_t count() const { return count_; }

  // For the launchers of the threads.
  [[nodiscard]] Result<std::vector<std::string>> exchange(uint32_t number, const std::string& mine,
                                                          const StartWait& wait);

 private:
  using Texts = Result<std::vector<std::string>>;

  ThreadLaunchers(std::shared_ptr<Launcher> process_launcher, uint32_t count);
  [[nodiscard]] bool wait_for_others(std::unique_lock<std::mutex>& inside, uint64_t round, const StartWait& wait);
  [[nodiscard]] Texts exchange_all(const StartWait& wait);
  void end_round(Texts texts);

  std::shared_ptr<Launcher> process_launcher_;
  uint32_t count_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;  // the texts of this process's ranks in this round
  uint32_t arrived_ = 0;               // ranks that wait in this round
  bool warned_ = false;               // one of them has printed the line of StartWait
  uint64_t round_ = 0;
  std::shared_ptr<const Texts> last_result_;  // the result of the round before
  std::string failure_;                 // the reason why there can be no more rounds; empty: there can
};

// True if a process with ranks on threads has published this text.
[[nodiscard]] bool is_packed(std::string_view text);
// Makes one text of several.
[[nodiscard]] std::string pack(const std::vector<std::string>& texts);
// Returns the texts that pack() was given; an Error for any other text.
[[nodiscard]] Result<std::vector<std::string>> unpack(const std::string& packed);

}  // namespace spinloom::live
