// Checks of what the headers of this floor call invariants, for tests. Each part checks itself; the NIC compares what
// its parts count of each other.
#include <algorithm>

#include "nic/portals/nic_impl.hpp"
#include "nic/spin/slot_counts.hpp"

namespace spinloom::nic {

void Nic::check_invariants() const { impl_->check_invariants(); }

void Nic::Impl::check_invariants() const {
  SPL_ASSERT(continue_asked || (!triggers.has_fired() && !initiator.emit_due()), "queued work has no turn");
  executions.check_invariants(scheduler.hpus_busy());
  scheduler.check_invariants();
  triggers.check_invariants();
  initiator.check_invariants();

  uint64_t buffered = dmas.buffer_bytes();
  SlotCounts handlers_of_messages;
  SlotCounts handlers_of_process_puts;
  executions.for_each([&](const Execution& execution) {
    buffered += execution.buffer_bytes;
    if (execution.stage == Stage::ended) return;
    const bool arrives = execution.owner.kind == OwnerKind::incoming;
    (arrives ? handlers_of_messages : handlers_of_process_puts).add(execution.owner.slot);
  });

  std::vector<const DmaQueue*> dma_queues;
  PortalTable::Users users;
  SlotCounts users_of_contexts;
  uint64_t early = 0;
  uint32_t with_handlers = 0;
  messages.check_invariants();
  messages.for_each([&](uint32_t slot, const Message& message) {
    SPL_ASSERT(message_slots.find(message.source, message.id) == slot, "message ", message.id, " is not found");
    SPL_ASSERT(message.hers_open == handlers_of_messages.of(slot), "message ", message.id, ": ",
               handlers_of_messages.of(slot), " handlers, and ", message.hers_open, " are counted");
    const bool waits = message.path == Path::waiting || message.bytes_in < message.length || message.hers_open > 0 ||
                       message.dmas.open > 0 || message.reply_open;
    SPL_ASSERT(waits, "message ", message.id, " waits for nothing and has not ended");
    dma_queues.push_back(&message.dmas);
    for (const Packet& packet : message.early) buffered += packet.payload.length;
    early += message.early.size();
    if (message.entry != no_slot) users.of_entries.add(message.entry);
    if (message.portal.exists()) users.of_portals.add(message.portal.value);
    if (contexts.find(message.context) == nullptr) return;
    users_of_contexts.add(message.context.value);
    ++with_handlers;
  });
  initiator.for_each_process_put([&](uint32_t slot, const HandlerWork& work) {
    SPL_ASSERT(work.hers_open == handlers_of_process_puts.of(slot), "process-put ", slot, ": ",
               handlers_of_process_puts.of(slot), " handlers, and ", work.hers_open, " are counted");
    dma_queues.push_back(&work.dmas);
    users_of_contexts.add(work.context.value);
  });
  deliveries.for_each([&](uint32_t, const Delivery& delivery) {
    users.of_entries.add(delivery.entry);
    users.of_portals.add(portals.entry(delivery.entry).portal.value);
  });

  SPL_ASSERT(message_slots.size() == messages.size(), message_slots.size(), " names of ", messages.size(), " messages");
  SPL_ASSERT(buffer.used() == buffered && buffer.peak() >= buffered, buffered, " B are buffered, and ", buffer.used(),
             " are counted");
  SPL_ASSERT(early == early_packets, early, " packets are early, and ", early_packets, " are counted");
  SPL_ASSERT(with_handlers == handler_messages, with_handlers, " messages have handlers, and ", handler_messages,
             " are counted");
  dmas.check_invariants(dma_queues);
  portals.check_invariants(users);
  contexts.check_invariants(portals.users_of_contexts(), users_of_contexts);
}

void EventQueues::check_invariants(const SlotCounts& holders, const SlotCounts& reserved) const {
  queues_.for_each([&](QueueId id, const Queue& queue) {
    SPL_ASSERT(queue.holders == holders.of(id.value), "queue ", id, ": ", holders.of(id.value), " holders, and ",
               queue.holders, " are counted");
    SPL_ASSERT(queue.events_reserved == reserved.of(id.value), "queue ", id, ": room for ", reserved.of(id.value),
               " events is needed, and ", queue.events_reserved, " kept");
  });
}

void PortalTable::check_invariants(const Users& users) const {
  entries_.check_invariants();
  headers_.check_invariants();
  SlotCounts claims;
  SlotCounts headers_kept;
  headers_.for_each([&](uint32_t slot, const UnexpectedHeader& header) {
    headers_kept.add(header.overflow_entry);
    if (header.claimer == no_slot) return;
    claims.add(header.claimer);
    SPL_ASSERT(!header.landed || entries_[header.claimer].claims_open > 1, "header ", slot,
               " has landed and has a claimer, which waits for no header before it");
  });

  SlotCounts reserved;
  SlotCounts entries_of_tables;
  uint32_t linked = 0;
  entries_.for_each([&](uint32_t slot, const ListedEntry& listed) {
    const uint32_t* const named = entry_slots_.find(listed.id);
    SPL_ASSERT(listed.is_search || (named != nullptr && *named == slot), "entry ", listed.id, " is not found");
    SPL_ASSERT(listed.claims_open == claims.of(slot), "entry ", listed.id, ": ", claims.of(slot), " claims, and ",
               listed.claims_open, " are counted");
    SPL_ASSERT(listed.messages_open == users.of_entries.of(slot) + claims.of(slot), "entry ", listed.id, ": ",
               users.of_entries.of(slot), " messages and ", claims.of(slot), " claims, and ", listed.messages_open,
               " are counted");
    SPL_ASSERT(listed.headers_kept == headers_kept.of(slot), "entry ", listed.id, ": ", headers_kept.of(slot),
               " headers, and ", listed.headers_kept, " are counted");
    SPL_ASSERT(listed.linked || listed.awaits_context || listed.messages_open > 0 || listed.headers_kept > 0, "entry ",
               listed.id, " has left, and nothing refers to it");
    SPL_ASSERT(!listed.auto_unlinked || !listed.linked, "entry ", listed.id, " has left and is in its list");
    SPL_ASSERT(!listed.unlink_reported || listed.messages_open == 0, "entry ", listed.id, " was reported too early");
    linked += listed.linked ? 1 : 0;
    if (!listed.is_search) entries_of_tables.add(table_of(listed.portal.value));
    const Portal& portal = *portals_.find(listed.portal);
    if (!portal.flow_control) return;
    const uint32_t messages = listed.entry.options.event_comm_disable ? 0 : users.of_entries.of(slot);
    const uint32_t events = messages + (listed.unlink_event_reserved ? 1 : 0);
    for (uint32_t i = 0; i < events; ++i) reserved.add(portal.queue.value);
  });

  SlotCounts holders;
  uint32_t listed_entries = 0;
  uint32_t listed_headers = 0;
  portals_.for_each([&](PortalIndex index, const Portal& portal) {
    SPL_ASSERT(portal.messages_open == users.of_portals.of(index.value), "portal ", index, ": ",
               users.of_portals.of(index.value), " messages, and ", portal.messages_open, " are counted");
    portal.priority.check_invariants(entries_);
    uint32_t published = 0;
    portal.priority.for_each_while([&](uint32_t slot) {
      const bool counts = entries_[slot].is_published;
      SPL_ASSERT(!counts || is_plain(portal, entries_[slot]), "entry ", entries_[slot].id, " is published");
      published += counts ? 1 : 0;
      return counts;
    });
    SPL_ASSERT(published == portal.published && (published == 0 || portal.enabled), "portal ", index, ": ", published,
               " entries are published, and ", portal.published, " are counted");
    portal.overflow.check_invariants(entries_);
    listed_entries += portal.priority.size() + portal.overflow.size();
    listed_headers += portal.unexpected.size();
    if (portal.flow_control) holders.add(portal.queue.value);
  });
  SPL_ASSERT(listed_entries == linked, linked, " entries are linked, ", listed_entries, " are in lists");
  SPL_ASSERT(listed_headers == headers_.size(), headers_.size(), " headers, ", listed_headers, " are in lists");
  for (uint32_t table = 0; table < tables_.size(); ++table) {
    SPL_ASSERT(tables_[table].entries == entries_of_tables.of(table), "portal table ", table, ": ",
               entries_of_tables.of(table), " entries, and ", tables_[table].entries, " are counted");
  }
  queues_.check_invariants(holders, reserved);
}

SlotCounts PortalTable::users_of_contexts() const {
  SlotCounts users;
  entries_.for_each([&users](uint32_t, const ListedEntry& listed) {
    if (listed.entry.context.exists()) users.add(listed.entry.context.value);
  });
  return users;
}

void MatchList::check_invariants(const Slab<ListedEntry>& slab) const {
  uint32_t linked = 0;
  uint64_t sequence = 0;
  for (uint32_t index = 0; index < lines_.size(); ++index) {
    const uint32_t slot = lines_[index].slot;
    if (slot == no_slot) continue;
    const ListedEntry& listed = slab[slot];
    SPL_ASSERT(listed.linked && listed.line_index == index && index >= first_, "entry ", listed.id, " is not at ",
               index);
    SPL_ASSERT(listed.sequence > sequence, "entry ", listed.id, " is behind a later one");
    sequence = listed.sequence;
    ++linked;
  }
  SPL_ASSERT(linked == size(), linked, " entries in a list of ", size());
}

void ContextTable::check_invariants(const SlotCounts& entries, const SlotCounts& messages) const {
  memory_.check_invariants();
  contexts_.for_each([&](ContextId id, const State& state) {
    SPL_ASSERT(state.entries == entries.of(id.value) && state.messages == messages.of(id.value), "context ", id, ": ",
               entries.of(id.value), " entries and ", messages.of(id.value), " messages, and ", state.entries, " and ",
               state.messages, " are counted");
    for (const MemoryWindow& window : {state.context.constants, state.context.state}) {
      SPL_ASSERT(window.length == 0 || memory_.holds(window.offset, window.length), "context ", id, ": ", window.length,
                 " B at ", window.offset, " are not allocated");
    }
  });
}

void Triggers::check_invariants() const {
  commands_.check_invariants();
  SlotCounts places;
  uint32_t placed = 0;
  const auto place = [&](uint32_t slot) {
    places.add(slot);
    SPL_ASSERT(commands_.is_taken(slot) && places.of(slot) == 1, "command ", slot, " is at two places");
    ++placed;
  };
  SlotCounts fired_persistent;  // one for each counter
  for (size_t i = 0; i < fired_.size(); ++i) {
    place(fired_[i]);
    const Trigger& trigger = *commands_[fired_[i]].trigger;
    const Counter* const counter = counters_.find(trigger.counter);
    const bool comes_back = trigger.every > 0 && counter != nullptr && trigger.sequence >= counter->valid_from;
    if (comes_back) fired_persistent.add(trigger.counter.value);
  }
  counters_.for_each([&](CounterId id, const Counter& counter) {
    uint32_t operations = 0;
    const auto wait = [&](uint32_t slot) {
      place(slot);
      operations += is_operation(commands_[slot].body) ? 1 : 0;
    };
    for (const Waiting& waiting : counter.heap) wait(waiting.slot);
    for (const uint32_t slot : counter.resting) wait(slot);
    SPL_ASSERT(operations == counter.operations_waiting, "counter ", id, ": ", operations, " operations wait, and ",
               counter.operations_waiting, " are counted");
    SPL_ASSERT(fired_persistent.of(id.value) == counter.fired_persistent, "counter ", id, ": ",
               fired_persistent.of(id.value), " persistent commands have fired, and ", counter.fired_persistent,
               " are counted");
    SPL_ASSERT(counter.heap.empty() || counter.heap.front().threshold > trigger_value(counter), "counter ", id,
               " has reached ", trigger_value(counter), ", and a command still waits");
  });
  SPL_ASSERT(placed == commands_.size(), commands_.size() - placed, " commands are nowhere");
}

void Initiator::check_invariants() const {
  outgoing_.check_invariants();
  fetches_.check_invariants();
  SlotCounts in_outbound;
  SlotCounts queued;
  for (size_t i = 0; i < outbound_.size(); ++i) {
    in_outbound.add(outbound_[i]);
    queued.add(outbound_[i]);
  }
  for (size_t i = 0; i < flowing_.size(); ++i) queued.add(flowing_[i]);
  uint32_t waiting_headers = 0;
  std::vector<uint64_t> unread_requests;
  outgoing_.for_each([&](uint32_t slot, const Outgoing& message) {
    const uint64_t name = message_name(message.sequence, slot);
    waiting_headers += message.may_wait && in_outbound.of(slot) > 0 ? 1 : 0;
    const bool waits_for_bytes = !message.queued && (message.stream != nullptr || message.process_put != no_slot);
    const bool is_being_read = message.emitted == message.put.length && !message.sent;
    const bool waits_for_ack = message.sent && message.ack_wanted && !message.acked;
    SPL_ASSERT(queued.of(slot) == 1 || (queued.of(slot) == 0 && (waits_for_bytes || is_being_read || waits_for_ack)),
               "message ", name, " is ", queued.of(slot), " times in a queue and waits for nothing else");
    SPL_ASSERT(!waits_for_ack || !is_lost(message.put.target), "message ", name, " waits for a lost peer");
    if (!message.sent) unread_requests.push_back(message.request.reply_to);
  });
  SPL_ASSERT(waiting_headers == waiting_headers_, waiting_headers, " headers may wait, and ", waiting_headers_,
             " are counted");
  fetches_.for_each([&](uint32_t slot, const Fetch& fetch) {
    const uint64_t name = message_name(fetch.sequence, slot);
    const bool is_here = fetch.header_in && fetch.bytes_in == fetch.reply_bytes;
    const bool is_asked = std::ranges::find(unread_requests, name) == unread_requests.end();
    SPL_ASSERT(is_here || !is_asked || !is_lost(fetch.target), "request ", name, " waits for a lost peer");
    SPL_ASSERT(!is_here || fetch.dmas_open > 0 || !fetch.target_done, "request ", name,
               " is answered and has not ended");
  });
  for (size_t i = 0; i < wanting_slots_.size(); ++i) {
    const ProcessPutWork& work = process_puts_[wanting_slots_[i]];
    SPL_ASSERT(!work.stopped && work.assigned < outgoing_[work.outgoing].put.length && (i == 0 || work.assigned == 0),
               "process-put ", wanting_slots_[i], " wants slots and has those of ", work.assigned, " B");
  }
}

}  // namespace spinloom::nic
