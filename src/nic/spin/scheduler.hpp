// Scheduler - which handler execution runs on which handler processing unit (HPU).
//
// Contract: ready() says that an execution wants an HPU. next() gives the oldest execution for which an HPU is idle,
//   and that HPU, which is busy until ended(). Executions run in the order in which they became ready, each on the
//   idle HPU with the lowest index that its context's mask allows. An execution that waits for an HPU of its mask
//   lets others pass. Blocked round-robin (SC'19 datatypes paper, section 3.2.1): executions of one virtual HPU run
//   one after the other. The virtual HPUs are scheduled, and each keeps its HPU while it has ready executions.
//   Fairness::by_cycles: not the oldest execution is next, but one of the context whose handlers have used the fewest
//   cycles, as charge() tells (FPsPIN, deliverable D4.7, section 4.4.3). A context that was without work gets no credit
//   for that time.
// Invariants: (1) an HPU is idle, or runs exactly one execution; (2) a virtual HPU is idle, or waits for an HPU, or
//   has exactly one.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/limits.hpp"
#include "nic/spin/context.hpp"
#include "nic/spin/fifo.hpp"
#include "nic/spin/ids.hpp"
#include "nic/spin/table.hpp"

namespace spinloom::spin {

// Physical HPUs without work.
class IdleHpus {
 public:
  explicit IdleHpus(uint32_t count);
  void add(uint32_t hpu);
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] bool any_of(const HpuMask& mask) const;
  // Takes the lowest idle HPU of the mask, or of all HPUs if `mask` is null. At least one must be idle.
  uint32_t take_lowest(const HpuMask* mask);

 private:
  std::array<uint64_t, limits::hpu_count_max / 64> words_{};
  uint32_t count_ = 0;
};

enum class Fairness : uint8_t { oldest, by_cycles };

class Scheduler {
 public:
  struct Start {
    HerId her;
    HpuId hpu;
  };
  // The place where an execution has run.
  struct Place {
    HpuId hpu;
    ContextId context;
    VhpuId vhpu;  // none: the execution was scheduled by itself
  };

  explicit Scheduler(uint32_t hpus, Fairness fairness = Fairness::oldest)
      : hpus_(hpus), is_fair_(fairness == Fairness::by_cycles), idle_(hpus) {}

  // Adds a context. Its executions may use the HPUs of `mask`, or all; if vhpus > 0, through `vhpus` virtual HPUs.
  void add(ContextId context, const std::optional<HpuMask>& mask, uint32_t vhpus);
  // Removes a context none of whose executions is ready or runs.
  void remove(ContextId context);

  // `vhpu` is one of the context's; none: the execution is scheduled by itself.
  void ready(HerId her, ContextId context, VhpuId vhpu);
  [[nodiscard]] std::optional<Start> next() {
    if (runnable_ == 0 || idle_.count() == 0) return std::nullopt;
    return start_next();
  }
  // The execution at this place has ended. Returns the next execution of the same virtual HPU, which has the HPU now;
  // if nothing, the HPU is idle.
  [[nodiscard]] std::optional<HerId> ended(const Place& place);

  // Notes that a handler of this context has used `cycles` cycles.
  void charge(ContextId context, uint64_t cycles) {
    if (is_fair_) contexts_.find(context)->cycles += cycles;
  }

  // True if an execution or a virtual HPU waits for an HPU. None need be idle.
  [[nodiscard]] bool has_work() const { return runnable_ > 0; }
  [[nodiscard]] uint32_t hpus_busy() const { return hpus_ - idle_.count(); }

  // Throws InternalError if an invariant is broken. For tests: looks at all virtual HPUs.
  void check_invariants() const;

 private:
  struct VirtualHpu {
    Fifo<HerId> ready;
    HpuId hpu;  // the HPU that it has, if any
    bool queued = false;  // the virtual HPU is a Runnable that waits
  };
  // A candidate for an HPU: an execution by itself, or a virtual HPU with ready executions.
  struct Runnable {
    HerId her;
    ContextId context;
    VhpuId vhpu;
    uint64_t sequence = 0;  // orders candidates by the time when they became ready
  };
  struct ContextState {
    std::optional<HpuMask> mask;
    std::vector<VirtualHpu> vhpus;
    Fifo<Runnable> runnable;  // used if the context has a queue of its own
    uint64_t cycles = 0;  // cycles that its handlers have used, or that the others had used when work came
  };

  void add_runnable(Fifo<Runnable>& queue, Runnable runnable);
  void add_runnable(ContextState& state, Runnable runnable);
  [[nodiscard]] Fifo<Runnable>* next_queue();
  [[nodiscard]] std::optional<Start> start_next();

  uint32_t hpus_;
  bool is_fair_;
  uint64_t served_cycles_ = 0;  // the cycles of the context that was served last
  IdleHpus idle_;
  Table<ContextId, ContextState> contexts_{"context", limits::context_count_max, "limits::context_count_max"};
  std::vector<ContextId> own_queue_contexts_;  // contexts with a queue of their own: those with a mask, or all if fair
  Fifo<Runnable> unmasked_;
  uint64_t next_sequence_ = 0;
  uint32_t runnable_ = 0;
};

}  // namespace spinloom::spin
