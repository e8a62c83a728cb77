// The gate under all orders of its steps, with a store buffer for each process: what it stores, others see later.
#include "live/node/direct_gate.hpp"

#include <gtest/gtest.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spinloom::live {
namespace {

// Runs processes, one step at a time, in every order. A step ends where a process touches a shared word; beside that,
// a store that a process has made may become visible to the others. The orders are tried by depth-first search: each
// run repeats the choices of the last one up to its last choice that has another possibility.
class Explorer {
 public:
  using Process = std::function<void(Explorer&)>;

  static Explorer* current;

  // Returns the choices of the first order that fails, or nothing after all orders.
  std::string explore(const std::function<std::vector<Process>(Explorer&)>& make) {
    current = this;
    choices_.clear();
    do {
      run_once(make(*this));
      ++runs;
      if (!failure.empty()) return failure;
    } while (next());
    return "";
  }
  void fail(std::string what) {
    if (failure.empty()) failure = std::move(what);
  }

  // The next three are called by the words of the process that runs.
  uint64_t load(const uint64_t& word) {
    pause();
    const auto& buffer = buffers_[running_];
    for (auto one = buffer.rbegin(); one != buffer.rend(); ++one) {
      if (one->first == &word) return one->second;
    }
    return word;
  }
  void store(uint64_t& word, uint64_t value) {
    pause();
    buffers_[running_].emplace_back(&word, value);
  }
  void fence() {
    pause();
    while (!buffers_[running_].empty()) flush(running_);
  }
  // Gives the others a turn. A process that waits for a word calls it and looks again; `false`: it has looked so often
  // that this order shows nothing new.
  bool look_again(int& looks) { return ++looks < 4; }

  uint64_t runs = 0;
  std::string failure;

 private:
  struct Fiber {
    ucontext_t context{};
    Process body;
    bool ended = false;
  };
  static constexpr size_t stack_bytes = 64 << 10;

  static void enter_fiber() {
    Explorer& explorer = *current;
    Fiber& fiber = *explorer.fibers_[explorer.running_];
    fiber.body(explorer);
    fiber.ended = true;
    swapcontext(&fiber.context, &explorer.scheduler_);
  }
  void pause() {
    Fiber& fiber = *fibers_[running_];
    swapcontext(&fiber.context, &scheduler_);
  }
  void flush(size_t process) {
    auto [word, value] = buffers_[process].front();
    buffers_[process].pop_front();
    *word = value;
  }

  void run_once(std::vector<Process> bodies) {
    fibers_.clear();
    buffers_.assign(bodies.size(), {});
    for (Process& body : bodies) {
      auto& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
      fiber.body = std::move(body);
      getcontext(&fiber.context);
      if (stacks_.size() < fibers_.size()) stacks_.push_back(std::make_unique<std::byte[]>(stack_bytes));
      fiber.context.uc_stack.ss_sp = stacks_[fibers_.size() - 1].get();
      fiber.context.uc_stack.ss_size = stack_bytes;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, enter_fiber, 0);
    }
    depth_ = 0;
    for (;;) {
      std::vector<std::pair<size_t, bool>> possible;  // a process, and whether its oldest store becomes visible
      for (size_t i = 0; i < fibers_.size(); ++i) {
        if (!fibers_[i]->ended) possible.emplace_back(i, false);
        if (!buffers_[i].empty()) possible.emplace_back(i, true);
      }
      if (possible.empty() || !failure.empty()) return;
      const auto [process, flushes] = possible[choose(possible.size())];
      if (flushes) {
        flush(process);
        continue;
      }
      running_ = process;
      swapcontext(&scheduler_, &fibers_[process]->context);
    }
  }
  size_t choose(size_t count) {
    if (depth_ == choices_.size()) choices_.emplace_back(0, count);
    return choices_[depth_++].first;
  }
  bool next() {
    while (!choices_.empty() && choices_.back().first + 1 == choices_.back().second) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().first;
    return true;
  }

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::unique_ptr<std::byte[]>> stacks_;
  std::vector<std::deque<std::pair<uint64_t*, uint64_t>>> buffers_;
  std::vector<std::pair<size_t, size_t>> choices_;  // the choice taken, and how many there were
  size_t depth_ = 0;
  size_t running_ = 0;
  ucontext_t scheduler_{};
};
Explorer* Explorer::current = nullptr;

enum class Fence : uint8_t { works, does_nothing };

template <Fence how>
class ModelWord {
 public:
  [[nodiscard]] uint64_t load() const { return Explorer::current->load(value_); }
  void store(uint64_t value) { Explorer::current->store(value_, value); }
  static void fence() {
    if constexpr (how == Fence::works) Explorer::current->fence();
  }

 private:
  uint64_t value_ = 0;
};

template <class Word>
struct Shared {
  Word gate;
  std::array<Word, 2> slots;
  std::array<Word, 2> bytes;  // peers write here inside of the gate
  bool is_closed = false;  // the owner has shut the gate, and nobody was inside
};

// A peer tries to enter once, and writes inside.
template <class Word>
void visit(Explorer& explorer, Shared<Word>& shared, size_t peer) {
  using Gate = DirectGate<Word>;
  if (!Gate::enter(shared.gate, shared.slots[peer], 1)) return;
  if (shared.is_closed) explorer.fail("a peer has come in while the gate was shut");
  shared.bytes[peer].store(7);
  if (shared.is_closed) explorer.fail("the gate was shut while a peer was inside");
  Gate::leave(shared.slots[peer]);
}

// The owner shuts the gate, waits, looks at what peers have written, and opens the gate again.
template <class Word>
void own(Explorer& explorer, Shared<Word>& shared, size_t peers) {
  using Gate = DirectGate<Word>;
  Gate::shut(shared.gate);
  for (size_t peer = 0; peer < peers; ++peer) {
    for (int looks = 0; Gate::is_inside(shared.slots[peer], 1);) {
      if (!explorer.look_again(looks)) return;
    }
  }
  shared.is_closed = true;
  std::array<uint64_t, 2> before{};
  for (size_t peer = 0; peer < peers; ++peer) before[peer] = shared.bytes[peer].load();
  for (size_t peer = 0; peer < peers; ++peer) {
    if (shared.bytes[peer].load() != before[peer]) explorer.fail("a peer has written while the gate was shut");
  }
  shared.is_closed = false;
  Gate::open(shared.gate);
}

template <class Word>
std::string tried(Explorer& explorer, size_t peers) {
  auto shared = std::make_shared<Shared<Word>>();
  return explorer.explore([&](Explorer&) {
    *shared = {};
    std::vector<Explorer::Process> processes;
    processes.emplace_back([shared, peers](Explorer& at) {
      DirectGate<Word>::open(shared->gate);
      own(at, *shared, peers);
    });
    for (size_t peer = 0; peer < peers; ++peer)
      processes.emplace_back([shared, peer](Explorer& at) { visit(at, *shared, peer); });
    return processes;
  });
}

TEST(DirectGate, NobodyIsInsideOfAShutGateInAnyOrder) {
  Explorer explorer;
  EXPECT_EQ(tried<ModelWord<Fence::works>>(explorer, 1), "");
  EXPECT_GT(explorer.runs, 1000u);
}

TEST(DirectGate, WithoutItsFencesAPeerIsInsideOfAShutGate) {
  Explorer explorer;
  EXPECT_NE(tried<ModelWord<Fence::does_nothing>>(explorer, 1), "") << explorer.runs << " orders";
}

TEST(DirectGate, ANumberIsThatOfItsGateOnly) {
  SharedWord gate;
  SharedWord slot;
  using Gate = DirectGate<SharedWord>;
  EXPECT_FALSE(Gate::enter(gate, slot, 3));
  EXPECT_FALSE(Gate::is_inside(slot, 3));
  Gate::open(gate);
  EXPECT_TRUE(Gate::enter(gate, slot, 3));
  EXPECT_TRUE(Gate::is_inside(slot, 3));
  EXPECT_FALSE(Gate::is_inside(slot, 2));
  Gate::leave(slot);
  EXPECT_FALSE(Gate::is_inside(slot, 3));
}

}  // namespace
}  // namespace spinloom::live
