#include "portals/strategies/inbox.hpp"

#include <algorithm>
#include <utility>

#include "memory/layout/overlap.hpp"
#include "portals/strategies/choice.hpp"
#include "spinloom/rendezvous.h"

namespace spinloom::strategies {

const char* name_of(Unpacked by) {
  switch (by) {
    case Unpacked::nic: return "nic";
    case Unpacked::host: return "host";
    case Unpacked::unexpected: return "unexpected";
  }
  SPL_ASSERT(false, "unpacked by ", static_cast<int>(by));
}

Result<std::unique_ptr<Inbox>> Inbox::create(Nic nic, const Options& options) {
  if (options.unexpected_block_bytes < options.eager_bytes) {
    return fail(Code::invalid, "an unexpected block of ", options.unexpected_block_bytes,
                " B cannot hold a message of ", options.eager_bytes, " B, which comes without a request");
  }
  std::unique_ptr<Inbox> made(new Inbox(std::move(nic), options));
  portals::Interface& interface = made->nic_.interface;
  SPL_ASSIGN(made->queue_, interface.eq_alloc(options.queue_slots, 1));
  SPL_ASSIGN(made->portal_, interface.pt_alloc(made->queue_, {.flow_control = true, .want = {}}));
  SPL_TRY(made->early_.post(interface, made->portal_));
  SPL_TRY(made->append_sink());
  SPL_ASSIGN(made->plain_, create_context(interface, made->nic_.images, "receive_plain"));
  made->cache_.emplace(ReceiveCache::Nic{interface, made->portal_, made->queue_, made->nic_.images, made->nic_.facts,
                                         made->nic_.cost, "receive_"});
  return made;
}

Result<TypeId> Inbox::commit(const layout::Type& type, const TypeAttributes& attributes, int64_t ready_for) {
  SPL_ASSIGN(const auto overlap, layout::find_overlap(type, 1));
  if (overlap) {
    return fail(Code::invalid, "the type writes some byte twice, which has no defined result in a receive: ",
                layout::describe(*overlap));
  }
  types_.push_back({type, attributes, 0, false, {}});
  const TypeId made{static_cast<uint32_t>(types_.size() - 1)};
  if (ready_for != 0) {
    Committed& kept = types_.back();
    SPL_ASSIGN(const Strategy strategy, strategy_of(kept, ready_for));
    SPL_ASSIGN(const ReceiveCache::Lease lease, cache_->acquire(type, ready_for, strategy, attributes));
    kept.counts.push_back(ready_for);
    cache_->give_back(lease);
  }
  return made;
}

Status Inbox::free(TypeId type) {
  SPL_ASSIGN(Committed* const found, committed(type));
  found->freed = true;
  return forget_if_unused(*found);
}

Status Inbox::forget_if_unused(Committed& type) {
  if (!type.freed || type.receives > 0) return {};
  for (const int64_t count : std::exchange(type.counts, {})) {
    SPL_ASSIGN(const Strategy strategy, strategy_of(type, count));
    SPL_TRY(cache_->forget(type.type, count, strategy, type.attributes));
  }
  return {};
}

Result<Inbox::Committed*> Inbox::committed(TypeId type) {
  if (type.value >= types_.size()) return fail(Code::invalid, "there is no type ", type.value);
  if (types_[type.value].freed) return fail(Code::invalid, "type ", type.value, " has been freed");
  return &types_[type.value];
}

Result<Strategy> Inbox::strategy_of(const Committed& type, int64_t count) const {
  if (!type.attributes.offload) return Strategy::host_mpitypes;
  SPL_ASSIGN(const Message message, make_message(type.type, count));
  if (options_.strategy && message.bytes != 0 && message.blocks != 1) return *options_.strategy;
  return choose(message, nic_.facts, nic_.cost, options_.general);
}

Result<RequestId> Inbox::post(uint8_t* base, int64_t count, TypeId type, const Wanted& wanted) {
  SPL_ASSIGN(Committed* const of, committed(type));
  if (wanted.communicator >= 1u << 30)
    return fail(Code::invalid, "communicator ", wanted.communicator, " is too large");
  SPL_ASSIGN(const Strategy strategy, strategy_of(*of, count));
  const uint64_t number = requests_.size();
  Request request{.type = type, .base = base};
  SPL_ASSIGN(request.lease, cache_->acquire(of->type, count, strategy, of->attributes));
  if (std::ranges::find(of->counts, count) == of->counts.end()) of->counts.push_back(count);
  SPL_ASSIGN(request.counter, counter_for(request, number));
  SPL_ASSIGN(nic::Entry entry, request.lease.receive->entry(base));
  entry.counter = request.counter;
  if (may_be_asked(request)) {
    if (!entry.context.exists()) entry.context = plain_;
    SPL_TRY(append_data_entry(request, entry, number));
  }
  entry.match_rank = wanted.source;
  entry.match_bits = wanted.match_bits();
  entry.ignore_bits = wanted.ignore_bits();
  entry.user_ptr = number;
  ++of->receives;
  requests_.push_back(std::move(request));
  SPL_ASSIGN(std::ignore, nic_.interface.me_append(portal_, entry));
  return RequestId{number};
}

// Appends the entry for data that are asked for: they come as a message of their own, with the request's number in
// their match bits.
Status Inbox::append_data_entry(Request& request, nic::Entry entry, uint64_t number) {
  entry.match_bits = SPL_DATA_BITS | number;
  entry.user_ptr = number;
  SPL_ASSIGN(request.data, nic_.interface.me_append(portal_, entry));
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
  if (!request.lease.receive->plan() && !may_be_asked(request)) return nic::CounterId{};
  nic::CounterId counter;
  if (free_counters_.empty()) {
    SPL_ASSIGN(counter, nic_.interface.ct_alloc());
  } else {
    counter = free_counters_.back();
    free_counters_.pop_back();
  }
  const auto bytes = static_cast<uint64_t>(request.lease.receive->message().bytes);
  SPL_TRY(nic_.interface.ct_set(counter, {may_be_asked(request) ? SPL_DATA_BITS | number : 0, bytes}));
  return counter;
}

Result<Inbox::Request*> Inbox::pending(RequestId request) {
  if (request.value >= requests_.size()) return fail(Code::invalid, "there is no request ", request.value);
  Request& found = requests_[request.value];
  if (found.completed) return fail(Code::invalid, "request ", request.value, " has been completed before");
  return &found;
}

Result<Completion> Inbox::wait(RequestId request) {
  SPL_TRY(pending(request));
  while (!requests_[request.value].completion) {
    SPL_ASSIGN(const nic::Event event, nic_.interface.eq_wait(queue_));
    SPL_TRY(on_event(event));
  }
  requests_[request.value].completed = true;
  return std::move(*requests_[request.value].completion);
}

Result<std::optional<Completion>> Inbox::test(RequestId request) {
  SPL_TRY(pending(request));
  while (const auto event = nic_.interface.eq_get(queue_)) SPL_TRY(on_event(*event));
  Request& found = requests_[request.value];
  if (!found.completion) return std::optional<Completion>();
  found.completed = true;
  return std::move(found.completion);
}

Status Inbox::on_event(const nic::Event& event) {
  switch (event.kind) {
    case nic::EventKind::auto_unlink: return {};  // a block is full, or a receive found its message in one
    case nic::EventKind::auto_free: return early_.on_event(nic_.interface, portal_, event);
    case nic::EventKind::pt_disabled:
      return fail(Code::exhausted, "messages without a receive have filled ", options_.unexpected_blocks, " blocks of ",
                  options_.unexpected_block_bytes, " B; post receives earlier or give more memory");
    default: break;
  }
  SPL_ASSERT(event.user_ptr < requests_.size(), "an event of request ", event.user_ptr);
  return on_message(requests_[event.user_ptr], event);
}

Status Inbox::on_message(Request& request, const nic::Event& event) {
  if ((event.match_bits & SPL_KIND_BITS) == 0 && event.hdr_data != 0) return on_request(request, event);
  Receive& receive = *request.lease.receive;
  const auto most = static_cast<uint64_t>(receive.message().bytes);
  if (event.fail == nic::Fail::handler_fail && event.requested_bytes > most) {
    return complete(request, event, Unpacked::nic, 0, true);
  }
  if (event.fail != nic::Fail::ok) {
    return fail(Code::fault, "the message failed on the NIC: ", nic::name_of(event.fail), ", ", event.dropped_bytes,
                " B dropped");
  }
  const uint64_t bytes = std::min(event.requested_bytes, most);
  const bool truncated = event.requested_bytes > most;
  const auto unpack = [&](const uint8_t* packed) {
    return receive.unpack(request.base, packed, static_cast<int64_t>(bytes));
  };
  if (event.kind == nic::EventKind::put_overflow) {
    SPL_TRY(unpack(reinterpret_cast<const uint8_t*>(event.start)));
    return complete(request, event, Unpacked::unexpected, bytes, truncated);
  }
  if (!unpacks_on_host(request.lease.strategy)) return complete(request, event, Unpacked::nic, bytes, truncated);
  SPL_TRY(unpack(receive.landed()));
  return complete(request, event, Unpacked::host, bytes, truncated);
}

// Answers a request that the NIC has not answered: it came before its receive, its receive was not ready for a request,
// or the receive takes less.
Status Inbox::on_request(Request& request, const nic::Event& event) {
  const uint64_t bytes = event.hdr_data & SPL_REQUEST_BYTES_MASK;
  const bool fits = bytes <= static_cast<uint64_t>(request.lease.receive->message().bytes);
  if (event.kind == nic::EventKind::put && event.fail == nic::Fail::ok && request.data.exists() && fits) return {};
  if (event.fail != nic::Fail::ok && event.fail != nic::Fail::handler_fail) {
    return fail(Code::fault, "a request failed on the NIC: ", nic::name_of(event.fail));
  }
  if (!fits) {
    SPL_TRY(answer(event, SPL_NO_DATA_BITS));
    return complete(request, event, Unpacked::nic, 0, true);
  }
  if (!request.data.exists()) {
    SPL_ASSIGN(nic::Entry entry, request.lease.receive->entry(request.base));
    entry.counter = request.counter;
    SPL_TRY(append_data_entry(request, entry, event.user_ptr));
  }
  return answer(event, SPL_DATA_BITS | event.user_ptr);
}

Status Inbox::answer(const nic::Event& event, uint64_t data_bits) {
  std::unique_ptr<uint64_t>& bytes = requests_[event.user_ptr].answer;
  bytes = std::make_unique<uint64_t>(event.match_bits);
  portals::PutArguments answer;
  answer.local = reinterpret_cast<const uint8_t*>(bytes.get());
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

Status Inbox::complete(Request& request, const nic::Event& event, Unpacked by, uint64_t bytes, bool truncated) {
  SPL_ASSERT(!request.completion, "request ", event.user_ptr, " completes twice");
  const bool was_asked = (event.match_bits & SPL_KIND_BITS) == SPL_DATA_BITS;
  request.completion = {.source = event.initiator,
                        .tag = static_cast<uint32_t>(was_asked ? event.hdr_data : event.match_bits),
                        .bytes = bytes,
                        .truncated = truncated,
                        .by = by,
                        .strategy = request.lease.strategy,
                        .fallback = request.lease.fallback,
                        .at = nic_.interface.port().now()};
  // The message came without asking, or no data will come: the entry for data is not needed.
  if (request.data.exists() && !was_asked) SPL_TRY(nic_.interface.me_unlink(request.data));
  if (request.counter.exists()) free_counters_.push_back(request.counter);
  cache_->give_back(request.lease);
  Committed& type = types_[request.type.value];
  --type.receives;
  return forget_if_unused(type);
}

}  // namespace spinloom::strategies
