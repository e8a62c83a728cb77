// Host - the driver's services to the C functions of one rank: the NIC, waiting, the price of a call, the job.
//
// Contract: a driver makes one Host for each rank; the rank's Process works over it.
// Invariants: (1) wait() returns when something may have become readable for this rank, or at the deadline; (2) if
//   nothing can ever happen again, wait() need not return: the driver then ends the program and says why.
// Threads: the rank's. Time: that of the port.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "nic/hpu/elf.hpp"
#include "portals/interface/port.hpp"
#include "portals/rails/rail.hpp"

namespace spinloom::calls {

struct HandlerImage {
  // The number of the handler with this symbol; nothing if the image has none.
  std::function<std::optional<uint32_t>(const std::string& symbol)> entry;
  uint32_t index = 0;  // the number of the image, which contexts name
};

// `HandlerImage::entry` for `image`, which must live as long as the result.
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
  // The rank's NICs: port() is the first one. wait() returns for what any of them has.
  [[nodiscard]] virtual uint32_t rails() const { return 1; }
  [[nodiscard]] virtual portals::Port& rail_port(uint32_t /*rail*/) { return port(); }
  [[nodiscard]] virtual rails::RailFacts rail_facts(uint32_t /*rail*/) { return {}; }
  // For a call that looks without waiting: makes readable what has come so far. Other calls, and other processes, may
  // run meanwhile.
  virtual void poll() {}
  // Waits until what the program has sent needs the program's memory no more, or until waiting longer is useless.
  // False: a peer may still write to the program's memory, which must not be given back.
  [[nodiscard]] virtual bool drain() { return true; }
  // Called after the last PtlFini. True: this process cannot use the library again.
  [[nodiscard]] virtual bool close() { return false; }
  // Called around every call: one thread of a program is inside at a time, except for calls that wait.
  virtual void begin_call() {}
  virtual void end_call() {}
  // Makes every wait() of this rank return soon, in all threads.
  virtual void interrupt() {}
  // Spends the time of one communication call of the program's processor.
  virtual void spend_call_time() = 0;
  // The number of ranks in the job; rank r is node r.
  [[nodiscard]] virtual uint32_t size() const = 0;
  [[nodiscard]] virtual uint32_t user() const = 0;
  // True if the program of that rank has ended, as far as the driver knows. Apart from this, the NIC reports peers that
  // are gone by failed operations and counters.
  [[nodiscard]] virtual bool has_ended(uint32_t /*rank*/) const { return false; }
  // The most bytes of an atomic to any rank of the job.
  [[nodiscard]] virtual uint32_t atomic_bytes() const = 0;
  // The features that the driver has beyond the least that Portals 4 asks for: ptl_ni_limits_t.features.
  [[nodiscard]] virtual uint32_t features() const { return 0; }
  // Returns bits that another user cannot guess, as far as the driver has such bits.
  [[nodiscard]] virtual uint64_t random() = 0;
  [[nodiscard]] virtual Result<HandlerImage> image(std::string_view name) = 0;
};

}  // namespace spinloom::calls
