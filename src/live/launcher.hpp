// Launcher - what the program that started this process says of its job, and a place to publish to the other ranks.
//
// Contract: find_launcher() takes what the environment offers: PMI-1, PMIx, or nothing, which is a job of one process;
//   an environment of several ranks without either is an Error, not a job of one. exchange() publishes a text of this
//   rank and returns the texts of all, in the order of ranks; it waits for all. leave() comes last; a process that ends
//   by exit(0) without it has left, too.
// Invariants: (1) trouble is an Error that names the launcher's interface and its answer; (2) exchange() may be
//   called again: every rank calls it as often; (3) an MPI library of this process, and a program that speaks PMI-1
//   itself, find the launcher as they would without us: what ends the connection is said when nobody else can want it
//   any more.
// Threads: one owner. Time: exchange() waits for the slowest rank, as long as StartWait says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::live {

// How long exchange() waits for ranks that have not called PtlInit: first a line is said, then it is an Error.
struct StartWait {
  uint32_t told_after_s = 10;
  uint32_t limit_s = 300;  // 0: for ever

  [[nodiscard]] bool is_told() const { return limit_s == 0 || told_after_s < limit_s; }
  [[nodiscard]] uint32_t first_s() const { return is_told() ? told_after_s : limit_s; }
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual uint32_t rank() const = 0;
  [[nodiscard]] virtual uint32_t size() const = 0;
  // At most exchange_bytes_max printable characters without blanks.
  [[nodiscard]] virtual Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait& wait) = 0;
  // Something else of this process may speak to the launcher, now or later, over what finish() ends.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  // This process has left the job: the launcher may take it for ended.
  virtual void finish() {}
};

inline constexpr size_t exchange_bytes_max = 512;

[[nodiscard]] Result<std::unique_ptr<Launcher>> find_launcher();
// From now on a process that ends by exit(0) calls `leaving` and finishes; one that ends in another way has crashed,
// for all that the launcher knows. `launcher` lives as long.
void attend_to_end(Launcher& launcher, void (*leaving)());
// Finishes; only when the process ends, by exit() with any code, where somebody else may still need the launcher.
void leave(Launcher& launcher);

// The single ones; null where the environment does not offer them.
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmi1();
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmix();

// What they say of ranks that do not come.
void tell_of_waiting(uint32_t ranks, const StartWait& wait);
[[nodiscard]] Error never_came(const char* launcher, uint32_t ranks, const StartWait& wait);

}  // namespace spinloom::live
