#include "portals/testbed/program_run.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace spinloom::testbed {
namespace {

using model::OperationKind;

constexpr uint64_t own_tokens = uint64_t{1} << 62;  // the interface counts its tokens from 1
constexpr uint32_t queue_slots = 4096;              // never full
constexpr uint32_t disabled_slots = 64;  // no program makes so many PT_DISABLED events

model::EventKind kind_of(nic::EventKind kind) {
  switch (kind) {
    case nic::EventKind::put: return model::EventKind::put;
    case nic::EventKind::put_overflow: return model::EventKind::put_overflow;
    case nic::EventKind::get: return model::EventKind::get;
    case nic::EventKind::get_overflow: return model::EventKind::get_overflow;
    case nic::EventKind::atomic: return model::EventKind::atomic;
    case nic::EventKind::atomic_overflow: return model::EventKind::atomic_overflow;
    case nic::EventKind::fetch_atomic: return model::EventKind::fetch_atomic;
    case nic::EventKind::fetch_atomic_overflow: return model::EventKind::fetch_atomic_overflow;
    case nic::EventKind::reply: return model::EventKind::reply;
    case nic::EventKind::send: return model::EventKind::send;
    case nic::EventKind::ack: return model::EventKind::ack;
    case nic::EventKind::pt_disabled: return model::EventKind::pt_disabled;
    case nic::EventKind::link: return model::EventKind::link;
    case nic::EventKind::auto_unlink: return model::EventKind::auto_unlink;
    case nic::EventKind::auto_free: return model::EventKind::auto_free;
    case nic::EventKind::search: return model::EventKind::search;
    case nic::EventKind::dma: break;
  }
  SPL_ASSERT(false, "no handler runs, but there is an event of kind ", name_of(kind));
}

model::Fail fail_of(nic::Fail fail) {
  switch (fail) {
    case nic::Fail::ok: return model::Fail::ok;
    case nic::Fail::undeliverable: return model::Fail::undeliverable;
    case nic::Fail::dropped: return model::Fail::dropped;
    case nic::Fail::pt_disabled: return model::Fail::pt_disabled;
    case nic::Fail::perm_violation: return model::Fail::perm_violation;
    case nic::Fail::op_violation: return model::Fail::op_violation;
    case nic::Fail::no_match: return model::Fail::no_match;
    default: break;
  }
  SPL_ASSERT(false, "no handler runs and all memory is there, but an event says: ", name_of(fail));
}

bool is_answer(nic::EventKind kind) { return kind == nic::EventKind::ack || kind == nic::EventKind::reply; }

bool has_message(const nic::Event& event) {
  switch (event.kind) {
    case nic::EventKind::send:
    case nic::EventKind::pt_disabled:
    case nic::EventKind::link:
    case nic::EventKind::auto_unlink:
    case nic::EventKind::auto_free: return false;
    case nic::EventKind::search: return event.fail == nic::Fail::ok;
    default: return !is_answer(event.kind);
  }
}

bool is_get(nic::EventKind kind) { return kind == nic::EventKind::get || kind == nic::EventKind::get_overflow; }

bool is_atomic(nic::EventKind kind) {
  return kind == nic::EventKind::atomic || kind == nic::EventKind::atomic_overflow ||
         kind == nic::EventKind::fetch_atomic || kind == nic::EventKind::fetch_atomic_overflow;
}

model::Count count_of(nic::CounterValue value) {
  return {static_cast<uint16_t>(value.success), static_cast<uint16_t>(value.failure)};
}

std::optional<nic::Trigger> trigger_of(const std::vector<nic::CounterId>& counters, const model::Operation& operation) {
  if (!operation.trigger) return std::nullopt;
  return nic::Trigger{counters.at(operation.trigger->counter), operation.trigger->threshold};
}

// Translates the result of a call. Errors that Portals 4 does not know stay Errors.
Result<model::Returned> returned(const Status& status) {
  if (status) return model::Returned{};
  switch (status.error().code) {
    case Code::invalid: return model::Returned{model::Code::invalid, {}, {}};
    case Code::exhausted: return model::Returned{model::Code::no_space, {}, {}};
    default: return status.error();
  }
}

template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status{} : Status{result.error()};
}

}  // namespace

Result<std::unique_ptr<ProgramRun>> ProgramRun::create(const model::Program& program,
                                                       std::vector<portals::Interface*> interfaces) {
  SPL_ASSERT(interfaces.size() >= program.ranks.size(), program.ranks.size(), " ranks need interfaces");
  std::unique_ptr<ProgramRun> run(new ProgramRun(program));
  run->ranks_.resize(program.ranks.size());
  for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) SPL_TRY(run->set_up(rank, *interfaces[rank]));
  return run;
}

Status ProgramRun::set_up(uint16_t number, portals::Interface& interface) {
  const model::Setup& setup = program_.ranks[number].setup;
  Rank& rank = ranks_[number];
  rank.interface = &interface;
  rank.matching = setup.matching;
  rank.has_lists = model::has_lists(program_.ranks[number]);
  rank.entries.resize(program_.ranks[number].operations.size());
  rank.memory.resize(setup.memory_bytes);
  for (uint16_t at = 0; at < setup.memory_bytes; ++at) rank.memory[at] = model::first_byte(number, at);
  const auto limit = [](uint16_t most) { return most == model::any ? UINT32_MAX : uint32_t{most}; };
  interface.table_setup({0, setup.user, limit(setup.entries_max), limit(setup.list_max), limit(setup.headers_max)});
  const bool may_fill = setup.arrivals_max != model::any;
  SPL_ASSIGN(rank.queues[0], may_fill ? interface.eq_alloc(setup.arrivals_max + disabled_slots, disabled_slots)
                                      : interface.eq_alloc(queue_slots));
  SPL_ASSIGN(rank.queues[1], interface.eq_alloc(queue_slots));
  for (uint16_t i = 0; i < setup.counters; ++i) {
    SPL_ASSIGN(rank.counters.emplace_back(), interface.ct_alloc(limit(setup.triggered_max)));
  }
  portals::PortalOptions options;
  options.flow_control = setup.flow_control;
  options.index = nic::PortalIndex{0};
  SPL_ASSIGN(rank.portal, interface.pt_alloc(setup.has_queue ? rank.queues[0] : nic::QueueId{}, options));
  return {};
}

bool ProgramRun::may_call(uint16_t number) {
  if (!has_calls(number)) return false;
  Rank& rank = ranks_[number];
  const model::Operation& operation = program_.ranks[number].operations[next_of(number)];
  if (operation.kind == OperationKind::settle) return false;
  if (operation.trigger) return true;
  if (operation.kind == OperationKind::ct_wait) {
    const nic::CounterValue value = rank.interface->ct_get(rank.counters.at(operation.counter));
    return value.success >= operation.number || value.failure > 0;
  }
  if (operation.kind != OperationKind::eq_wait) return true;
  std::optional<model::Event>& ahead = rank.ahead[operation.departures ? 1 : 0];
  if (!ahead) ahead = take(rank, operation.departures);
  return ahead.has_value();
}

bool ProgramRun::is_settling(uint16_t rank) const {
  return has_calls(rank) && program_.ranks[rank].operations[next_of(rank)].kind == OperationKind::settle;
}

void ProgramRun::pass_settle() {
  for (uint16_t rank = 0; rank < ranks_.size(); ++rank) {
    if (is_settling(rank)) ranks_[rank].seen.returned.emplace_back();
  }
}

Status ProgramRun::call(uint16_t number) {
  Rank& rank = ranks_[number];
  const auto place = static_cast<uint16_t>(next_of(number));
  SPL_ASSIGN(const model::Returned said, perform(number, program_.ranks[number].operations[place], place));
  rank.seen.returned.push_back(said);
  return {};
}

Result<model::Returned> ProgramRun::perform(uint16_t number, const model::Operation& operation, uint16_t place) {
  Rank& rank = ranks_[number];
  portals::Interface& interface = *rank.interface;
  const uint16_t name = model::name_of(number, place);
  const auto trigger = trigger_of(rank.counters, operation);
  switch (operation.kind) {
    case OperationKind::append: {
      const auto list = operation.list == model::List::priority ? nic::ListKind::priority : nic::ListKind::overflow;
      const auto id = interface.me_append(rank.portal, entry_of(rank, operation.entry, name), list, trigger);
      if (id) rank.entries[place] = *id;
      return returned(status_of(id));
    }
    case OperationKind::unlink: {
      const nic::EntryId id = rank.entries.at(operation.number);
      if (!id.exists()) return model::Returned{model::Code::invalid, {}, {}};
      if (trigger) return returned(interface.me_unlink(id, *trigger));
      const auto unlinked = interface.me_unlink(id);
      if (unlinked && *unlinked == portals::Unlinked::in_use) return model::Returned{model::Code::in_use, {}, {}};
      return returned(status_of(unlinked));
    }
    case OperationKind::search:
      return returned(
          status_of(interface.me_search(rank.portal, entry_of(rank, operation.entry, name), operation.removes)));
    case OperationKind::put:
    case OperationKind::get:
    case OperationKind::atomic:
    case OperationKind::fetch_atomic: return returned(move(rank, operation, name));
    case OperationKind::ct_inc: {
      const nic::CounterValue by{operation.success, operation.failure};
      const nic::CounterId counter = rank.counters.at(operation.counter);
      return returned(trigger ? interface.ct_inc(counter, by, trigger) : change(rank, nic::CounterInc{counter, by}));
    }
    case OperationKind::ct_set: {
      const nic::CounterValue to{operation.success, operation.failure};
      const nic::CounterId counter = rank.counters.at(operation.counter);
      return returned(trigger ? interface.ct_set(counter, to, trigger) : change(rank, nic::CounterSet{counter, to}));
    }
    case OperationKind::ct_get:
      return model::Returned{model::Code::ok, count_of(interface.ct_get(rank.counters.at(operation.counter))), {}};
    case OperationKind::ct_wait: {
      const auto value = interface.ct_wait(rank.counters.at(operation.counter), operation.number);
      if (!value) return value.error();
      return model::Returned{model::Code::ok, count_of(*value), {}};
    }
    case OperationKind::ct_cancel: return returned(interface.ct_cancel(rank.counters.at(operation.counter)));
    case OperationKind::pt_disable: return returned(status_of(interface.pt_disable(rank.portal)));
    case OperationKind::pt_enable: return returned(interface.pt_enable(rank.portal));
    case OperationKind::bundle_begin:
      interface.bundle_begin();
      ++rank.bundles;
      return model::Returned{};
    case OperationKind::bundle_end:
      if (rank.bundles > 0) --rank.bundles;
      return returned(interface.bundle_end());
    case OperationKind::settle: break;
    case OperationKind::eq_get:
    case OperationKind::eq_wait: {
      auto event = std::exchange(rank.ahead[operation.departures ? 1 : 0], std::nullopt);
      if (!event) event = take(rank, operation.departures);
      return model::Returned{event ? model::Code::ok : model::Code::empty, {}, event};
    }
  }
  return fail(Code::unsupported, "a program's ranks settle together");
}

// Changes a counter and waits until the host can read the new value, as the C functions do.
Status ProgramRun::change(Rank& rank, const nic::CommandBody& body) {
  portals::Port& port = rank.interface->port();
  const uint64_t token = own_tokens + rank.seen.returned.size();
  port.submit(nic::Command{body, {}, token});
  for (;;) {
    if (const auto answer = port.take_answer(token)) return status_of(*answer);
    SPL_TRY(port.wait());
  }
}

std::vector<nic::IovecElement> ProgramRun::list_of(Rank& rank, model::Region memory,
                                                   const std::vector<model::Region>& pieces) const {
  std::vector<nic::IovecElement> list;
  for (const model::Region& piece : pieces) {
    list.push_back({rank.memory.data() + memory.offset + piece.offset, piece.length});
  }
  return list;
}

nic::Entry ProgramRun::entry_of(Rank& rank, const model::Entry& entry, uint16_t name) const {
  nic::Entry made;
  made.start = rank.memory.data() + entry.memory.offset;
  made.length = entry.memory.length;
  if (!entry.pieces.empty()) made.iovec = rank.lists.emplace_back(list_of(rank, entry.memory, entry.pieces));
  made.match_rank = entry.match_rank == model::any ? nic::Rank::any() : nic::Rank{entry.match_rank};
  made.match_bits = entry.match_bits;
  made.ignore_bits = rank.matching ? entry.ignore_bits : UINT64_MAX;  // PtlLEAppend does the same
  made.min_free = entry.manage_local ? entry.min_free : 0;
  made.user = entry.user == model::any ? nic::any_user : entry.user;
  made.user_ptr = name;
  if (entry.counter != model::none) made.counter = rank.counters.at(entry.counter);
  made.options.op_put = entry.op_put;
  made.options.op_get = entry.op_get;
  made.options.use_once = entry.use_once;
  made.options.manage_local = entry.manage_local;
  made.options.no_truncate = entry.no_truncate;
  made.options.count_unexpected = entry.count_unexpected;
  made.options.unexpected_hdr_disable = entry.unexpected_hdr_disable;
  made.options.event_link_disable = entry.link_disable;
  made.options.event_comm_disable = entry.comm_disable;
  made.options.event_flowctrl_disable = entry.flowctrl_disable;
  made.options.event_success_disable = entry.success_disable;
  made.options.event_over_disable = entry.over_disable;
  made.options.event_unlink_disable = entry.unlink_disable;
  made.options.ct_comm = entry.ct_comm;
  made.options.ct_overflow = entry.ct_overflow;
  made.options.ct_bytes = entry.ct_bytes;
  return made;
}

nic::Put ProgramRun::put_of(Rank& rank, const model::Movement& movement, uint16_t name) const {
  const model::Descriptor& descriptor = movement.descriptor;
  nic::Put put;
  put.local = rank.memory.data() + movement.local.offset;
  if (!movement.pieces.empty()) {
    put.local = nullptr;
    put.descriptor = nic::Descriptor::make(list_of(rank, movement.local, movement.pieces));
    put.descriptor_offset = movement.skip;
  }
  put.length = movement.local.length;
  put.target = nic::Rank{movement.target};
  put.portal = nic::PortalIndex{0};
  put.match_bits = movement.match_bits;
  put.remote_offset = movement.remote_offset;
  put.hdr_data = name;
  put.user_ptr = name;
  put.ack_request = static_cast<nic::AckRequest>(movement.ack);
  if (descriptor.has_queue) put.queue = rank.queues[1];
  if (descriptor.counter != model::none) put.counter = rank.counters.at(descriptor.counter);
  put.ct_send = descriptor.ct_send && descriptor.counter != model::none;
  put.ct_ack = descriptor.ct_ack && descriptor.counter != model::none;
  put.ct_bytes = descriptor.ct_bytes;
  put.event_send_disable = descriptor.send_disable;
  put.event_success_disable = descriptor.success_disable;
  return put;
}

nic::ReplyTo ProgramRun::reply_of(Rank& rank, const model::Movement& movement, uint16_t offset, uint16_t name) const {
  const model::Descriptor& descriptor = movement.descriptor;
  nic::ReplyTo reply;
  reply.local = rank.memory.data() + offset;
  reply.user_ptr = name;
  if (descriptor.has_queue) reply.queue = rank.queues[1];
  if (descriptor.counter != model::none) reply.counter = rank.counters.at(descriptor.counter);
  reply.ct_reply = descriptor.ct_reply && descriptor.counter != model::none;
  reply.ct_bytes = descriptor.ct_bytes;
  reply.event_success_disable = descriptor.success_disable;
  return reply;
}

Status ProgramRun::move(Rank& rank, const model::Operation& operation, uint16_t name) {
  const model::Movement& movement = operation.movement;
  const auto trigger = trigger_of(rank.counters, operation);
  if (operation.kind == OperationKind::put) return rank.interface->put(put_of(rank, movement, name), trigger);
  if (operation.kind == OperationKind::get) {
    nic::Get get;
    get.reply = reply_of(rank, movement, movement.local.offset, name);
    if (!movement.pieces.empty()) {
      get.reply.local = nullptr;
      get.reply.descriptor = nic::Descriptor::make(list_of(rank, movement.local, movement.pieces));
      get.reply.descriptor_offset = movement.skip;
    }
    get.length = movement.local.length;
    get.target = nic::Rank{movement.target};
    get.portal = nic::PortalIndex{0};
    get.match_bits = movement.match_bits;
    get.remote_offset = movement.remote_offset;
    return rank.interface->get(get, trigger);
  }
  nic::Atomic atomic;
  atomic.put = put_of(rank, movement, name);
  atomic.operation = static_cast<nic::AtomicOperation>(movement.atomic);
  atomic.datatype = movement.is_signed ? nic::Datatype::int64 : nic::Datatype::uint64;
  if (operation.kind == OperationKind::fetch_atomic) {
    atomic.put.ack_request = nic::AckRequest::none;
    atomic.operand = spin::operand_of(atomic.datatype, &movement.operand);
    atomic.fetch = reply_of(rank, movement, movement.fetch_offset, name);
  }
  return rank.interface->atomic(atomic, trigger);
}

std::optional<model::Event> ProgramRun::take(Rank& rank, bool departures) {
  const auto event = rank.interface->eq_get(rank.queues[departures ? 1 : 0]);
  if (!event) return std::nullopt;
  rank.has_gap = rank.has_gap || event->after_gap;
  return event_of(rank, *event);
}

model::Event ProgramRun::event_of(const Rank& rank, const nic::Event& event) const {
  const auto word = [](uint64_t value) { return static_cast<uint16_t>(value); };
  model::Event made;
  made.kind = kind_of(event.kind);
  made.fail = fail_of(event.fail);
  if (event.kind != nic::EventKind::pt_disabled) made.user_ptr = word(event.user_ptr);
  if (is_answer(event.kind) && event.fail == nic::Fail::ok) {
    made.moved = word(event.manipulated_bytes);
    made.remote_offset = word(event.remote_offset);
    made.list = event.in_overflow ? model::List::overflow : model::List::priority;
  }
  if (!has_message(event)) return made;
  made.list = event.in_overflow ? model::List::overflow : model::List::priority;
  made.initiator = word(event.initiator.value);
  made.user = word(event.user);
  if (rank.matching) made.match_bits = word(event.match_bits);
  made.requested = word(event.requested_bytes);
  made.moved = word(event.manipulated_bytes);
  made.remote_offset = word(event.remote_offset);
  const bool has_start = event.kind != nic::EventKind::search && (made.moved > 0 || !rank.has_lists);
  if (has_start) made.start = word(event.start - reinterpret_cast<uint64_t>(rank.memory.data()));
  if (!is_get(event.kind)) made.hdr_data = word(event.hdr_data);
  if (is_atomic(event.kind) || event.kind == nic::EventKind::search)
    made.atomic = static_cast<model::AtomicKind>(event.atomic);
  return made;
}

Result<model::Outcome> ProgramRun::finish() {
  model::Outcome outcome;
  for (Rank& rank : ranks_) {
    if (rank.is_dead) {
      outcome.ranks.emplace_back();
      continue;
    }
    for (const bool departures : {false, true}) {
      std::vector<model::Event>& left = departures ? rank.seen.departures : rank.seen.arrivals;
      if (auto& ahead = rank.ahead[departures ? 1 : 0]) left.push_back(*ahead);
      while (const auto event = take(rank, departures)) left.push_back(*event);
    }
    if (rank.has_gap) return fail(Code::mismatch, "a queue has lost events");
    for (const nic::CounterId counter : rank.counters)
      rank.seen.counters.push_back(count_of(rank.interface->ct_get(counter)));
    rank.seen.memory = rank.memory;
    const auto refusals = [&](nic::Refusal which) { return rank.interface->refusals(0, which); };
    SPL_ASSIGN(const uint64_t dropped, refusals(nic::Refusal::dropped));
    SPL_ASSIGN(const uint64_t permission, refusals(nic::Refusal::permission));
    SPL_ASSIGN(const uint64_t operation, refusals(nic::Refusal::operation));
    rank.seen.dropped = static_cast<uint16_t>(dropped);
    rank.seen.permission_violations = static_cast<uint16_t>(permission);
    rank.seen.operation_violations = static_cast<uint16_t>(operation);
    outcome.ranks.push_back(rank.seen);
    SPL_TRY(give_back(rank));
  }
  return outcome;
}

// Gives all that the program used back to the interface.
Status ProgramRun::give_back(Rank& rank) {
  portals::Interface& interface = *rank.interface;
  for (; rank.bundles > 0; --rank.bundles) std::ignore = interface.bundle_end();
  interface.table_setup({0, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX});
  for (const nic::CounterId counter : rank.counters) SPL_TRY(interface.ct_free(counter));
  nic::Entry everything;
  everything.ignore_bits = UINT64_MAX;
  everything.options.event_over_disable = true;
  SPL_TRY(status_of(interface.me_search(rank.portal, everything, true)));
  for (const nic::EntryId entry : rank.entries) {
    if (!entry.exists()) continue;
    const auto unlinked = interface.me_unlink(entry);
    if (unlinked && *unlinked == portals::Unlinked::in_use) {
      return fail(Code::fault, "an entry is in use, but nothing is under way and no header waits");
    }
  }
  SPL_TRY(interface.pt_free(rank.portal));
  for (const nic::QueueId queue : rank.queues) SPL_TRY(interface.eq_free(queue));
  return {};
}

}  // namespace spinloom::testbed
