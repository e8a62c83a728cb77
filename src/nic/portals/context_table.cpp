#include "nic/portals/context_table.hpp"

#include <utility>

namespace spinloom::nic {
namespace {

Result<std::vector<uint64_t>> host_list_ends(const ContextCreate& request) {
  std::vector<uint64_t> ends;
  for (const IovecElement& element : request.context.handler_host_iovec) {
    const uint64_t before = ends.empty() ? 0 : ends.back();
    if ((element.base == nullptr && element.length > 0) || element.length > UINT64_MAX - before) {
      return fail(Code::invalid, "context ", request.id, ": element ", ends.size(),
                  " of its handler host memory is null or too long");
    }
    ends.push_back(before + element.length);
  }
  return ends;
}

}  // namespace

Status ContextTable::check_window(const char* name, const MemoryWindow& window) const {
  if (window.length == 0 || memory_.holds(window.offset, window.length)) return {};
  return fail(Code::invalid, "context: its ", name, " window (offset ", window.offset, ", ", window.length,
              " B) is not inside one allocated block of NIC memory");
}

Status ContextTable::check(const ContextCreate& request, uint32_t hpus, uint64_t payload_bytes) const {
  const Context& context = request.context;
  if (!context.header_entry && !context.payload_entry && !context.completion_entry) {
    return fail(Code::invalid, "context ", request.id, " has no handler");
  }
  if (context.user_header_bytes > payload_bytes) {
    return fail(Code::invalid, "context ", request.id, ": a user header of ", context.user_header_bytes,
                " B; a packet carries ", payload_bytes, " B (link.payload)");
  }
  SPL_TRY(check_window("constants", context.constants));
  SPL_TRY(check_window("state", context.state));
  if (context.budget_cycles == 0) return fail(Code::invalid, "context ", request.id, ": budget_cycles is 0");
  if (context.handler_host_start != 0 && !context.handler_host_iovec.empty()) {
    return fail(Code::invalid, "context ", request.id, ": its handler host memory is a range and a list; give one");
  }
  if (context.hpus) {
    uint32_t here = 0;
    for (uint32_t hpu = 0; hpu < hpus; ++hpu) here += context.hpus->holds(hpu) ? 1 : 0;
    if (here == 0) {
      return fail(Code::invalid, "context ", request.id, ": its mask names none of this NIC's ", hpus, " HPUs");
    }
  }
  if (context.handler_host_start == 0 && context.handler_host_length > 0) {
    return fail(Code::invalid, "context ", request.id, ": handler host memory is null and has length ",
                context.handler_host_length);
  }
  if (const auto& policy = context.blocked_round_robin) {
    if (policy->packets_in_row == 0 || policy->vhpus == 0 || policy->vhpus > limits::vhpu_count_max) {
      return fail(Code::invalid, "context ", request.id, ": blocked round-robin with ", policy->packets_in_row,
                  " packets in a row on ", policy->vhpus, " virtual HPUs; it needs at least 1 of each, and at most ",
                  limits::vhpu_count_max, " virtual HPUs (limits::vhpu_count_max)");
    }
  }
  return {};
}

Status ContextTable::create(const ContextCreate& request, uint32_t hpus, uint64_t payload_bytes) {
  SPL_ASSIGN(std::vector<uint64_t> ends, host_list_ends(request));
  SPL_TRY(check(request, hpus, payload_bytes));
  SPL_ASSIGN(State * state, contexts_.create(request.id));
  state->context = request.context;
  state->iovec_ends = std::move(ends);
  return {};
}

Status ContextTable::free(ContextId id) {
  SPL_ASSIGN(const State* state, contexts_.get(id));
  if (state->entries > 0 || state->messages > 0) {
    return fail(Code::invalid, "context ", id, " is in use by ", state->entries, " entries and ", state->messages,
                " messages");
  }
  contexts_.remove(id);
  return {};
}

Status ContextTable::activate(ContextId id) {
  SPL_ASSIGN(State * state, contexts_.get(id));
  if (state->context.active) return fail(Code::invalid, "context ", id, " is active already");
  state->context.active = true;
  return {};
}

Result<uint64_t> ContextTable::read(const TelemetryRead& request) const {
  const auto index = static_cast<size_t>(request.count);
  if (index >= telemetry_counts) return fail(Code::invalid, "there is no telemetry count ", index);
  if (!request.context.exists()) return counts_[index];
  SPL_ASSIGN(const State* state, contexts_.get(request.context));
  return state->counts[index];
}

Status ContextTable::free_memory(uint64_t offset) {
  ContextId user;
  contexts_.for_each([&](ContextId id, const State& state) {
    const Context& context = state.context;
    if (memory_.overlaps(offset, context.constants.offset, context.constants.length) ||
        memory_.overlaps(offset, context.state.offset, context.state.length)) {
      user = id;
    }
  });
  if (user.exists()) {
    return fail(Code::invalid, "NIC memory at offset ", offset, " is in use by context ", user);
  }
  return memory_.free(offset);
}

}  // namespace spinloom::nic
