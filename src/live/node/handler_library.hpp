// HandlerLibrary - runs native handlers and sandboxed handlers.
//
// Contract: load() takes FILE.so (native) or FILE.elf (sandbox) and returns the image number to put into a context.
//   entry() returns what a context names one of the image's handlers by: its number in the native runner, or its
//   address in the sandbox's image. As a runner, the library passes each handler to the native runner or to the
//   sandbox, as its image number says.
// Invariants: (1) loading a path again returns the same image; (2) images stay as long as the library.
// Threads: run() on any number of threads at once; load() and entry() meanwhile. Time: none of its own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "live/node/native_runner.hpp"
#include "nic/spin/image_runner.hpp"

namespace spinloom::live {

class HandlerLibrary final : public spin::HandlerRunner {
 public:
  static Result<std::shared_ptr<HandlerLibrary>> create();

  [[nodiscard]] Result<uint32_t> load(const std::string& path);
  [[nodiscard]] Result<uint32_t> entry(uint32_t image, const std::string& symbol);
  [[nodiscard]] static bool is_native(uint32_t image) { return image >= first_native; }
  // The number of runs of native handlers that took longer than their budget.
  [[nodiscard]] uint64_t overruns() const { return native_.overruns(); }

  spin::HandlerOutcome run(const spin::HandlerFrame& frame, spin::HandlerCalls& calls) override;

 private:
  static constexpr uint32_t first_native = 1u << 31;

  HandlerLibrary() = default;
  [[nodiscard]] Result<uint32_t> load_image(const std::string& path);

  NativeRunner native_{first_native};
  std::unique_ptr<spin::ImageHandlers> sandbox_;
  std::mutex loading_;
  std::map<std::string, uint32_t> loaded_;
};

}  // namespace spinloom::live
