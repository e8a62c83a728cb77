// HandlerRunner - executes one handler to its end, for drivers without a notion of time.
//
// Contract: run() executes the handler that the frame names. Each call of the handler to its NIC goes through
//   `calls`, which answers at once or says that the handler must stop (the runner then ends it as a fault).
// Invariants: (1) a runner accesses only the frame's memory, except for handlers that it trusts (native ones); (2) an
//   error of a handler is an outcome, never an error of the runner.
// Threads: one owner, unless a runner says that it takes several. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "nic/spin/context.hpp"
#include "nic/spin/handler_call.hpp"
#include "nic/spin/her.hpp"

namespace spinloom::spin {

// Everything that one handler may access.
struct HandlerFrame {
  Her her;
  const Context* context = nullptr;
  std::span<const uint8_t> packet;
  std::span<const uint8_t> constants;
  std::span<uint8_t> state;
  uint32_t hpu_count = 1;
};
// The frame for a handler of this context.
[[nodiscard]] HandlerFrame frame_of(const Her& her, const Context& context, std::span<uint8_t> nic_memory,
                                    uint32_t hpu_count);

// Answers the calls of one handler.
class HandlerCalls {
 public:
  virtual ~HandlerCalls() = default;
  // Returns the call's result; none: the handler must stop.
  virtual std::optional<uint32_t> call(const HandlerCall& call) = 0;
  // True if nobody waits for the handler any more. Runners that can stop a handler ask this from time to time, and then
  // end the handler as a fault.
  [[nodiscard]] virtual bool given_up() const { return false; }
  // True if the handler's pending work has used up its budget. A runner with budgets asks after each call, and then
  // ends the handler.
  [[nodiscard]] virtual bool budget_used() const { return false; }
};

struct HandlerOutcome {
  HandlerEnd end = HandlerEnd::returned;
  uint32_t code = 0;
  uint64_t cycles = 0;  // 0 if the runner does not count them, or the handler did not return
};

class HandlerRunner {
 public:
  virtual ~HandlerRunner() = default;
  virtual HandlerOutcome run(const HandlerFrame& frame, HandlerCalls& calls) = 0;
};

// A running native handler's view of its NIC.
class NativeHandler {
 public:
  NativeHandler(const HandlerFrame& frame, HandlerCalls& calls) : frame_(frame), calls_(calls) {}

  [[nodiscard]] const HandlerFrame& frame() const { return frame_; }
  // Does what PtlHandlerDMAToHostNB of spinloom/handler.h does; returns the transfer's handle.
  uint32_t dma_to_host(const uint8_t* local, uint64_t offset, uint64_t length, uint32_t options);
  // Does what PtlHandlerDMAFromHostNB does, into the packet of a process-put.
  uint32_t dma_into_packet(uint64_t offset, uint64_t at, uint64_t length);
  uint32_t count(uint64_t success, uint64_t failure);
  uint32_t call(const HandlerCall& request);
  // True if a call was refused for good. The handler then ends as a fault, whatever it returns.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  const HandlerFrame& frame_;
  HandlerCalls& calls_;
  bool stopped_ = false;
};

// Handlers written in C++: trusted, for tests. All of them share image 0; the entry names one.
class NativeHandlers final : public HandlerRunner {
 public:
  using Function = std::function<HandlerOutcome(NativeHandler&)>;
  // Returns the entry number to put into a context.
  uint32_t add(Function function);
  HandlerOutcome run(const HandlerFrame& frame, HandlerCalls& calls) override;

 private:
  std::vector<Function> functions_;
};

}  // namespace spinloom::spin
