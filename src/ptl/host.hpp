// Host - what the C calls of one rank need from their driver: the rank's NIC, waiting, the price of a call, the job.
//
// Contract: a driver makes one Host for each rank, and it is the current one while the rank's program runs.
// Invariants: (1) wait() returns when something may have become readable for this rank, or at the deadline; (2) where
//   nothing can ever happen again, wait() need not return: the driver ends the program and says why.
// Threads: the rank's. Time: that of the port.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "hpu/elf.hpp"
#include "portals/port.hpp"

namespace spinloom::ptl {

struct HandlerImage {
  // The number of the handler with this symbol; nothing where the image has none.
  std::function<std::optional<uint32_t>(const std::string& symbol)> entry;
  uint32_t index = 0;  // the number of the image, which contexts name
};

// `HandlerImage::entry` for an image that lives at least as long as what this returns.
[[nodiscard]] inline auto entries_of(const hpu::Image& image) {
  return [&image](const std::string& symbol) -> std::optional<uint32_t> {
    const auto found = image.symbols().find(symbol);
    return found == image.symbols().end() ? std::nullopt : std::optional<uint32_t>(found->second);
  };
}

class Host {
 public:
  virtual ~Host() = default;
  [[nodiscard]] virtual portals::Port& port() = 0;
  virtual void wait(Time deadline) = 0;
  // For a call that looks and does not wait: makes readable what has come so far. Other calls, and other processes,
  // may run meanwhile.
  virtual void poll() {}
  // Waits until what the program has sent does not need the program's memory any more, or until waiting longer is in
  // vain. False: a peer may still write to the program's memory, which must then not be given back.
  [[nodiscard]] virtual bool drain() { return true; }
  // Called after the last PtlFini. True: the library cannot be used again in this process.
  [[nodiscard]] virtual bool close() { return false; }
  // Around every call: one thread of a program is inside at a time, except for calls that wait.
  virtual void begin_call() {}
  virtual void end_call() {}
  // Makes every wait() of this rank return soon, in all threads.
  virtual void interrupt() {}
  // The program's processor spends the time of one communication call.
  virtual void call() = 0;
  // How many ranks the job has; rank r is node r.
  [[nodiscard]] virtual uint32_t size() const = 0;
  [[nodiscard]] virtual uint32_t user() const = 0;
  // The most bytes of an atomic to any rank of the job.
  [[nodiscard]] virtual uint32_t atomic_bytes() const = 0;
  // What the driver gives beyond the least that Portals 4 asks for: ptl_ni_limits_t.features.
  [[nodiscard]] virtual uint32_t features() const { return 0; }
  [[nodiscard]] virtual Result<HandlerImage> image(std::string_view name) = 0;
};

}  // namespace spinloom::ptl
