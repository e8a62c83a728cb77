#include "portals/strategies/inbox.hpp"

#include <algorithm>
#include <utility>

#include "memory/layout/overlap.hpp"
#include "portals/strategies/choice.hpp"
#include "spinloom/rendezvous.h"

namespace spinloom::strategies {

const char* name_of(UnpackPath path) {
  switch (path) {
    case UnpackPath::nic: return "nic";
    case UnpackPath::host: return "host";
    case UnpackPath::unexpected: return "unexpected";
  }
  SPL_ASSERT(false, "unpacked by ", static_cast<int>(path));
}

Result<std::unique_ptr<Inbox>> Inbox::create(Nic nic, const Options& options) {
  if (options.unexpected_block_bytes < options.eager_bytes) {
    return fail(Code::invalid, "an unexpected block of ", options.unexpected_block_bytes,
                " B cannot hold a message of ", options.eager_bytes, " B, which comes without a request");
  }
  std::unique_ptr<Inbox> inbox(new Inbox(std::move(nic), options));
  portals::Interface& interface = inbox->nic_.interface;
  SPL_ASSIGN(inbox->queue_, interface.eq_alloc(options.queue_slots, 1));
  SPL_ASSIGN(inbox->portal_, interface.pt_alloc(inbox->queue_, {.flow_control = true, .index = {}}));
  SPL_TRY(inbox->unexpected_.post(interface, inbox->portal_));
  SPL_TRY(inbox->append_sink());
  SPL_ASSIGN(inbox->plain_context_, create_context(interface, inbox->nic_.images, "receive_plain"));
  inbox->cache_.emplace(ReceiveCache::Nic{interface, inbox->portal_, inbox->queue_, inbox->nic_.images,
                                          inbox->nic_.facts, inbox->nic_.cost, "receive_"});
  return inbox;
}

Result<TypeId> Inbox::commit(const layout::Type& type, const TypeAttributes& attributes, int64_t ready_for) {
  SPL_ASSIGN(const auto overlap, layout::find_overlap(type, 1));
  if (overlap) {
    return fail(Code::invalid, "the type writes some byte twice, which has no defined result in a receive: ",
                layout::describe(*overlap));
  }
  types_.push_back({type, attributes, 0, false, {}});
  const TypeId id{static_cast<uint32_t>(types_.size() - 1)};
  if (ready_for != 0) {
    Committed& committed = types_.back();
    SPL_ASSIGN(const Strategy strategy, strategy_of(committed, ready_for));
    SPL_ASSIGN(const ReceiveCache::Lease lease, cache_->acquire(type, ready_for, strategy, attributes));
    committed.counts.push_back(ready_for);
    cache_->give_back(lease);
  }
  return id;
}

Status Inbox::free(TypeId type) {
  SPL_ASSIGN(Committed* const committed, find_type(type));
  committed->is_freed = true;
  return forget_if_unused(*committed);
}

Status Inbox::forget_if_unused(Committed& type) {
  if (!type.is_freed || type.pending_receives > 0) return {};
  for (const int64_t count : std::exchange(type.counts, {})) {
    SPL_ASSIGN(const Strategy strategy, strategy_of(type, count));
    SPL_TRY(cache_->forget(type.type, count, strategy, type.attributes));
  }
  return {};
}

Result<Inbox::Committed*> Inbox::find_type(TypeId type) {
  if (type.value >= types_.size()) return fail(Code::invalid, "there is no type ", type.value);
  if (types_[type.value].is_freed) return fail(Code::invalid, "type ", type.value, " has been freed");
  return &types_[type.value];
}

Result<Strategy> Inbox::strategy_of(const Committed& type, int64_t count) const {
  if (!type.attributes.offload) return Strategy::host_mpitypes;
  SPL_ASSIGN(const Message message, make_message(type.type, count));
  if (options_.strategy && message.bytes != 0 && message.blocks != 1) return *options_.strategy;
  return choose(message, nic_.facts, nic_.cost, options_.general);
}

Result<RequestId> Inbox::post(uint8_t* base, int64_t count, TypeId type, const Envelope& envelope) {
  SPL_ASSIGN(Committed* const committed, find_type(type));
  if (envelope.communicator >= 1u << 30)
    return fail(Code::invalid, "communicator ", envelope.communicator, " is too large");
  SPL_ASSIGN(const Strategy strategy, strategy_of(*committed, count));
  const uint64_t number = requests_.size();
  Request request{.type = type, .base = base};
  SPL_ASSIGN(request.lease, cache_->acquire(committed->type, count, strategy, committed->attributes));
  if (std::ranges::find(committed->counts, count) == committed->counts.end()) committed->counts.push_back(count);
  SPL_ASSIGN(request.counter, counter_for(request, number));
  SPL_ASSIGN(nic::Entry entry, request.lease.receive->entry(base));
  entry.counter = request.counter;
  if (may_ask_first(request)) {
    if (!entry.context.exists()) entry.context = plain_context_;
    SPL_TRY(append_data_entry(request, entry, number));
  }
  entry.match_rank = envelope.source;
  entry.match_bits = envelope.match_bits();
  entry.ignore_bits = envelope.ignore_bits();
  entry.user_ptr = number;
  ++committed->pending_receives;
  requests_.push_back(std::move(request));
  SPL_ASSIGN(std::ignore, nic_.interface.me_append(portal_, entry));
  return RequestId{number};
}

// Appends the entry for data that are asked for: they come as a message of their own, with the request's number in
// their match bits.
Status Inbox::append_data_entry(Request& request, nic::Entry entry, uint64_t number) {
  entry.match_bits = SPL_DATA_BITS | number;
  entry.user_ptr = number;
  SPL_ASSIGN(request.data_entry, nic_.interface.me_append(portal_, entry));
  return {};
}

// Appends an entry that drops data which are longer than their receive, so that their sender completes.
Status Inbox::append_sink() {
  nic::Entry entry;
  entry.match_bits = SPL_NO_DATA_BITS;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  SPL_ASSIGN(std::ignore, nic_.interface.me_append(portal_, entry));
  return {};
}

// Takes a counter for a request, with the values that handlers/receive.h reads; none if no handler needs it.
Result<nic::CounterId> Inbox::counter_for(const Request& request, uint64_t number) {
  if (!request.lease.receive->plan() && !may_ask_first(request)) return nic::CounterId{};
  nic::CounterId counter;
  if (free_counters_.empty()) {
    SPL_ASSIGN(counter, nic_.interface.ct_alloc());
  } else {
    counter = free_counters_.back();
    free_counters_.pop_back();
  }
  const auto bytes = static_cast<uint64_t>(request.lease.receive->message().bytes);
  SPL_TRY(nic_.interface.ct_set(counter, {may_ask_first(request) ? SPL_DATA_BITS | number : 0, bytes}));
  return counter;
}

Result<Inbox::Request*> Inbox::find_pending(RequestId request) {
  if (request.value >= requests_.size()) return fail(Code::invalid, "there is no request ", request.value);
  Request& pending = requests_[request.value];
  if (pending.is_returned) return fail(Code::invalid, "request ", request.value, " has been completed before");
  return &pending;
}

Result<Completion> Inbox::wait(RequestId request) {
  SPL_TRY(find_pending(request));
  while (!requests_[request.value].completion) {
    SPL_ASSIGN(const nic::Event event, nic_.interface.eq_wait(queue_));
    SPL_TRY(on_event(event));
  }
  requests_[request.value].is_returned = true;
  return std::move(*requests_[request.value].completion);
}

Result<std::optional<Completion>> Inbox::test(RequestId request) {
  SPL_TRY(find_pending(request));
  while (const auto event = nic_.interface.eq_get(queue_)) SPL_TRY(on_event(*event));
  Request& pending = requests_[request.value];
  if (!pending.completion) return std::optional<Completion>();
  pending.is_returned = true;
  return std::move(pending.completion);
}

Status Inbox::on_event(const nic::Event& event) {
  switch (event.kind) {
    case nic::EventKind::auto_unlink: return {};  // a block is full, or a receive found its message in one
    case nic::EventKind::auto_free: return unexpected_.on_event(nic_.interface, portal_, event);
    case nic::EventKind::pt_disabled:
      return fail(Code::exhausted, "messages without a receive have filled ", options_.unexpected_blocks, " blocks of ",
                  options_.unexpected_block_bytes, " B; post receives earlier or give more memory");
    default: break;
  }
  SPL_ASSERT(event.user_ptr < requests_.size(), "an event of request ", event.user_ptr);
  return on_message(requests_[event.user_ptr], event);
}

Status Inbox::on_message(Request& request, const nic::Event& event) {
  if ((event.match_bits & SPL_KIND_BITS) == 0 && event.hdr_data != 0) return on_request_to_send(request, event);
  Receive& receive = *request.lease.receive;
  const auto receive_bytes = static_cast<uint64_t>(receive.message().bytes);
  if (event.fail == nic::Fail::handler_fail && event.requested_bytes > receive_bytes) {
    return complete(request, event, UnpackPath::nic, 0, true);
  }
  if (event.fail != nic::Fail::ok) {
    return fail(Code::fault, "the message failed on the NIC: ", nic::name_of(event.fail), ", ", event.dropped_bytes,
                " B dropped");
  }
  const uint64_t bytes = std::min(event.requested_bytes, receive_bytes);
  const bool truncated = event.requested_bytes > receive_bytes;
  const auto unpack = [&](const uint8_t* packed) {
    return receive.unpack(request.base, packed, static_cast<int64_t>(bytes));
  };
  if (event.kind == nic::EventKind::put_overflow) {
    SPL_TRY(unpack(reinterpret_cast<const uint8_t*>(event.start)));
    return complete(request, event, UnpackPath::unexpected, bytes, truncated);
  }
  if (!unpacks_on_host(request.lease.strategy)) return complete(request, event, UnpackPath::nic, bytes, truncated);
  SPL_TRY(unpack(receive.packed()));
  return complete(request, event, UnpackPath::host, bytes, truncated);
}

// Answers a request that the NIC has not answered: it came before its receive, its receive was not ready for a request,
// or the receive takes less.
Status Inbox::on_request_to_send(Request& request, const nic::Event& event) {
  const uint64_t bytes = event.hdr_data & SPL_REQUEST_BYTES_MASK;
  const bool fits = bytes <= static_cast<uint64_t>(request.lease.receive->message().bytes);
  if (event.kind == nic::EventKind::put && event.fail == nic::Fail::ok && request.data_entry.exists() && fits)
    return {};
  if (event.fail != nic::Fail::ok && event.fail != nic::Fail::handler_fail) {
    return fail(Code::fault, "a request failed on the NIC: ", nic::name_of(event.fail));
  }
  if (!fits) {
    SPL_TRY(answer(event, SPL_NO_DATA_BITS));
    return complete(request, event, UnpackPath::nic, 0, true);
  }
  if (!request.data_entry.exists()) {
    SPL_ASSIGN(nic::Entry entry, request.lease.receive->entry(request.base));
    entry.counter = request.counter;
    SPL_TRY(append_data_entry(request, entry, event.user_ptr));
  }
  return answer(event, SPL_DATA_BITS | event.user_ptr);
}

Status Inbox::answer(const nic::Event& event, uint64_t data_bits) {
  std::unique_ptr<uint64_t>& payload = requests_[event.user_ptr].answer_payload;
  payload = std::make_unique<uint64_t>(event.match_bits);
  portals::PutArguments answer;
  answer.local = reinterpret_cast<const uint8_t*>(payload.get());
  answer.length = sizeof(uint64_t);
  answer.target = event.initiator;
  answer.portal = portal_;
  answer.match_bits = SPL_ANSWER_BITS | event.hdr_data >> SPL_REQUEST_BYTES_BITS;
  answer.hdr_data = data_bits;
  answer.event_send_disable = true;
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::react;
  SPL_TRY(nic_.interface.host_work(work));
  return nic_.interface.put(answer);
}

Status Inbox::complete(Request& request, const nic::Event& event, UnpackPath path, uint64_t bytes, bool truncated) {
  SPL_ASSERT(!request.completion, "request ", event.user_ptr, " completes twice");
  const bool asked_first = (event.match_bits & SPL_KIND_BITS) == SPL_DATA_BITS;
  request.completion = {.source = event.initiator,
                        .tag = static_cast<uint32_t>(asked_first ? event.hdr_data : event.match_bits),
                        .bytes = bytes,
                        .truncated = truncated,
                        .unpack_path = path,
                        .strategy = request.lease.strategy,
                        .fallback = request.lease.fallback,
                        .completed_at = nic_.interface.port().now()};
  // The message came without asking, or no data will come: the entry for data is not needed.
  if (request.data_entry.exists() && !asked_first) SPL_TRY(nic_.interface.me_unlink(request.data_entry));
  if (request.counter.exists()) free_counters_.push_back(request.counter);
  cache_->give_back(request.lease);
  Committed& type = types_[request.type.value];
  --type.pending_receives;
  return forget_if_unused(type);
}

}  // namespace spinloom::strategies
