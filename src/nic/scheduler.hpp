// Scheduler - which handler execution runs on which handler processing unit (HPU).
//
// Contract: ready() says that an execution wants an HPU; next() gives the oldest one for which an HPU is idle, and that
//   HPU, which is busy until ended(). Executions run in the order in which they became ready, each on the idle HPU with
//   the lowest index that its context's mask allows; one that has to wait for an HPU of its mask lets others pass.
//   Blocked round-robin (SC'19 datatypes paper, section 3.2.1): executions of one virtual HPU run one after the other;
//   virtual HPUs are what is scheduled, and one keeps its HPU while it has ready executions.
// Invariants: (1) an HPU is idle, or runs exactly one execution; (2) a virtual HPU is idle, or waits for an HPU, or is
//   on exactly one.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/limits.hpp"
#include "nic/context.hpp"
#include "nic/fifo.hpp"
#include "nic/ids.hpp"
#include "nic/table.hpp"

namespace spinloom::nic {

// Physical HPUs without work.
class IdleHpus {
 public:
  explicit IdleHpus(uint32_t count);
  void add(uint32_t hpu);
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] bool any_of(const HpuMask& mask) const;
  // Of those in the mask, or of all where it is null; one must be idle.
  uint32_t take_lowest(const HpuMask* mask);

 private:
  std::array<uint64_t, limits::hpu_count_max / 64> words_{};
  uint32_t count_ = 0;
};

class Scheduler {
 public:
  struct Start {
    HerId her;
    HpuId hpu;
  };
  // Where an execution has run.
  struct Place {
    HpuId hpu;
    ContextId context;
    VhpuId vhpu;  // none: it was scheduled by itself
  };

  explicit Scheduler(uint32_t hpus) : hpus_(hpus), idle_(hpus) {}

  // What the executions of a context may use: the HPUs of a mask, or all; with vhpus > 0, so many virtual HPUs.
  void add(ContextId context, const std::optional<HpuMask>& mask, uint32_t vhpus);
  // Nothing of it is ready or runs.
  void remove(ContextId context);

  // `vhpu`: of the context; none: the execution is scheduled by itself.
  void ready(HerId her, ContextId context, VhpuId vhpu);
  [[nodiscard]] std::optional<Start> next() {
    if (runnable_ == 0 || idle_.count() == 0) return std::nullopt;
    return pick();
  }
  // The execution there has ended. What comes back is of the same virtual HPU and has the HPU now; nothing: the HPU is
  // idle.
  [[nodiscard]] std::optional<HerId> ended(const Place& place);

  // Whether an execution is ready. An HPU for it need not be idle.
  [[nodiscard]] bool has_work() const { return runnable_ > 0; }
  [[nodiscard]] uint32_t hpus_busy() const { return hpus_ - idle_.count(); }

 private:
  struct VirtualHpu {
    Fifo<HerId> ready;
    HpuId hpu;  // where it runs, if it does
    bool queued = false;  // among the runnable
  };
  // One thing that wants an HPU: an execution by itself, or a virtual HPU with ready ones.
  struct Runnable {
    HerId her;
    ContextId context;
    VhpuId vhpu;
    uint64_t sequence = 0;  // of its readiness
  };
  struct Member {
    std::optional<HpuMask> mask;
    std::vector<VirtualHpu> vhpus;
    Fifo<Runnable> runnable;  // where there is a mask
  };

  void add_runnable(Fifo<Runnable>& queue, Runnable one);
  [[nodiscard]] Fifo<Runnable>* oldest();
  [[nodiscard]] std::optional<Start> pick();

  uint32_t hpus_;
  IdleHpus idle_;
  Table<ContextId, Member> members_{"context", limits::context_count_max, "limits::context_count_max"};
  std::vector<ContextId> masked_;
  Fifo<Runnable> unmasked_;
  uint64_t next_sequence_ = 0;
  uint32_t runnable_ = 0;
};

}  // namespace spinloom::nic
