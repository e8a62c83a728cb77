// Triggers - counters, and the commands that wait for them.
//
// Contract: a counter keeps its waiting commands in a heap by threshold. When its value grows, the commands whose
//   threshold is reached move to one queue of fired commands, in the order in which they began to wait. The NIC runs
//   one at a time (take_fired(), then finish_run()), so a chain of commands that count each other up for ever never
//   makes one call run for ever. A counter that resets itself (Di Girolamo et al., "Exploiting Offload Enabled Network
//   Interfaces", section II.C.5) counts its rounds, and a persistent command the rounds in which it has run: a
//   command that runs late misses no round, and a command that has run rests until the next round.
// Invariants: (1) a command waits, or rests, or is fired, at one place; (2) cancelling or freeing a counter forgets
//   the commands that wait for it; a persistent command that is fired runs at most once more.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "nic/portals/action.hpp"
#include "nic/portals/command.hpp"
#include "nic/spin/fifo.hpp"
#include "nic/spin/slab.hpp"
#include "nic/spin/table.hpp"

namespace spinloom::nic {

class Triggers {
 public:
  // `commands_max` is the most commands that wait for one counter (NicLimits::triggered_commands).
  explicit Triggers(uint32_t commands_max) : commands_max_(commands_max) {}

  [[nodiscard]] Status alloc(const CounterAlloc& request);
  [[nodiscard]] Status free(CounterId id);
  [[nodiscard]] Status cancel(CounterId id);
  [[nodiscard]] Status auto_reset(const CounterAutoReset& request);

  [[nodiscard]] bool exists(CounterId id) const { return counters_.find(id) != nullptr; }
  // Returns an error that names the counter if it does not exist.
  [[nodiscard]] Status check(CounterId id) const;
  [[nodiscard]] CounterValue value(CounterId id) const { return counters_.find(id)->value; }
  // Does nothing without a counter, or if it has been freed meanwhile: counters are optional everywhere.
  void count(CounterId id, CounterValue by, Actions& out);
  void set(CounterId id, CounterValue to, Actions& out);

  // True if counting only adds: no command waits for the counter, and it does not reset itself.
  [[nodiscard]] bool only_adds(CounterId id) const {
    const Counter* const counter = counters_.find(id);
    return counter != nullptr && counter->heap.empty() && counter->resets_at == 0;
  }
  // True if counting only adds, and goes on to do so until wait() or auto_reset() names the counter: no persistent
  // command is going to wait for it again.
  [[nodiscard]] bool only_adds_for_long(CounterId id) const {
    const Counter* const counter = counters_.find(id);
    return counter != nullptr && counter->heap.empty() && counter->resets_at == 0 && counter->fired_persistent == 0;
  }
  [[nodiscard]] CounterValue add(CounterId id, uint64_t by) {
    Counter& counter = *counters_.find(id);
    counter.value.success += by;
    return counter.value;
  }

  // Returns an Error if the counter does not accept the command; otherwise wait() takes it.
  [[nodiscard]] Status may_wait(const Command& command) const;
  void wait(const Command& command);

  [[nodiscard]] bool has_fired() const { return !fired_.empty(); }
  // The oldest fired command; it stays here until finish_run(), which ends it or lets it wait again.
  [[nodiscard]] uint32_t take_fired() { return fired_.pop(); }
  [[nodiscard]] const Command& command(uint32_t slot) const { return commands_[slot]; }
  void finish_run(uint32_t slot);

  // The number of commands that wait, rest, or are fired.
  [[nodiscard]] uint32_t size() const { return commands_.size(); }
  // Calls visit(counter, value, threshold) for each counter that commands wait for; for reports.
  template <class Visit>
  void for_each_waited(Visit visit) const {
    counters_.for_each([&](CounterId id, const Counter& counter) {
      if (!counter.heap.empty()) visit(id, counter.value, counter.heap.front().threshold);
    });
  }

  // Throws InternalError if an invariant is broken. For tests: looks at all counters and commands.
  void check_invariants() const;

 private:
  struct Waiting {
    uint64_t threshold = 0;
    uint64_t sequence = 0;
    uint32_t slot = no_slot;
  };
  struct LaterFirst {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.threshold != b.threshold ? a.threshold > b.threshold : a.sequence > b.sequence;
    }
  };
  struct Counter {
    CounterValue value;
    std::vector<Waiting> heap;  // lowest (threshold, sequence) first
    uint32_t triggered_max = UINT32_MAX;
    bool only_successes = false;
    uint32_t operations_waiting = 0;  // operations in the heap and in `resting`
    uint32_t fired_persistent = 0;  // persistent commands that are fired
    uint64_t resets_at = 0;  // 0: never
    uint64_t round = 0;  // resets so far
    uint64_t valid_from = 0;  // commands with an older sequence are forgotten
    std::vector<uint32_t> resting;  // commands that have run in this round, and run again in the next
  };

  [[nodiscard]] static bool is_operation(const CommandBody& body);
  void arm(uint32_t slot);
  void fire_reached(Counter& counter);
  void fire_and_reset(Counter& counter);
  void forget_all(Counter& counter);
  // Returns the count with which thresholds are compared.
  [[nodiscard]] static uint64_t trigger_value(const Counter& counter);
  void count_leaving(Counter& counter, uint32_t slot) const;

  uint32_t commands_max_;
  Table<CounterId, Counter> counters_{"counter", limits::counter_count_max, "limits::counter_count_max"};
  Slab<Command> commands_;
  Fifo<uint32_t> fired_;
  uint64_t next_sequence_ = 0;
};

}  // namespace spinloom::nic
