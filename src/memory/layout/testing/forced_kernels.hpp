// Forced kernels - one kernel set for a while, in tests; at the end the environment decides again.
// Threads: none others may copy meanwhile. Time: none.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "memory/layout/kernel.hpp"

namespace spinloom::layout::test {

class ForcedKernels {
 public:
  explicit ForcedKernels(const std::string& name) : done_(force_kernels(name)) {}
  ForcedKernels(const ForcedKernels&) = delete;
  ForcedKernels& operator=(const ForcedKernels&) = delete;
  ~ForcedKernels() {
    const char* const asked = std::getenv("SPINLOOM_KERNEL");
    (void)force_kernels(asked == nullptr ? "" : asked);
  }
  [[nodiscard]] const Status& done() const { return done_; }

 private:
  Status done_;
};

// All sets that this processor runs, and the walker.
inline std::vector<std::string> kernel_names() {
  std::vector<std::string> found{"walker"};
  for (const KernelSet* set : kernel_sets()) found.emplace_back(set->name);
  return found;
}

}  // namespace spinloom::layout::test
