// NativeRunner - runs handlers compiled for this machine, on the calling thread.
//
// Contract: load() takes a shared object that `spinloom handler build --native` made, and returns the image number to
//   put into a context. entry() returns the number of one of its functions. run() calls that function with the memory
//   of the frame, which lies in this process. A call that does not exist, or that the driver answers with "stop",
//   ends the handler at that point, as a fault.
// Invariants: (1) handlers are trusted: one that touches what it must not can crash the process. Nothing stops a
//   handler that does not end, and HandlerCalls::budget_used() is not asked; (2) a handler that ran past its budget
//   (without the time of its calls) has still done its work: such runs are counted, and the log names each entry once;
//   (3) objects stay loaded as long as the process.
// Threads: run() on any number of threads at once; load() and entry() meanwhile. Time: cycles are the host's counter.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "nic/spin/handler_runner.hpp"
#include "spinloom/hpu_native.h"

namespace spinloom::live {

class NativeRunner final : public spin::HandlerRunner {
 public:
  // Images are numbered from `first_image` on.
  explicit NativeRunner(uint32_t first_image = 0);
  ~NativeRunner() override;
  NativeRunner(const NativeRunner&) = delete;
  NativeRunner& operator=(const NativeRunner&) = delete;

  // Loading a file again returns the same image.
  [[nodiscard]] Result<uint32_t> load(const std::string& path);
  [[nodiscard]] Result<uint32_t> entry(uint32_t image, const std::string& symbol);

  spin::HandlerOutcome run(const spin::HandlerFrame& frame, spin::HandlerCalls& calls) override;

  // The number of runs that took longer than their handler's budget.
  [[nodiscard]] uint64_t overruns() const { return overruns_.load(std::memory_order_relaxed); }

 private:
  struct Function;
  using Functions = std::vector<const Function*>;
  struct Object {
    std::string path;
    void* handle = nullptr;
    void (*bind)(spl_hpu*) = nullptr;
  };
  void report_overrun(const Function& function, uint64_t cycles, uint64_t budget);

  const uint32_t first_image_;
  std::mutex loading_;
  std::vector<Object> objects_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<const Functions>> tables_;  // the last one is current; runs may still read older ones
  std::atomic<const Functions*> table_{nullptr};
  std::atomic<uint64_t> overruns_{0};
};

}  // namespace spinloom::live
