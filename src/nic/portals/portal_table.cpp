// Portal table entries: their life, flow control, and the messages that are under way for them.
#include "nic/portals/portal_table.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::nic {

Status PortalTable::setup(const TableSetup& request) {
  if (request.table >= tables_.size()) return fail(Code::invalid, "there is no portal table ", request.table);
  tables_[request.table].setup = request;
  tables_[request.table].refused = {};
  return {};
}

Result<uint64_t> PortalTable::read_refusals(const RefusalsRead& request) const {
  const auto index = static_cast<size_t>(request.count);
  if (request.table >= tables_.size() || index >= tables_[request.table].refused.size()) {
    return fail(Code::invalid, "there is no count ", index, " of refusals of portal table ", request.table);
  }
  return tables_[request.table].refused[index];
}

Status PortalTable::alloc(const PortalAlloc& request) {
  if (request.queue.exists()) {
    if (!queues_.exists(request.queue)) return fail(Code::invalid, "queue ", request.queue, " does not exist");
  } else if (request.flow_control) {
    return fail(Code::invalid, "portal table entry ", request.portal, ": flow control needs an event queue");
  }
  SPL_ASSIGN(Portal * portal, portals_.create(request.portal));
  portal->index = request.portal;
  portal->queue = request.queue;
  portal->flow_control = request.flow_control;
  if (request.flow_control) queues_.hold(request.queue);
  return {};
}

Status PortalTable::free(PortalIndex index, Actions& out) {
  SPL_ASSIGN(Portal * portal, portals_.get(index));
  uint32_t entries = portal->priority.size() + portal->overflow.size();
  entries_.for_each(
      [&](uint32_t, const ListedEntry& listed) { entries += listed.awaits_context && listed.portal == index ? 1 : 0; });
  if (entries > 0 || portal->messages_open > 0) {
    return fail(Code::invalid, "portal table entry ", index, " is in use: ", entries, " entries and ",
                portal->messages_open, " messages under way");
  }
  while (portal->unexpected.first() != no_slot) release(forget_header(portal->unexpected.first()), out);
  SPL_ASSERT(portal->unexpected.size() == 0, "portal ", index);
  if (portal->flow_control) queues_.unhold(portal->queue);
  portals_.remove(index);
  return {};
}

Result<uint64_t> PortalTable::enable(const PortalEnable& request) {
  SPL_ASSIGN(Portal * portal, portals_.get(request.portal));
  if (!request.enabled && !close(*portal)) {
    return fail(Code::exhausted, "portal table entry ", request.portal,
                ": a peer that is stopped uses one of its entries and does not leave");
  }
  const bool was_enabled = std::exchange(portal->enabled, request.enabled);
  note_change(*portal);
  return was_enabled ? 1 : 0;
}

bool PortalTable::answer_when_empty(PortalIndex index, const Answer& answer) {
  Portal* const portal = portals_.find(index);
  if (portal == nullptr || portal->messages_open == 0) return false;
  portal->disablers.push_back(answer);
  return true;
}

void PortalTable::forget_queue(QueueId queue) {
  portals_.for_each([&](PortalIndex, Portal& portal) {
    if (portal.queue != queue) return;
    portal.queue = {};
    portal.flow_control = false;
  });
}

// Disables the portal table entries with flow control that post to the full queue; reserved slots hold their events.
void PortalTable::queue_filled(QueueId queue, Actions& out) {
  portals_.for_each([&](PortalIndex, Portal& portal) {
    if (portal.queue != queue || !portal.flow_control || !portal.enabled) return;
    portal.enabled = false;
    portal.disabled_event_due = true;
    contexts_.tally(Telemetry::portals_disabled);
    if (portal.messages_open == 0) post_disabled(portal, out);
  });
}

void PortalTable::post_disabled(Portal& portal, Actions& out) {
  if (!std::exchange(portal.disabled_event_due, false)) return;
  SPL_ASSERT(portal.flow_control && portal.messages_open == 0, "portal ", portal.index, ", ", portal.messages_open,
             " open");
  Event event;
  event.kind = EventKind::pt_disabled;
  event.fail = Fail::pt_disabled;
  event.portal = portal.index;
  queues_.post(portal.queue, event, out);
}

bool PortalTable::has_header_room(const Portal& portal) const {
  return portal.unexpected.size() < std::min(headers_max_, tables_[table_of(portal.index.value)].setup.headers_max);
}

bool PortalTable::has_event_room(const Portal& portal, const Entry& entry) const {
  const uint32_t events = portal.flow_control ? events_of(entry) : 0;
  return events == 0 || queues_.has_room(portal.queue, events);
}

void PortalTable::count_refusal(PortalIndex index, Fail failure) {
  const Refusal counted = failure == Fail::perm_violation ? Refusal::permission
                          : failure == Fail::op_violation ? Refusal::operation
                                                          : Refusal::dropped;
  ++tables_[table_of(index.value)].refused[static_cast<size_t>(counted)];
  contexts_.tally(Telemetry::refused_messages);
}

void PortalTable::disable(PortalIndex index, bool post_event) {
  Portal& portal = *portals_.find(index);
  SPL_ASSERT(portal.flow_control, "portal ", index);
  portal.enabled = false;
  portal.disabled_event_due = portal.disabled_event_due || post_event;
  contexts_.tally(Telemetry::portals_disabled);
  ++portal.messages_open;  // ends after the messages that were matched before, and posts the event then
}

PortalTable::Attached PortalTable::attach(uint32_t slot, const MatchKey& key, Operation operation,
                                          const MessageFields& fields, uint64_t offset, uint64_t taken) {
  ListedEntry& listed = entries_[slot];
  Portal& portal = *portals_.find(listed.portal);
  ++portal.messages_open;
  if (portal.flow_control && !listed.entry.options.event_comm_disable) queues_.reserve(portal.queue);
  ++listed.messages_open;
  Attached attached;
  if (keeps_headers(listed)) attached.header = keep_header(slot, key, operation, fields, offset, taken);
  attached.unlinked = use(slot, taken);
  if (attached.unlinked && portal.flow_control && !listed.entry.options.event_unlink_disable) {
    listed.unlink_event_reserved = true;
    queues_.reserve(portal.queue);
  }
  return attached;
}

void PortalTable::detach(uint32_t slot, const Attached& attached, bool comes_back, Actions& out) {
  ListedEntry& listed = entries_[slot];
  const PortalIndex index = listed.portal;
  const bool was_reserved = !listed.entry.options.event_comm_disable;
  uint32_t claimer = attached.header == no_slot ? no_slot : headers_[attached.header].claimer;
  if (claimer != no_slot && !is_first_claim(attached.header)) claimer = no_slot;  // one before it reports it, too
  if (claimer != no_slot) {
    const EventQueues::HostRequestScope host_request(queues_);
    report_overflow(attached.header, entries_[claimer], out);
    (void)forget_header(attached.header);  // this entry, which goes below
  }
  SPL_ASSERT(listed.messages_open > 0, "entry ", listed.id);
  --listed.messages_open;
  if (comes_back) {
    SPL_ASSERT(attached.unlinked, "entry ", listed.id, " has not left");
    listed.auto_unlinked = false;
    unreserve_unlink_event(listed);
    link(slot, out);
  } else {
    post_unlinked(slot, out);
  }
  release(slot, out);
  if (claimer != no_slot) {
    const EventQueues::HostRequestScope host_request(queues_);
    const bool has_more = entries_[claimer].claims_open > 1;
    end_claim(claimer, out);
    if (has_more) post_claims(claimer, out);
  }
  if (const Portal* const portal = portals_.find(index); was_reserved && portal != nullptr && portal->flow_control) {
    queues_.unreserve(portal->queue);
  }
}

void PortalTable::leave(PortalIndex index, Actions& out) {
  Portal* const portal = portals_.find(index);
  if (portal == nullptr) return;
  SPL_ASSERT(portal->messages_open > 0, "portal ", index);
  if (--portal->messages_open > 0) return;
  if (portal->disabled_event_due) post_disabled(*portal, out);
  if (portal->disablers.empty()) return;
  for (Answer& answer : std::exchange(portal->disablers, {})) out.add<Answer>(std::move(answer));
}

}  // namespace spinloom::nic
