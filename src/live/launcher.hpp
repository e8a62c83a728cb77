// Launcher - what the program that started this process says of its job, and a place to publish to the other ranks.
//
// Contract: find_launcher() takes what the environment offers: PMIx, PMI-1, or nothing, which is a job of one process.
//   exchange() publishes a text of this rank and returns the texts of all, in the order of ranks; it waits for all.
// Invariants: (1) trouble is an Error that names the launcher's interface and its answer; (2) exchange() is called
// once. Threads: one owner. Time: exchange() waits for the slowest rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::live {

class Launcher {
 public:
  virtual ~Launcher() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual uint32_t rank() const = 0;
  [[nodiscard]] virtual uint32_t size() const = 0;
  // At most exchange_bytes_max printable characters without blanks.
  [[nodiscard]] virtual Result<std::vector<std::string>> exchange(const std::string& mine) = 0;
  // This process has left the job.
  virtual void finish() {}
};

inline constexpr size_t exchange_bytes_max = 512;

[[nodiscard]] Result<std::unique_ptr<Launcher>> find_launcher();

// The single ones; null where the environment does not offer them.
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmi1();
[[nodiscard]] Result<std::unique_ptr<Launcher>> find_pmix();

}  // namespace spinloom::live
