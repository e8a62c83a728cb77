#include "portals/interface/interface.hpp"

#include <utility>

namespace spinloom::portals {

Interface::Interface(Port& port, const Limits& limits)
    : port_(port),
      limits_(limits),
      queues_("queue", limits.queues, "Interface::Limits::queues"),
      counters_("counter", limits.counters, "Interface::Limits::counters"),
      entries_("entry", limits.entries, "Interface::Limits::entries"),
      contexts_("context", limits.contexts, "Interface::Limits::contexts"),
      portals_("portal table entry", limits::portal_table_max, "limits::portal_table_max"),
      streams_("streaming put", limits.streams, "Interface::Limits::streams"),
      portal_queues_(limits::portal_table_max) {}

Result<uint64_t> Interface::submit_and_wait(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger) {
  return wait_for_answer(submit(body, trigger));
}

uint64_t Interface::submit(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger) {
  const uint64_t token = next_token_++;
  port_.submit(nic::Command{body, trigger, token});
  return token;
}

// Waits for the answer to a command.
Result<uint64_t> Interface::wait_for_answer(uint64_t token) {
  for (;;) {
    if (auto answer = port_.take_answer(token)) return *answer;
    SPL_TRY(port_.wait());
  }
}

Status Interface::register_triggered(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger) {
  if (bundle_.depth > 0) {
    bundle(body, trigger);
    return {};
  }
  const auto registered = submit_and_wait(body, trigger);
  return registered ? Status{} : Status{registered.error()};
}

void Interface::bundle(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger) {
  bundle_.unanswered.push_back(submit(body, trigger));
  wait_for_bundle(bundle_unanswered_max);
}

// Waits until at most `unanswered_max` operations of the bundle have no answer. Keeps the first error for bundle_end().
void Interface::wait_for_bundle(size_t unanswered_max) {
  while (bundle_.unanswered.size() > unanswered_max) {
    const uint64_t token = bundle_.unanswered.front();
    bundle_.unanswered.pop_front();
    if (const auto answer = wait_for_answer(token); !answer && bundle_.result.ok()) bundle_.result = answer.error();
  }
}

Status Interface::bundle_end() {
  if (bundle_.depth == 0) return fail(Code::invalid, "bundle_end: no bundle is open");
  if (--bundle_.depth > 0) return {};
  wait_for_bundle(0);
  return std::exchange(bundle_.result, Status{});
}

Result<nic::QueueId> Interface::eq_alloc(uint32_t slots, uint32_t reserved) {
  SPL_ASSIGN(const nic::QueueId queue, queues_.take());
  if (queue_records_.size() <= queue.value) queue_records_.resize(queue.value + 1);
  queue_records_[queue.value] = {slots, false, std::make_shared<nic::QueueIndex>()};
  if (const auto allocated =
          submit_and_wait(nic::QueueAlloc{queue, slots, reserved, queue_records_[queue.value].index});
      !allocated) {
    queues_.give_back(queue);
    return allocated.error();
  }
  return queue;
}

Status Interface::eq_free(nic::QueueId queue) {
  SPL_TRY(queues_.check(queue));
  SPL_TRY(submit_and_wait(nic::QueueFree{queue}));
  while (eq_get(queue)) {
  }
  for (uint32_t portal = 0; portal < portal_queues_.size(); ++portal) {
    if (portal_queues_[portal] == queue) forget_queue_of(nic::PortalIndex{portal});
  }
  queues_.give_back(queue);
  return {};
}

std::optional<nic::Event> Interface::eq_get(nic::QueueId queue) {
  if (queue.value >= queue_records_.size()) return std::nullopt;
  QueueRecord& record = queue_records_[queue.value];
  nic::QueueIndex& index = *record.index;
  if (index.waiting() == 0) index.added = 0;
  while (index.waiting() > record.slots + index.added) {  // the oldest event has been overwritten
    if (!take_event(queue)) break;
    record.has_gap = true;
  }
  auto event = take_event(queue);
  if (event) event->after_gap = std::exchange(record.has_gap, false);
  return event;
}

std::optional<nic::Event> Interface::take_event(nic::QueueId queue) {
  const auto event = port_.take_event(queue);
  if (!event) return event;
  queue_records_[queue.value].index->taken.fetch_add(1, std::memory_order_release);
  reclaim_id(*event);
  return event;
}

Result<nic::Event> Interface::eq_wait(nic::QueueId queue) {
  SPL_TRY(queues_.check(queue));
  for (;;) {
    if (const auto event = eq_get(queue)) return *event;
    SPL_TRY(port_.wait());
  }
}

Result<nic::CounterId> Interface::ct_alloc(uint32_t triggered_max, bool only_successes) {
  SPL_ASSIGN(const nic::CounterId counter, counters_.take());
  if (const auto allocated = submit_and_wait(nic::CounterAlloc{counter, triggered_max, only_successes}); !allocated) {
    counters_.give_back(counter);
    return allocated.error();
  }
  // An earlier counter with this index may have left its value with the host; waits until the host sees 0.
  while (port_.counter(counter) != nic::CounterValue{}) SPL_TRY(port_.wait());
  return counter;
}

Status Interface::ct_free(nic::CounterId counter) {
  SPL_TRY(counters_.check(counter));
  SPL_TRY(submit_and_wait(nic::CounterFree{counter}));
  reclaim_failed_appends();
  counters_.give_back(counter);
  return {};
}

Status Interface::ct_cancel(nic::CounterId counter) {
  SPL_TRY(counters_.check(counter));
  const auto answer = submit_and_wait(nic::CounterCancel{counter});
  reclaim_failed_appends();
  return answer ? Status{} : Status{answer.error()};
}

Status Interface::ct_auto_reset(nic::CounterId counter, uint64_t threshold) {
  SPL_TRY(counters_.check(counter));
  const auto answer = submit_and_wait(nic::CounterAutoReset{counter, threshold});
  return answer ? Status{} : Status{answer.error()};
}

Status Interface::ct_inc(nic::CounterId counter, nic::CounterValue by, const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(counters_.check(counter));
  return send_command(nic::CounterInc{counter, by}, trigger);
}

Result<uint64_t> Interface::ct_take_back(nic::CounterId counter) {
  SPL_TRY(counters_.check(counter));
  return submit_and_wait(nic::CounterInc{counter, {UINT64_MAX, 0}});
}

Status Interface::ct_set(nic::CounterId counter, nic::CounterValue to, const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(counters_.check(counter));
  return send_command(nic::CounterSet{counter, to}, trigger);
}

Result<nic::CounterValue> Interface::ct_wait(nic::CounterId counter, uint64_t test) {
  SPL_TRY(counters_.check(counter));
  for (;;) {
    const nic::CounterValue value = port_.counter(counter);
    if (value.success >= test || value.failure > 0) return value;
    SPL_TRY(port_.wait());
  }
}

Result<nic::PortalIndex> Interface::pt_alloc(nic::QueueId queue, const PortalOptions& options) {
  if (queue.exists()) SPL_TRY(queues_.check(queue));
  nic::PortalIndex portal = options.index;
  if (portal.exists()) {
    SPL_TRY(portals_.take(portal));
  } else {
    SPL_ASSIGN(portal, portals_.take());
  }
  if (const auto allocated = submit_and_wait(nic::PortalAlloc{portal, queue, options.flow_control}); !allocated) {
    portals_.give_back(portal);
    return allocated.error();
  }
  portal_queues_[portal.value] = queue;
  return portal;
}

Status Interface::pt_free(nic::PortalIndex portal) {
  SPL_TRY(portals_.check(portal));
  SPL_TRY(submit_and_wait(nic::PortalFree{portal}));
  portals_.give_back(portal);
  portal_queues_[portal.value] = {};
  return {};
}

Status Interface::pt_enable(nic::PortalIndex portal) {
  SPL_TRY(portals_.check(portal));
  const auto answer = submit_and_wait(nic::PortalEnable{portal, true});
  return answer ? Status{} : Status{answer.error()};
}

Result<bool> Interface::pt_disable(nic::PortalIndex portal) {
  SPL_TRY(portals_.check(portal));
  SPL_ASSIGN(const uint64_t was_enabled, submit_and_wait(nic::PortalEnable{portal, false}));
  return was_enabled != 0;
}

Result<uint64_t> Interface::me_search(nic::PortalIndex portal, const nic::Entry& entry, bool remove) {
  SPL_TRY(portals_.check(portal));
  if (entry.counter.exists()) SPL_TRY(counters_.check(entry.counter));
  return submit_and_wait(nic::Search{portal, entry, remove});
}

Status Interface::check(const char* call, const PutArguments& arguments) const {
  if (arguments.local == nullptr && arguments.length > 0 &&
      !list_contains(arguments.descriptor, arguments.descriptor_offset, arguments.length)) {
    return fail(Code::invalid, call, ": the buffer is null and length is ", arguments.length);
  }
  if (arguments.target == nic::Rank::any()) return fail(Code::invalid, call, ": the target must be one rank");
  if (!arguments.portal.exists()) return fail(Code::invalid, call, ": no portal table entry of the target is named");
  if (arguments.queue.exists()) SPL_TRY(queues_.check(arguments.queue));
  if (arguments.counter.exists()) SPL_TRY(counters_.check(arguments.counter));
  if (arguments.ack_request == nic::AckRequest::ack && !arguments.queue.exists()) {
    return fail(Code::invalid, call, ": a full acknowledgement needs an event queue, none was given");
  }
  const bool counts =
      arguments.ack_request == nic::AckRequest::ct_ack || arguments.ack_request == nic::AckRequest::oc_ack;
  if ((counts || arguments.ct_send) && !arguments.counter.exists()) {
    return fail(Code::invalid, call, ": counting sends or acknowledgements needs a counter, none was given");
  }
  return {};
}

Status Interface::put(const PutArguments& arguments, const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(check("put", arguments));
  if (trigger) return send_command(arguments, trigger);
  if (arguments.descriptor) arguments.descriptor->begin();
  port_.put(arguments);
  return {};
}

Status Interface::check(const char* call, const nic::ReplyTo& reply, uint64_t length) const {
  if (reply.local == nullptr && length > 0 && !list_contains(reply.descriptor, reply.descriptor_offset, length)) {
    return fail(Code::invalid, call, ": the buffer is null and length is ", length);
  }
  if (reply.queue.exists()) SPL_TRY(queues_.check(reply.queue));
  if (reply.counter.exists()) SPL_TRY(counters_.check(reply.counter));
  if (!reply.ct_reply || reply.counter.exists()) return {};
  return fail(Code::invalid, call, ": counting replies needs a counter, none was given");
}

Status Interface::get(const GetArguments& arguments, const std::optional<nic::Trigger>& trigger) {
  if (arguments.target == nic::Rank::any()) return fail(Code::invalid, "get: the target must be one rank");
  if (!arguments.portal.exists()) return fail(Code::invalid, "get: no portal table entry of the target is named");
  SPL_TRY(check("get", arguments.reply, arguments.length));
  return send_command(arguments, trigger);
}

Status Interface::atomic(const AtomicArguments& arguments, const std::optional<nic::Trigger>& trigger) {
  const bool is_fetching = arguments.fetch.has_value();
  SPL_TRY(check("atomic", arguments.put));
  SPL_TRY(spin::check(arguments.operation, arguments.datatype, arguments.put.length, is_fetching,
                      is_fetching ? limits_.fetch_atomic_bytes : limits_.atomic_bytes));
  if (is_fetching) SPL_TRY(check("atomic", *arguments.fetch, arguments.put.length));
  return send_command(arguments, trigger);
}

Result<uint64_t> Interface::memory_alloc(uint64_t bytes, uint64_t align) {
  return submit_and_wait(nic::MemoryAlloc{bytes, align});
}

Status Interface::memory_free(uint64_t offset) {
  const auto answer = submit_and_wait(nic::MemoryFree{offset});
  return answer ? Status{} : Status{answer.error()};
}

Status Interface::memory_write(uint64_t offset, std::span<const uint8_t> bytes) {
  const auto answer = submit_and_wait(nic::MemoryWrite{offset, {bytes.begin(), bytes.end()}});
  return answer ? Status{} : Status{answer.error()};
}

Result<nic::ContextId> Interface::context_create(const nic::Context& context) {
  SPL_ASSIGN(const nic::ContextId id, contexts_.take());
  if (const auto allocated = submit_and_wait(nic::ContextCreate{id, context}); !allocated) {
    contexts_.give_back(id);
    return allocated.error();
  }
  if (context_fills_packets_.size() <= id.value) context_fills_packets_.resize(id.value + 1);
  context_fills_packets_[id.value] =
      context.payload_entry && !context.header_entry && !context.completion_entry && context.user_header_bytes == 0;
  return id;
}

Status Interface::context_free(nic::ContextId context) {
  SPL_TRY(contexts_.check(context));
  SPL_TRY(submit_and_wait(nic::ContextFree{context}));
  contexts_.give_back(context);
  return {};
}

Status Interface::context_activate(nic::ContextId context) {
  SPL_TRY(contexts_.check(context));
  const auto answer = submit_and_wait(nic::ContextActivate{context});
  return answer ? Status{} : Status{answer.error()};
}

Status Interface::invoke(nic::EntryId entry, std::span<const uint8_t> bytes, uint64_t hdr_data,
                         const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(entries_.check(entry));
  if (trigger) SPL_TRY(counters_.check(trigger->counter));
  if (bytes.size() > limits::payload_bytes_max) {  // checked before the copy; a NIC's packets may be shorter
    return fail(Code::invalid, "invoke: ", bytes.size(), " B do not fit into a packet");
  }
  const auto answer = submit_and_wait(nic::Invoke{entry, {bytes.begin(), bytes.end()}, hdr_data}, trigger);
  return answer ? Status{} : Status{answer.error()};
}

Result<uint64_t> Interface::telemetry(nic::Telemetry which, nic::ContextId context) {
  if (context.exists()) SPL_TRY(contexts_.check(context));
  return submit_and_wait(nic::TelemetryRead{which, context});
}

void Interface::check_invariants() const {
  queues_.check_invariants();
  counters_.check_invariants();
  entries_.check_invariants();
  contexts_.check_invariants();
  portals_.check_invariants();
  streams_.check_invariants();
}

}  // namespace spinloom::portals
