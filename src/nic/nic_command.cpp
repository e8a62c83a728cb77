// The host's commands: objects and their checks. Nothing here is our own bug: every trouble is an answer.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

void Nic::Impl::note_failure(const Error& error) {
  ++failed_commands;
  last_failure = error.message;
}

void Nic::Impl::command(const Command& given, Actions& out) {
  const Put* const put = std::get_if<Put>(&given.body);
  if (put != nullptr && !given.trigger && given.token == 0) {  // the commonest
    if (const Status good = check_put(*put); !good) {
      forget(given.body);
      return note_failure(good.error());
    }
    return start_put(*put, out);
  }
  Result<uint64_t> answer = uint64_t{0};
  if (given.trigger) {
    if (const Status registered = wait_for_counter(given); !registered) answer = registered.error();
  } else {
    answer = execute(given.body, out);
  }
  if (!answer) forget(given.body);
  if (answer && answers_later(given)) return;
  if (given.token != 0) {
    out.add<Answer>(given.token, std::move(answer));
  } else if (!answer) {
    note_failure(answer.error());
  }
}

// An operation that will not be.
void Nic::Impl::forget(const CommandBody& body) {
  for_each_descriptor(body, [](Descriptor& descriptor) { descriptor.end(); });
  const auto* const append = std::get_if<Append>(&body);
  if (append == nullptr || !append->news || *append->news == Appended::done) return;
  *append->news = Appended::never;
}

// What waits for a counter will not be; what has fired and is persistent will not be again.
void Nic::Impl::forget_waiting(CounterState& counter) {
  for (const Waiting& waiting : counter.heap) {
    forget(waiting_commands[waiting.slot].body);
    waiting_commands.give_back(waiting.slot);
  }
  for (const uint32_t slot : counter.resting) {
    forget(waiting_commands[slot].body);
    waiting_commands.give_back(slot);
  }
  counter.heap.clear();
  counter.resting.clear();
  counter.operations_waiting = 0;
  counter.coming_back = 0;
  counter.begun = next_trigger_sequence;
}

// Portal table entries that post to it go on without one. Flow control ends with it: its news have nowhere to go.
Status Nic::Impl::free_queue(const QueueFree& body) {
  SPL_ASSIGN([[maybe_unused]] const QueueState* queue, queues.get(body.queue));
  portals.for_each([&](PortalIndex, PortalState& portal) {
    if (portal.queue != body.queue) return;
    portal.queue = {};
    portal.flow_control = false;
  });
  queues.remove(body.queue);
  return {};
}

Status Nic::Impl::alloc_portal(const PortalAlloc& body) {
  QueueState* queue = nullptr;
  if (body.queue.exists()) {
    SPL_ASSIGN(queue, queues.get(body.queue));
  } else if (body.flow_control) {
    return fail(Code::invalid, "portal table entry ", body.portal, ": flow control needs an event queue");
  }
  SPL_ASSIGN(PortalState * portal, portals.create(body.portal));
  portal->queue = body.queue;
  portal->flow_control = body.flow_control;
  if (body.flow_control) ++queue->flow_portals;
  return {};
}

// Headers that wait for an entry are forgotten. Work: the entries.
Status Nic::Impl::free_portal(const PortalFree& body, Actions& out) {
  SPL_ASSIGN(PortalState * portal, portals.get(body.portal));
  uint32_t here = portal->priority.size() + portal->overflow.size();
  entries.for_each(
      [&](uint32_t, const ListedEntry& listed) { here += listed.waits && listed.portal == body.portal ? 1 : 0; });
  if (here > 0 || portal->messages_open > 0) {
    return fail(Code::invalid, "portal table entry ", body.portal, " is in use: ", here, " entries and ",
                portal->messages_open, " messages under way");
  }
  while (portal->unexpected.first() != no_slot) release_entry(forget_header(portal->unexpected.first()), out);
  SPL_ASSERT(portal->unexpected.size() == 0, "portal ", body.portal);
  if (portal->flow_control) {
    QueueState& queue = *queues.find(portal->queue);
    SPL_ASSERT(queue.flow_portals > 0, "queue ", portal->queue);
    --queue.flow_portals;
  }
  portals.remove(body.portal);
  return {};
}

// A portal table entry is being disabled, and messages for it are still under way: their end answers.
bool Nic::Impl::answers_later(const Command& given) {
  const auto* change = std::get_if<PortalEnable>(&given.body);
  if (change == nullptr || change->enabled || given.trigger || given.token == 0) return false;
  PortalState* portal = portals.find(change->portal);
  if (portal == nullptr || portal->messages_open == 0) return false;
  portal->disablers.push_back(given.token);
  return true;
}

Status Nic::Impl::check_window(const char* name, const MemoryWindow& window) const {
  if (window.length == 0 || memory.holds(window.offset, window.length)) return {};
  return fail(Code::invalid, "context: its ", name, " window (offset ", window.offset, ", ", window.length,
              " B) is not inside one allocated block of NIC memory");
}

Result<uint64_t> Nic::Impl::create_context(const ContextCreate& body) {
  const Context& given = body.context;
  if (!given.header_entry && !given.payload_entry && !given.completion_entry) {
    return fail(Code::invalid, "context ", body.id, " has no handler");
  }
  if (given.user_header_bytes > config.payload_bytes) {
    return fail(Code::invalid, "context ", body.id, ": a user header of ", given.user_header_bytes,
                " B; a packet carries ", config.payload_bytes, " B (link.payload)");
  }
  SPL_TRY(check_window("constants", given.constants));
  SPL_TRY(check_window("state", given.state));
  if (given.budget_cycles == 0) return fail(Code::invalid, "context ", body.id, ": budget_cycles is 0");
  std::vector<uint64_t> iovec_ends;
  for (const IovecElement& element : given.handler_host_iovec) {
    const uint64_t before = iovec_ends.empty() ? 0 : iovec_ends.back();
    if ((element.base == nullptr && element.length > 0) || element.length > UINT64_MAX - before) {
      return fail(Code::invalid, "context ", body.id, ": element ", iovec_ends.size(),
                  " of its handler host memory is null or too long");
    }
    iovec_ends.push_back(before + element.length);
  }
  if (given.handler_host_start != 0 && !iovec_ends.empty()) {
    return fail(Code::invalid, "context ", body.id, ": its handler host memory is a range and a list; give one");
  }
  if (given.hpus) {
    uint32_t here = 0;
    for (uint32_t hpu = 0; hpu < config.hpus; ++hpu) here += given.hpus->holds(hpu) ? 1 : 0;
    if (here == 0) {
      return fail(Code::invalid, "context ", body.id, ": its mask names none of this NIC's ", config.hpus, " HPUs");
    }
  }
  if (given.handler_host_start == 0 && given.handler_host_length > 0) {
    return fail(Code::invalid, "context ", body.id, ": handler host memory is null and has length ",
                given.handler_host_length);
  }
  if (const auto& policy = given.blocked_round_robin) {
    if (policy->packets_in_row == 0 || policy->vhpus == 0 || policy->vhpus > limits::vhpu_count_max) {
      return fail(Code::invalid, "context ", body.id, ": blocked round-robin with ", policy->packets_in_row,
                  " packets in a row on ", policy->vhpus, " virtual HPUs; it needs at least 1 of each, and at most ",
                  limits::vhpu_count_max, " virtual HPUs (limits::vhpu_count_max)");
    }
  }
  SPL_ASSIGN(ContextState * context, contexts.create(body.id));
  context->context = given;
  context->iovec_ends = std::move(iovec_ends);
  if (given.hpus) masked_contexts.push_back(body.id);
  if (given.blocked_round_robin) context->vhpus.resize(given.blocked_round_robin->vhpus);
  return uint64_t{0};
}

Result<uint64_t> Nic::Impl::read_telemetry(const TelemetryRead& body) const {
  const auto index = static_cast<size_t>(body.which);
  if (index >= telemetry_counts) return fail(Code::invalid, "there is no telemetry count ", index);
  if (!body.context.exists()) return counts[index];
  SPL_ASSIGN(const ContextState* context, contexts.get(body.context));
  return context->counts[index];
}

Result<uint64_t> Nic::Impl::read_refusals(const RefusalsRead& body) const {
  const auto index = static_cast<size_t>(body.which);
  if (body.table >= tables.size() || index >= tables[body.table].refused.size()) {
    return fail(Code::invalid, "there is no count ", index, " of refusals of portal table ", body.table);
  }
  return tables[body.table].refused[index];
}

Result<uint64_t> Nic::Impl::execute(const CommandBody& given, Actions& out) {
  return std::visit(
      [&](const auto& body) -> Result<uint64_t> {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, QueueAlloc>) {
          if (body.slots == 0) return fail(Code::invalid, "queue ", body.queue, ": 0 slots; it needs at least 1");
          SPL_ASSIGN(QueueState * queue, queues.create(body.queue));
          queue->events_max = body.slots - std::min(body.slots, body.reserved);
          queue->index = body.index;
        } else if constexpr (std::is_same_v<Body, QueueFree>) {
          SPL_TRY(free_queue(body));
        } else if constexpr (std::is_same_v<Body, CounterAlloc>) {
          SPL_ASSIGN(CounterState * counter, counters.create(body.counter));
          counter->triggered_max = body.triggered_max;
          counter->begun = next_trigger_sequence;
        } else if constexpr (std::is_same_v<Body, CounterCancel>) {
          SPL_ASSIGN(CounterState * counter, counters.get(body.counter));
          forget_waiting(*counter);
        } else if constexpr (std::is_same_v<Body, CounterAutoReset>) {
          SPL_TRY(auto_reset(body));
        } else if constexpr (std::is_same_v<Body, Search>) {
          return search(body, out);
        } else if constexpr (std::is_same_v<Body, CounterFree>) {
          SPL_ASSIGN(CounterState * counter, counters.get(body.counter));
          forget_waiting(*counter);
          counters.remove(body.counter);
        } else if constexpr (std::is_same_v<Body, CounterInc>) {
          SPL_ASSIGN([[maybe_unused]] const CounterState* counter, counters.get(body.counter));
          count(body.counter, body.by, out);
        } else if constexpr (std::is_same_v<Body, CounterSet>) {
          SPL_ASSIGN([[maybe_unused]] const CounterState* counter, counters.get(body.counter));
          set_counter(body.counter, body.to, out);
        } else if constexpr (std::is_same_v<Body, PortalAlloc>) {
          SPL_TRY(alloc_portal(body));
        } else if constexpr (std::is_same_v<Body, PortalFree>) {
          SPL_TRY(free_portal(body, out));
        } else if constexpr (std::is_same_v<Body, PortalEnable>) {
          SPL_ASSIGN(PortalState * portal, portals.get(body.portal));
          portal->enabled = body.enabled;
        } else if constexpr (std::is_same_v<Body, Append>) {
          return append(body, out);
        } else if constexpr (std::is_same_v<Body, Unlink>) {
          return unlink(body);
        } else if constexpr (std::is_same_v<Body, MemoryAlloc>) {
          return memory.allocate(body.bytes, body.align);
        } else if constexpr (std::is_same_v<Body, MemoryFree>) {
          ContextId user;
          contexts.for_each([&](ContextId id, const ContextState& state) {
            const Context& context = state.context;
            if (memory.overlaps(body.offset, context.constants.offset, context.constants.length) ||
                memory.overlaps(body.offset, context.state.offset, context.state.length)) {
              user = id;
            }
          });
          if (user.exists()) {
            return fail(Code::invalid, "NIC memory at offset ", body.offset, " is in use by context ", user);
          }
          SPL_TRY(memory.free(body.offset));
        } else if constexpr (std::is_same_v<Body, MemoryWrite>) {
          if (!memory.holds(body.offset, body.bytes.size())) {
            return fail(Code::invalid, "NIC memory: a write of ", body.bytes.size(), " B at offset ", body.offset,
                        " is not inside one allocated block");
          }
          out.add<WriteNicMemory>(body.offset, body.bytes);
        } else if constexpr (std::is_same_v<Body, ContextCreate>) {
          return create_context(body);
        } else if constexpr (std::is_same_v<Body, ContextFree>) {
          SPL_ASSIGN(const ContextState* context, contexts.get(body.id));
          if (context->entries > 0 || context->messages > 0) {
            return fail(Code::invalid, "context ", body.id, " is in use by ", context->entries, " entries and ",
                        context->messages, " messages");
          }
          std::erase(masked_contexts, body.id);
          contexts.remove(body.id);
        } else if constexpr (std::is_same_v<Body, StreamStart>) {
          SPL_TRY(start_stream(body, out));
        } else if constexpr (std::is_same_v<Body, StreamAppend>) {
          SPL_TRY(stream(body, out));
        } else if constexpr (std::is_same_v<Body, ProcessPut>) {
          SPL_TRY(check_process_put(body));
          start_process_put(body, out);
        } else if constexpr (std::is_same_v<Body, TableSetup>) {
          if (body.table >= tables.size()) return fail(Code::invalid, "there is no portal table ", body.table);
          tables[body.table].setup = body;
          tables[body.table].refused = {};
        } else if constexpr (std::is_same_v<Body, RefusalsRead>) {
          return read_refusals(body);
        } else if constexpr (std::is_same_v<Body, ContextActivate>) {
          SPL_TRY(activate_context(body, out));
        } else if constexpr (std::is_same_v<Body, TelemetryRead>) {
          return read_telemetry(body);
        } else if constexpr (std::is_same_v<Body, Invoke>) {
          SPL_TRY(invoke(body, out));
        } else if constexpr (std::is_same_v<Body, Get>) {
          SPL_TRY(check_get(body));
          start_get(body, out);
        } else if constexpr (std::is_same_v<Body, Atomic>) {
          SPL_TRY(check_atomic(body));
          start_atomic(body, out);
        } else {
          static_assert(std::is_same_v<Body, Put>, "every command has its branch");
          SPL_TRY(check_put(body));
          start_put(body, out);
        }
        return uint64_t{0};
      },
      given);
}

}  // namespace spinloom::nic
