// HpuPool - threads that stand for the HPUs (handler processors) of a live NIC.
//
// Contract: start() hands a handler to the thread of its HPU, which runs it through the runner and tells the owner of
//   its calls and of its end. The owner answers a call by resume(), at once (inside of HandlerOwner::call) or later
//   from any thread; the handler's thread waits until then. shut_down() ends handlers that wait, that make a call, and
//   sandboxed handlers that run; after that the pool calls the owner no more.
// Invariants: (1) the handlers of one HPU run one after the other; a start may come while the owner is still being told
//   of the end of the handler before; (2) a thread without work looks for work for options.spin and then sleeps; (3)
//   the threads take no signals; (4) what the runner needs outlives every thread, even one whose native handler never
//   returns.
// Threads: start() and resume() under the owner's lock; create() and shut_down() without it. Time: real.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "nic/spin/handler_runner.hpp"

namespace spinloom::live {

// The engine's side, which the handlers' threads call.
class HandlerOwner {
 public:
  virtual ~HandlerOwner() = default;
  struct CallResult {
    bool goes_on = true;  // false: the handler must stop, and no Resume comes
    bool budget_used = false;  // the handler has left so much waiting that its budget counts as used up
  };
  // Takes the owner's lock, gives the call to the engine and performs the resulting actions.
  [[nodiscard]] virtual CallResult call(spin::HerId her, const spin::HandlerCall& call) = 0;
  virtual void ended(spin::HerId her, const spin::HandlerOutcome& outcome) = 0;
};

struct HpuPoolOptions {
  uint32_t hpus = 4;
  std::chrono::nanoseconds spin = spin_by_default();

  // Some microseconds on a machine with more than 4 processors, otherwise none.
  static constexpr std::chrono::nanoseconds spin_if_many_processors{5'000};
  static std::chrono::nanoseconds spin_by_default() {
    return std::thread::hardware_concurrency() > 4 ? spin_if_many_processors : std::chrono::nanoseconds{0};
  }
};

class HpuPool {
 public:
  static Result<std::unique_ptr<HpuPool>> create(const HpuPoolOptions& options,
                                                 std::shared_ptr<spin::HandlerRunner> runner, HandlerOwner& owner);
  // Does what shut_down() does; an Error goes to the log.
  ~HpuPool();
  HpuPool(const HpuPool&) = delete;
  HpuPool& operator=(const HpuPool&) = delete;

  // Starts the handler on frame.her.hpu. The context is copied; the memory that the frame names must stay until the
  // owner has been told of the end.
  void start(const spin::HandlerFrame& frame);
  // Answers the call for which the handler waits.
  void resume(spin::HerId her, uint32_t value);

  // Ends all threads. An Error names the HPUs whose handlers did not come back within a second. Their threads go on, so
  // the memory that these handlers were given must never be freed.
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
