// HandlerRunner - executes one handler to its end, for drivers without a notion of time.
//
// Contract: run() executes the handler that the frame names; each call that the handler makes to its NIC goes
//   through `calls`, which answers at once or says that the handler must stop (end it as a fault).
// Invariants: (1) a runner touches nothing but the frame's memory; (2) what a handler does wrong is an
//   outcome, never an error of the runner.
// Threads: one owner, unless a runner says that it takes several. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "nic/action.hpp"
#include "nic/context.hpp"
#include "nic/handler_call.hpp"
#include "nic/nic.hpp"

namespace spinloom::portals {

// Everything one handler may see.
struct HandlerFrame {
  nic::Her her;
  const nic::Context* context = nullptr;
  std::span<const uint8_t> packet;
  std::span<const uint8_t> constants;
  std::span<uint8_t> state;
  uint32_t hpu_count = 1;
};
// What the handler that the engine wants to run may see of the NIC's memory.
[[nodiscard]] HandlerFrame frame_of(const nic::Her& her, const nic::Nic& engine, std::span<uint8_t> nic_memory);

// The calls of one handler at a time.
class HandlerCalls {
 public:
  virtual ~HandlerCalls() = default;
  // The call's result; none: the handler must stop.
  virtual std::optional<uint32_t> call(const nic::HandlerCall& call) = 0;
  // Whether nobody waits for the handler any more. Runners that can stop a handler ask from time to time, and then end
  // it as a fault.
  [[nodiscard]] virtual bool given_up() const { return false; }
  // What it left waiting has used up its budget; a runner that has budgets ends it. Asked after each call.
  [[nodiscard]] virtual bool budget_used() const { return false; }
};

struct HandlerOutcome {
  nic::HandlerEnd end = nic::HandlerEnd::returned;
  uint32_t code = 0;
  uint64_t cycles = 0;  // 0 of runners that do not count them
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
  // As PtlHandlerDMAToHostNB of spinloom/handler.h; the result is the transfer's handle.
  uint32_t dma_to_host(const uint8_t* local, uint64_t offset, uint64_t length, uint32_t options);
  // As PtlHandlerDMAFromHostNB, into the packet of a process-put.
  uint32_t dma_into_packet(uint64_t offset, uint64_t at, uint64_t length);
  uint32_t count(uint64_t success, uint64_t failure);
  uint32_t call(const nic::HandlerCall& given);
  // A call was refused for good: whatever the handler returns now, it ends as a fault.
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
  // The entry number to put into a context.
  uint32_t add(Function function);
  HandlerOutcome run(const HandlerFrame& frame, HandlerCalls& calls) override;

 private:
  std::vector<Function> functions_;
};

}  // namespace spinloom::portals
