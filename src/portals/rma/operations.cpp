// Operations by NICs, and how they end: counters, requests, flushes.
#include <algorithm>
#include <tuple>

#include "portals/rma/context.hpp"

namespace spinloom::rma {
namespace {

constexpr const char* name_of(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::put: return "put";
    case Operation::Kind::get: return "get";
    case Operation::Kind::accumulate: return "accumulate";
    case Operation::Kind::fetch: return "fetching operation";
    case Operation::Kind::compare_swap: return "compare and swap";
  }
  return "operation";
}

uint32_t right_for(Operation::Kind kind) {
  if (kind == Operation::Kind::put) return right_write;
  return kind == Operation::Kind::get ? right_read : right_atomic;
}

bool changes_elements(Operation::Kind kind) { return kind >= Operation::Kind::accumulate; }

uint64_t ended_count(nic::CounterValue value) { return value.success + value.failure; }

Result<ElementPlan> plan_for(const Operation& operation) {
  if (operation.kind != Operation::Kind::compare_swap) {
    return plan_of(operation.op, operation.type, operation.kind == Operation::Kind::fetch);
  }
  if (static_cast<uint32_t>(operation.type) >= spin::datatypes) {
    return fail(Code::invalid, "there is no type of elements ", static_cast<uint32_t>(operation.type));
  }
  return ElementPlan{spin::AtomicOperation::compare_swap, operation.type, true, false};
}

}  // namespace

Status Context::check(const Operation& operation) const {
  const Key& key = operation.key;
  if (key.rank >= options_.ranks || key.portal != options_.portal.value) {
    return fail(Code::invalid, "the key belongs to another context");
  }
  if ((key.rights & right_for(operation.kind)) == 0) {
    return fail(Code::invalid, "the key of rank ", key.rank, " does not grant a ", name_of(operation.kind));
  }
  if (operation.offset > key.bytes || operation.bytes > key.bytes - operation.offset) {
    return fail(Code::invalid, name_of(operation.kind), ": ", operation.bytes, " B at offset ", operation.offset,
                " are not in the key's ", key.bytes, " B");
  }
  if (operation.notice && key.notices == Notices::none) {
    return fail(Code::invalid, "the key's memory was registered without notices");
  }
  return {};
}

Result<Context::Target*> Context::ensure_target(uint32_t rank) {
  Target& peer = targets_[rank];
  if (!peer.counter.exists()) {
    spend_call_time();
    SPL_ASSIGN(peer.counter, interface_.ct_alloc());
  }
  return &peer;
}

Result<Context::Tally> Context::tally_of(const Operation& operation) {
  if (operation.request != nullptr) return Tally{operation.request->counter, &operation.request->native_begun};
  SPL_ASSIGN(Target* const found, ensure_target(operation.key.rank));
  return Tally{found->counter, &found->native_begun};
}

bool Context::is_emulated(const Operation& operation, const ElementPlan& plan) const {
  if (options_.emulated) return true;
  if (!options_.emulate_above_limit || !changes_elements(operation.kind)) return false;
  return operation.bytes > (plan.fetches ? options_.fetch_bytes : options_.atomic_bytes);
}

Status Context::begin(const Operation& operation) {
  SPL_TRY(check(operation));
  ElementPlan plan;
  if (changes_elements(operation.kind)) {
    SPL_ASSIGN(plan, plan_for(operation));
  }
  const bool takes_emulation = is_emulated(operation, plan);
  if (changes_elements(operation.kind) && options_.emulate_above_limit && !options_.emulated) {
    SPL_ASSIGN(const Target* const found, ensure_target(operation.key.rank));
    SPL_TRY(wait_until("operations before one that goes another way", WaitFor::targets, [&] {
      return takes_emulation ? is_native_quiet(operation.key.rank) : found->emulated_begun == found->emulated_ended;
    }));
  }
  if (takes_emulation) return emulate(operation);
  if (operation.notice && operation.kind == Operation::Kind::get) return begin_notified_get(operation);
  SPL_ASSIGN(const Tally tally, tally_of(operation));
  return issue(operation, tally, {operation.key.rank});
}

Status Context::begin_pieces(Operation operation, std::span<const Piece> pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    operation.offset = piece.offset;
    operation.bytes = piece.bytes;
    SPL_TRY(check(operation));
    bytes += piece.bytes;
  }
  const uint64_t list_bytes = operation.list ? operation.list->list().length() : 0;
  if (bytes != list_bytes) {
    return fail(Code::invalid, "the parts of the key's memory have ", bytes, " B, those at this rank ", list_bytes);
  }
  if (bytes == 0) return {};
  if (options_.emulated || bytes / pieces.size() < options_.small_pieces) {
    operation.offset = 0;
    operation.bytes = bytes;
    return emulate_pieces(operation, pieces);
  }
  SPL_ASSIGN(const Tally tally, tally_of(operation));
  for (const Piece& piece : pieces) {
    operation.offset = piece.offset;
    operation.bytes = piece.bytes;
    SPL_TRY(issue(operation, tally, {operation.key.rank}));
    operation.list_offset += piece.bytes;
  }
  return {};
}

Status Context::begin_native(const Operation& operation) {
  SPL_TRY(check(operation));
  SPL_ASSIGN(const Tally tally, tally_of(operation));
  return issue(operation, tally, {operation.key.rank});
}

nic::Put Context::put_of(const Operation& operation, const Tally& tally, nic::Rank target) const {
  nic::Put put;
  put.target = target;
  put.portal = portal_;
  put.match_bits = operation.key.bits;
  put.event_send_disable = true;
  put.event_success_disable = true;
  put.ack_request = nic::AckRequest::ack;
  put.queue = failure_queue_;
  put.counter = tally.counter;
  if (operation.notice) {
    put.match_bits = operation.key.notice_bits;
    put.hdr_data = *operation.notice;
    if (operation.key.notices == Notices::queued) put.portal = notice_portal_;
  }
  return put;
}

nic::ReplyTo Context::reply_of(const Tally& tally, uint8_t* to) const {
  nic::ReplyTo reply;
  reply.local = to;
  reply.queue = failure_queue_;
  reply.counter = tally.counter;
  reply.ct_reply = true;
  reply.event_success_disable = true;
  return reply;
}

Status Context::issue(const Operation& operation, const Tally& tally, nic::Rank target) {
  if (changes_elements(operation.kind)) return issue_elements(operation, tally, target);
  if (operation.bytes == 0 && !operation.notice) return {};
  spend_call_time();
  if (operation.kind == Operation::Kind::put) {
    nic::Put put = put_of(operation, tally, target);
    put.local = operation.from;
    put.length = operation.bytes;
    put.remote_offset = operation.offset;
    put.descriptor = operation.list;
    put.descriptor_offset = operation.list_offset;
    SPL_TRY(interface_.put(put));
  } else {
    nic::Get get;
    get.target = target;
    get.portal = portal_;
    get.match_bits = operation.key.bits;
    get.length = operation.bytes;
    get.remote_offset = operation.offset;
    get.reply = reply_of(tally, operation.to);
    get.reply.descriptor = operation.list;
    get.reply.descriptor_offset = operation.list_offset;
    SPL_TRY(interface_.get(get));
  }
  ++*tally.begun;
  return {};
}

// Issues the operation in atomics of whole elements, each as long as the NIC takes.
Status Context::issue_elements(const Operation& operation, const Tally& tally, nic::Rank target) {
  SPL_ASSIGN(const ElementPlan plan, plan_for(operation));
  const uint64_t element = spin::bytes_of(operation.type);
  if (operation.bytes % element != 0) {
    return fail(Code::invalid, operation.bytes, " B are no whole elements of ", element, " B");
  }
  const uint64_t limit = plan.fetches ? options_.fetch_bytes : options_.atomic_bytes;
  if (limit < element) {
    return fail(Code::unsupported, "an element has ", element, " B, and an atomic of this interface ", limit,
                " at most");
  }
  const uint64_t step = limit / element * element;
  const uint8_t* neutral = nullptr;
  if (plan.reads) {
    const bool is_sum = plan.operation == spin::AtomicOperation::sum;
    std::vector<uint8_t>& elements = neutral_elements_[is_sum ? static_cast<uint32_t>(plan.type) : spin::datatypes];
    if (elements.empty()) {
      elements.resize(std::max(options_.fetch_bytes, uint64_t{64}));
      fill_neutral(plan, elements);
    }
    neutral = elements.data();
  }
  if (plan.fetches && operation.to == nullptr && discarded_elements_.empty())
    discarded_elements_.resize(options_.fetch_bytes);
  for (uint64_t at = 0; at < operation.bytes; at += step) {
    const uint64_t bytes = std::min(step, operation.bytes - at);
    nic::Atomic atomic;
    atomic.operation = plan.operation;
    atomic.datatype = plan.type;
    atomic.operand = operation.operand;
    atomic.put = put_of(operation, tally, target);
    atomic.put.local = neutral != nullptr ? neutral : operation.from + at;
    atomic.put.length = bytes;
    atomic.put.remote_offset = operation.offset + at;
    if (plan.fetches) {
      atomic.put.ack_request = nic::AckRequest::none;
      atomic.put.counter = {};
      atomic.put.queue = {};
      atomic.fetch = reply_of(tally, operation.to != nullptr ? operation.to + at : discarded_elements_.data());
    }
    spend_call_time();
    SPL_TRY(interface_.atomic(atomic));
    ++*tally.begun;
  }
  return {};
}

// Has the NIC send the notice when the data are here; after a get that fails it sends none. A get without bytes is only
// its notice.
Status Context::begin_notified_get(const Operation& operation) {
  SPL_ASSIGN(Target* const found, ensure_target(operation.key.rank));
  SPL_ASSIGN(const nic::CounterId counter, take_counter());
  NotifiedGet notified_get{counter, operation.request};
  const nic::CounterValue before = interface_.ct_get(counter);
  Operation get = operation;
  get.notice.reset();
  uint64_t begun = 0;
  SPL_ASSIGN(const Tally tally, tally_of(operation));
  nic::Put notice = put_of(operation, tally, {operation.key.rank});
  notice.remote_offset = operation.offset;
  if (get.bytes == 0) {
    idle_counters_.push_back(counter);
    spend_call_time();
    SPL_TRY(interface_.put(notice));
    ++*tally.begun;
    return {};
  }
  notified_get.base = before.success;
  spend_call_time();
  SPL_TRY(interface_.put(notice, nic::Trigger{.counter = counter, .threshold = before.success + 1}));
  SPL_TRY(issue(get, {counter, &begun}, {operation.key.rank}));
  // The operation's end counts once, by the notice, or by settle_notified_gets() if there will be no notice.
  ++*tally.begun;
  found->notified_gets.push_back(notified_get);
  return {};
}

void Context::settle_notified_gets(uint32_t rank) {
  Target& peer = targets_.at(rank);
  std::erase_if(peer.notified_gets, [&](const NotifiedGet& get) {
    const nic::CounterValue value = interface_.ct_get(get.counter);
    if (value.success > get.base) {
      idle_counters_.push_back(get.counter);
      return true;
    }
    if (value.failure == 0) return false;
    std::ignore = interface_.ct_free(get.counter);
    const nic::CounterId counter = get.request != nullptr ? get.request->counter : peer.counter;
    std::ignore = interface_.ct_inc(counter, {0, 1});
    return true;
  });
}

Result<Request*> Context::make_request(uint32_t rank) {
  SPL_ASSIGN(Target* const found, ensure_target(rank));
  SPL_ASSIGN(const nic::CounterId counter, take_counter());
  Request& request = requests_.emplace_back();
  request.rank = rank;
  request.counter = counter;
  request.base = interface_.ct_get(counter).success;
  ++found->open_requests;
  return &request;
}

bool Context::is_done(const Request& request) const {
  return ended_count(interface_.ct_get(request.counter)) - request.base >= request.native_begun &&
         request.emulated_begun == request.emulated_ended;
}

Status Context::retire(Request* request) {
  SPL_ASSERT(is_done(*request), "a request that has not ended");
  const uint64_t failures = interface_.ct_get(request->counter).failure;
  const bool has_failed = failures + request->emulated_failed > 0;
  if (failures > 0) {
    std::ignore = interface_.ct_free(request->counter);
  } else {
    idle_counters_.push_back(request->counter);
  }
  const uint32_t rank = request->rank;
  --targets_.at(rank).open_requests;
  requests_.remove_if([request](const Request& one) { return &one == request; });
  if (!has_failed) return {};
  const Error error =
      fail(Code::fault, "the operation at rank ", rank,
           " has failed: ", first_failure_.empty() ? "its target has refused it or is gone" : first_failure_);
  first_failure_.clear();
  return error;
}

Status Context::wait(Request* request) {
  SPL_TRY(wait_until("an operation", WaitFor::targets, [&] { return is_done(*request); }));
  return retire(request);
}

bool Context::is_native_quiet(uint32_t rank) const {
  const Target& peer = targets_.at(rank);
  if (ended_count(interface_.ct_get(peer.counter)) < peer.native_begun || !peer.notified_gets.empty()) return false;
  return peer.open_requests == 0 || std::ranges::all_of(requests_, [&](const Request& request) {
           return request.rank != rank || is_done(request);
         });
}

bool Context::is_quiet(uint32_t rank) const {
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return true;
  return found->second.emulated_begun == found->second.emulated_ended && is_native_quiet(rank);
}

Status Context::report_failures(uint32_t rank) {
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return {};
  Target& peer = found->second;
  const uint64_t failures = interface_.ct_get(peer.counter).failure + peer.emulated_failed;
  const uint64_t new_failures = failures - peer.reported_failures;
  if (new_failures == 0) return {};
  peer.reported_failures = failures;
  std::ignore = progress();  // finds their reasons
  const Error error =
      fail(Code::fault, new_failures, new_failures == 1 ? " operation" : " operations", " at rank ", rank,
           " failed; the first: ", first_failure_.empty() ? "its target has refused it or is gone" : first_failure_);
  first_failure_.clear();
  return error;
}

Status Context::flush(uint32_t rank) {
  if (rank >= options_.ranks) return fail(Code::invalid, "rank ", rank, " of ", options_.ranks);
  SPL_TRY(wait_until("operations", WaitFor::targets, [&] { return is_quiet(rank); }));
  return report_failures(rank);
}

Status Context::flush_all() {
  SPL_TRY(wait_until("operations", WaitFor::targets, [&] {
    return std::ranges::all_of(targets_, [&](const auto& peer) { return is_quiet(peer.first); });
  }));
  Status all;
  for (const auto& [rank, one] : targets_) {
    const Status reported = report_failures(rank);
    if (all) all = reported;
  }
  return all;
}

Context::Counts Context::counts(uint32_t rank) const {
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return {};
  const Target& peer = found->second;
  const nic::CounterValue value = interface_.ct_get(peer.counter);
  return {peer.native_begun + peer.emulated_begun, ended_count(value) + peer.emulated_ended,
          value.failure + peer.emulated_failed};
}

}  // namespace spinloom::rma
