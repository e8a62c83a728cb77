// Executions - handler executions: each is a HER and, if its handler has a packet of its own, the packet's slot.
//
// Contract: open() makes a waiting execution; ready(), start() and end() move it forward; drop() ends an execution
//   that will never start. A packet slot is free when its handler has ended and its DMAs are done: then
//   free_if_done() gives back the execution and its bytes of the packet buffer.
// Invariants: (1) stages only go forward: buffering, ready, running, ended; (2) waiting() counts the executions that
//   are buffering or ready; (3) the id of its HER is the execution's index until it is free.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <utility>

#include "nic/spin/her.hpp"
#include "nic/spin/owner.hpp"
#include "nic/spin/packet_buffer.hpp"
#include "nic/spin/slab.hpp"

namespace spinloom::spin {

enum class Stage : uint8_t { buffering, ready, running, ended };

struct Execution {
  Her her;
  Owner owner;
  uint64_t packet_offset = 0;
  uint64_t buffer_bytes = 0;  // bytes of the packet buffer that the execution holds
  uint32_t dmas_open = 0;
  uint32_t next = no_slot;  // next in a list of the owner
  uint32_t outbound = no_slot;  // the slot of the outbound buffer that the handler fills
  Stage stage = Stage::buffering;
};

class Executions {
 public:
  explicit Executions(PacketBuffer& buffer) : buffer_(buffer) {}

  // `buffer_bytes` of the packet buffer have already been taken.
  [[nodiscard]] Execution& open(Owner owner, HandlerKind kind, ContextId context, uint64_t buffer_bytes = 0) {
    const auto [index, execution] = slots_.make();
    execution.owner = owner;
    execution.buffer_bytes = buffer_bytes;
    execution.her.id = HerId{index};
    execution.her.kind = kind;
    execution.her.context = context;
    ++waiting_;
    return execution;
  }

  [[nodiscard]] Execution& operator[](HerId id) { return slots_[id.value]; }
  [[nodiscard]] const Execution& operator[](HerId id) const { return slots_[id.value]; }

  void ready(Execution& execution) {
    SPL_ASSERT(execution.stage < Stage::running, "HER ", execution.her.id, " is past that");
    execution.stage = Stage::ready;
  }
  void start(Execution& execution, HpuId hpu) {
    SPL_ASSERT(execution.stage == Stage::ready && waiting_ > 0, "HER ", execution.her.id, " on HPU ", hpu);
    execution.stage = Stage::running;
    execution.her.hpu = hpu;
    --waiting_;
  }
  void end(Execution& execution) {
    SPL_ASSERT(execution.stage == Stage::running, "HER ", execution.her.id, " ends but does not run");
    execution.stage = Stage::ended;
  }
  void drop(Execution& execution) {
    SPL_ASSERT(execution.stage < Stage::running && waiting_ > 0, "HER ", execution.her.id, " has started");
    execution.stage = Stage::ended;
    --waiting_;
  }
  // The caller takes over the execution's bytes of the packet buffer.
  [[nodiscard]] static uint64_t take_bytes(Execution& execution) { return std::exchange(execution.buffer_bytes, 0); }

  static void dma_issued(Execution& execution) { ++execution.dmas_open; }
  static void dma_done(Execution& execution) {
    SPL_ASSERT(execution.dmas_open > 0, "HER ", execution.her.id);
    --execution.dmas_open;
  }
  // Returns true if the execution was done, and is freed now.
  bool free_if_done(const Execution& execution) {
    if (execution.stage != Stage::ended || execution.dmas_open > 0) return false;
    buffer_.release(execution.buffer_bytes);
    slots_.give_back(execution.her.id.value);
    return true;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    slots_.for_each([&](uint32_t, const Execution& execution) { visit(execution); });
  }

  // Throws InternalError if an invariant is broken. For tests: looks at all executions. `hpus_busy` is what the
  // scheduler says.
  void check_invariants(uint32_t hpus_busy) const;

  [[nodiscard]] uint32_t waiting() const { return waiting_; }
  [[nodiscard]] uint32_t size() const { return slots_.size(); }

 private:
  PacketBuffer& buffer_;
  Slab<Execution> slots_;
  uint32_t waiting_ = 0;
};

}  // namespace spinloom::spin
