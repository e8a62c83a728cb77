// ContextTable - the execution contexts of a NIC: their memory for handlers, their users, and their counts.
//
// Contract: create() checks a context against the NIC's limits and memory. A context that entries or messages use()
//   cannot be freed. tally() counts for the NIC and, if a context is named, also for that context (telemetry.hpp).
// Invariants: (1) memory windows of a context lie in allocated blocks of NIC memory, which cannot be freed meanwhile.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "nic/portals/command.hpp"
#include "nic/spin/context.hpp"
#include "nic/spin/iovec.hpp"
#include "nic/spin/nic_memory.hpp"
#include "nic/spin/slot_counts.hpp"
#include "nic/spin/table.hpp"
#include "nic/spin/telemetry.hpp"

namespace spinloom::nic {

class ContextTable {
 public:
  explicit ContextTable(uint64_t memory_bytes) : memory_(memory_bytes) {}

  // `hpus` is the number of HPUs of the NIC, `payload_bytes` the size of its packets.
  [[nodiscard]] Status create(const ContextCreate& request, uint32_t hpus, uint64_t payload_bytes);
  [[nodiscard]] Status free(ContextId id);
  [[nodiscard]] Status activate(ContextId id);
  [[nodiscard]] uint32_t size() const { return contexts_.size(); }

  // Null if there is no such context.
  [[nodiscard]] const Context* find(ContextId id) const {
    const State* const state = contexts_.find(id);
    return state == nullptr ? nullptr : &state->context;
  }
  [[nodiscard]] Result<const Context*> get(ContextId id) const {
    SPL_ASSIGN(const State* state, contexts_.get(id));
    return &state->context;
  }
  [[nodiscard]] bool any() const { return contexts_.size() > 0; }
  // The handler host memory of a context, where it is a list.
  [[nodiscard]] IovecView host_list(ContextId id) const {
    const State& state = *contexts_.find(id);
    return {state.context.handler_host_iovec, state.iovec_ends};
  }

  // An entry or a message begins to refer to the context, or ends to. Ids without a context are ignored.
  void use_by_entry(ContextId id) { change(id, &State::entries, true); }
  void leave_entry(ContextId id) { change(id, &State::entries, false); }
  void use_by_message(ContextId id) { change(id, &State::messages, true); }
  void leave_message(ContextId id) { change(id, &State::messages, false); }

  void tally(ContextId id, Telemetry which, uint64_t by = 1) {
    const auto index = static_cast<size_t>(which);
    counts_[index] += by;
    if (!id.exists()) return;
    if (State* state = contexts_.find(id)) state->counts[index] += by;
  }
  void tally(Telemetry which, uint64_t by = 1) { counts_[static_cast<size_t>(which)] += by; }
  [[nodiscard]] Result<uint64_t> read(const TelemetryRead& request) const;

  [[nodiscard]] NicMemory& memory() { return memory_; }
  [[nodiscard]] const NicMemory& memory() const { return memory_; }
  [[nodiscard]] Status free_memory(uint64_t offset);

  // Throws InternalError if an invariant is broken, for tests. `entries` and `messages` refer to each context so often.
  void check_invariants(const SlotCounts& entries, const SlotCounts& messages) const;

 private:
  struct State {
    Context context;
    uint32_t entries = 0;
    uint32_t messages = 0;
    std::vector<uint64_t> iovec_ends;  // the end of each element of handler_host_iovec
    TelemetryCounts counts{};
  };

  void change(ContextId id, uint32_t State::* users, bool more) {
    State* const state = contexts_.find(id);
    if (state == nullptr) return;
    SPL_ASSERT(more || state->*users > 0, "context ", id);
    more ? ++(state->*users) : --(state->*users);
  }
  [[nodiscard]] Status check(const ContextCreate& request, uint32_t hpus, uint64_t payload_bytes) const;
  [[nodiscard]] Status check_window(const char* name, const MemoryWindow& window) const;

  NicMemory memory_;
  Table<ContextId, State> contexts_{"context", limits::context_count_max, "limits::context_count_max"};
  TelemetryCounts counts_{};
};

}  // namespace spinloom::nic
