// HpuPool - threads that stand for the HPUs of a live NIC.
//
// Contract: start() hands a handler to the thread of its HPU, which runs it through the runner; its calls and its end
//   go to the owner. Whoever performs the Resume of a call tells resume(), at once (inside of HandlerOwner::call) or
//   later from any thread; the handler's thread waits meanwhile. shut_down() ends handlers that wait or make a call,
//   and sandboxed ones that run; nothing is told to the owner any more.
// Invariants: (1) handlers of one HPU run one after the other, and a start may come while the owner still hears of the
//   end before it; (2) a thread without work looks out for some for options.spin and then sleeps; (3) threads take no
//   signals; (4) what the runner needs outlives every thread, even one whose native handler never comes back.
// Threads: start() and resume() under the owner's lock; create() and shut_down() without it. Time: real.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "portals/handler_runner.hpp"

namespace spinloom::live {

// The engine's side of handlers; called on their threads.
class HandlerOwner {
 public:
  virtual ~HandlerOwner() = default;
  struct Called {
    bool goes_on = true;       // else the handler must stop, and no Resume comes
    bool budget_used = false;  // it has left so much waiting that its budget is used up
  };
  // Takes the owner's lock, gives the call to the engine and performs what comes back.
  [[nodiscard]] virtual Called call(nic::HerId her, const nic::HandlerCall& call) = 0;
  virtual void ended(nic::HerId her, const portals::HandlerOutcome& outcome) = 0;
};

struct HpuPoolOptions {
  uint32_t hpus = 4;
  std::chrono::nanoseconds spin = spin_by_default();

  // Some microseconds where there are processors to spare, else none.
  static constexpr std::chrono::nanoseconds enough{5'000};
  static std::chrono::nanoseconds spin_by_default() {
    return std::thread::hardware_concurrency() > 4 ? enough : std::chrono::nanoseconds{0};
  }
};

class HpuPool {
 public:
  static Result<std::unique_ptr<HpuPool>> create(const HpuPoolOptions& options,
                                                 std::shared_ptr<portals::HandlerRunner> runner, HandlerOwner& owner);
  // As shut_down(); what that would have said goes to the log.
  ~HpuPool();
  HpuPool(const HpuPool&) = delete;
  HpuPool& operator=(const HpuPool&) = delete;

  // On her.hpu. The context is copied; the frame's memory must stay until the owner heard of the end.
  void start(const portals::HandlerFrame& frame);
  // The answer to the call that the handler waits for.
  void resume(nic::HerId her, uint32_t value);

  // An Error names the handlers that did not come back within a second. Their threads go on: the memory that they were
  // given must never be freed.
  [[nodiscard]] Status shut_down();

 private:
  struct Slot;
  struct Shared;
  explicit HpuPool(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
  std::vector<uint32_t> slot_of_her_;
};

}  // namespace spinloom::live
