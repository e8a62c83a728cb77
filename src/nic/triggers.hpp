// Triggers - counters, and the commands that wait for them.
//
// Contract: a counter keeps its waiting commands in a heap by threshold. When its value grows, those it reaches move to
//   one queue of fired commands, in the order in which they were given; the NIC runs one at a time (take_fired(), then
//   ran()). So a chain of commands that count each other up for ever never makes a call run for ever.
//   A counter that resets itself (Di Girolamo et al., "Exploiting Offload Enabled Network Interfaces", section II.C.5)
//   counts its rounds, and a persistent command those in which it has run: so one that runs late misses none, and one
//   that has run rests until the next.
// Invariants: (1) a command waits, or rests, or is fired, at one place; (2) cancelling or freeing a counter forgets what
//   waits for it, and what is fired and persistent runs once more at most.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "nic/action.hpp"
#include "nic/command.hpp"
#include "nic/fifo.hpp"
#include "nic/slab.hpp"
#include "nic/table.hpp"

namespace spinloom::nic {

class Triggers {
 public:
  // `commands_max`: that wait for one counter (NicLimits::triggered_commands).
  explicit Triggers(uint32_t commands_max) : commands_max_(commands_max) {}

  [[nodiscard]] Status alloc(const CounterAlloc& given);
  [[nodiscard]] Status free(CounterId id);
  [[nodiscard]] Status cancel(CounterId id);
  [[nodiscard]] Status auto_reset(const CounterAutoReset& given);

  [[nodiscard]] bool exists(CounterId id) const { return counters_.find(id) != nullptr; }
  // An error that names the counter, where it does not exist.
  [[nodiscard]] Status check(CounterId id) const;
  [[nodiscard]] CounterValue value(CounterId id) const { return counters_.find(id)->value; }
  // Counters are optional everywhere, and may have been freed while work that counts was under way.
  void count(CounterId id, CounterValue by, Actions& out);
  void set(CounterId id, CounterValue to, Actions& out);

  // Nothing waits for the counter and nothing resets it: counting is adding, and the host needs the new value only.
  [[nodiscard]] bool only_adds(CounterId id) const {
    const Counter* const counter = counters_.find(id);
    return counter != nullptr && counter->heap.empty() && counter->resets_at == 0;
  }
  [[nodiscard]] CounterValue add(CounterId id, uint64_t by) {
    Counter& counter = *counters_.find(id);
    counter.value.success += by;
    return counter.value;
  }

  // Whether the command can wait for its counter, as far as that goes; then wait() takes it.
  [[nodiscard]] Status may_wait(const Command& command) const;
  void wait(const Command& command);

  [[nodiscard]] bool has_fired() const { return !fired_.empty(); }
  // The oldest fired command; it stays here until ran(), which ends it or lets it wait again.
  [[nodiscard]] uint32_t take_fired() { return fired_.pop(); }
  [[nodiscard]] const Command& command(uint32_t slot) const { return commands_[slot]; }
  void ran(uint32_t slot);

  // Commands that wait, rest, or are fired.
  [[nodiscard]] uint32_t size() const { return commands_.size(); }
  // visit(counter, value, threshold) for each counter that commands wait for; for reports.
  template <class Visit>
  void for_each_waited(Visit visit) const {
    counters_.for_each([&](CounterId id, const Counter& counter) {
      if (!counter.heap.empty()) visit(id, counter.value, counter.heap.front().threshold);
    });
  }

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
    uint32_t operations_waiting = 0;  // of the heap, and those that rest
    uint32_t coming_back = 0;  // persistent commands that are fired
    uint64_t resets_at = 0;  // 0: never
    uint64_t round = 0;  // resets so far
    uint64_t begun = 0;  // what has waited since before this sequence is forgotten
    std::vector<uint32_t> resting;  // commands that have run in this round and run again in the next
  };

  void arm(uint32_t slot);
  void release(Counter& counter);
  void changed(Counter& counter);
  void forget_all(Counter& counter);
  void leaves_wait(Counter& counter, uint32_t slot) const;

  uint32_t commands_max_;
  Table<CounterId, Counter> counters_{"counter", limits::counter_count_max, "limits::counter_count_max"};
  Slab<Command> commands_;
  Fifo<uint32_t> fired_;
  uint64_t next_sequence_ = 0;
};

}  // namespace spinloom::nic
