// Host - what the C calls of one rank need around them: the way to its NIC, waiting, the price of a call, its peers.
//
// Contract: a driver makes one Host for each rank and makes it the current one while the rank's program runs.
// Invariants: (1) wait() returns when something may have become readable for this rank, or at the deadline; (2) where
//   nothing can ever happen it need not return: the driver ends the program and says why.
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
  // A handler's number, by its symbol.
  std::function<std::optional<uint32_t>(const std::string& symbol)> entry;
  uint32_t index = 0;  // of the image, for contexts
};

// Of an image that outlives the answer.
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
  // A call looks and does not wait: what has come is readable then. Other calls, and other processes, may come in.
  virtual void poll() {}
  // What the program has sent does not need its memory any more; or waiting for that is in vain. False: a peer may
  // still write to the program's memory, and it must not be given back.
  [[nodiscard]] virtual bool drain() { return true; }
  // After the last PtlFini; whether the library is final then.
  [[nodiscard]] virtual bool close() { return false; }
  // Around every call: one thread of a program at a time, but for calls that wait.
  virtual void begin_call() {}
  virtual void end_call() {}
  // Every wait() of this rank, in any thread, returns soon.
  virtual void interrupt() {}
  // The program's processor spends the time of one communication call.
  virtual void call() = 0;
  // Ranks of the job; rank r is node r.
  [[nodiscard]] virtual uint32_t size() const = 0;
  [[nodiscard]] virtual uint32_t user() const = 0;
  // Of an atomic to any rank of the job, at most.
  [[nodiscard]] virtual uint32_t atomic_bytes() const = 0;
  // What the driver gives beyond the least that Portals 4 asks for: ptl_ni_limits_t.features.
  [[nodiscard]] virtual uint32_t features() const { return 0; }
  [[nodiscard]] virtual Result<HandlerImage> image(std::string_view name) = 0;
};

}  // namespace spinloom::ptl
