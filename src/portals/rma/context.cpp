#include "portals/rma/context.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "portals/rma/bits.hpp"

namespace spinloom::rma {
namespace {

constexpr uint32_t failures_max = 64;  // failures whose reasons are kept until progress()
constexpr Time a_second{1'000'000'000'000};
constexpr Time a_moment{10'000'000};  // 10 us
constexpr std::array<uint64_t, 2> ones{1, 1};

std::unique_ptr<uint8_t[]> uninitialised(uint64_t bytes) { return std::unique_ptr<uint8_t[]>(new uint8_t[bytes]); }

}  // namespace

Context::Context(portals::Interface& interface, const Options& options) : interface_(interface), options_(options) {}

Result<std::unique_ptr<Context>> Context::open(portals::Interface& interface, const Options& options) {
  std::unique_ptr<Context> context(new Context(interface, options));
  if (const Status opened = context->set_up(); !opened) {
    context->tear_down();
    return opened.error();
  }
  return context;
}

Context::~Context() { tear_down(); }

Result<nic::EntryId> Context::link(nic::PortalIndex portal, nic::Entry entry) {
  entry.options.event_unlink_disable = true;
  spend_call_time();
  return interface_.me_append(portal, entry);
}

Status Context::unlink(nic::EntryId entry) {
  for (;;) {
    spend_call_time();
    const auto unlinked = interface_.me_unlink(entry);
    if (!unlinked || *unlinked == portals::Unlinked::done) return {};
    SPL_TRY(pause("an operation on memory that leaves", now() + a_moment));
  }
}

Result<nic::CounterId> Context::take_counter() {
  if (!idle_counters_.empty()) {
    const nic::CounterId counter = idle_counters_.back();
    idle_counters_.pop_back();
    return counter;
  }
  spend_call_time();
  // Failures start no operation that waits for the counter: no notice follows a get that has failed.
  return interface_.ct_alloc(UINT32_MAX, true);
}

Status Context::set_up() {
  const uint64_t slots = uint64_t{options_.ranks} * options_.messages;
  constexpr uint64_t spare = 16;
  SPL_ASSIGN(queue_, interface_.eq_alloc(static_cast<uint32_t>(2 * slots + spare)));
  SPL_ASSIGN(failure_queue_, interface_.eq_alloc(failures_max));
  SPL_ASSIGN(notice_queue_, interface_.eq_alloc(options_.notices + 1, 1));
  SPL_ASSIGN(portal_, interface_.pt_alloc(queue_, {.flow_control = false, .index = options_.portal}));
  SPL_ASSIGN(notice_portal_,
             interface_.pt_alloc(notice_queue_, {.flow_control = true, .index = options_.notice_portal}));
  SPL_ASSIGN(control_counter_, take_counter());
  SPL_ASSIGN(own_atomics_, take_counter());
  SPL_ASSIGN(answers_sent_, take_counter());
  SPL_ASSIGN(loss_counter_, interface_.ct_alloc());
  for (uint32_t round = 0; uint64_t{1} << round < options_.ranks; ++round) {
    SPL_ASSIGN(const nic::CounterId heard, take_counter());
    barrier_counters_.push_back(heard);
    nic::Entry entry;
    entry.match_rank = {(rank() + options_.ranks - (uint32_t{1} << round)) % options_.ranks};
    entry.match_bits = bits::barrier | round;
    entry.counter = heard;
    entry.options.ct_comm = true;
    entry.options.event_comm_disable = true;
    SPL_ASSIGN(const nic::EntryId entry_id, link(portal_, entry));
    entries_.push_back(entry_id);
  }
  allgather_in_ = uninitialised(2 * options_.ranks * allgather_bytes_max);
  allgather_out_ = uninitialised(2 * allgather_bytes_max);
  requests_in_ = uninitialised(slots * slot_bytes());
  requests_out_ = uninitialised(slots * slot_bytes());
  answers_in_ = uninitialised(slots * slot_bytes());
  answers_out_ = uninitialised(slots * slot_bytes());
  struct OwnEntry {
    uint8_t* start;
    uint64_t bytes;
    uint64_t match_bits;
    bool has_events;
  };
  const std::array<OwnEntry, 3> own_entries{
      {{allgather_in_.get(), 2 * options_.ranks * allgather_bytes_max, bits::allgather, false},
       {requests_in_.get(), slots * slot_bytes(), bits::requests, true},
       {answers_in_.get(), slots * slot_bytes(), bits::answers, true}}};
  for (const OwnEntry& own_entry : own_entries) {
    nic::Entry entry;
    entry.start = own_entry.start;
    entry.length = own_entry.bytes;
    entry.match_bits = own_entry.match_bits;
    entry.options.no_truncate = true;
    entry.options.event_comm_disable = !own_entry.has_events;
    SPL_ASSIGN(const nic::EntryId entry_id, link(portal_, entry));
    entries_.push_back(entry_id);
  }
  return options_.meet ? options_.meet(interface_, portal_) : Status{};
}

void Context::wait_for_end(nic::CounterId counter, uint64_t begun) {
  const Time deadline = now() + a_second;
  const auto has_ended = [&] {
    const nic::CounterValue value = interface_.ct_get(counter);
    return value.success + value.failure >= begun;
  };
  while (!has_ended() && now() < deadline) {
    if (!pause("what it has sent", deadline)) return;
  }
}

void Context::tear_down() {
  if (is_closed_) return;
  is_closed_ = true;
  if (answers_sent_.exists()) wait_for_end(answers_sent_, answers_begun_);
  for (Memory& memory : memories_) {
    for (auto& [bits, shared] : memory.shared_keys) std::ignore = unlink(shared);
    if (memory.counter.exists()) std::ignore = interface_.ct_free(memory.counter);
  }
  for (const nic::EntryId entry : entries_) std::ignore = unlink(entry);
  for (auto& [rank, peer] : targets_) {
    if (peer.watch_entry.exists()) std::ignore = unlink(peer.watch_entry);
    if (peer.counter.exists()) std::ignore = interface_.ct_free(peer.counter);
    if (peer.emulation_counter.exists()) std::ignore = interface_.ct_free(peer.emulation_counter);
    for (const NotifiedGet& get : peer.notified_gets) std::ignore = interface_.ct_free(get.counter);
  }
  for (const Request& request : requests_) std::ignore = interface_.ct_free(request.counter);
  if (notice_portal_.exists()) std::ignore = interface_.pt_free(notice_portal_);
  if (portal_.exists()) std::ignore = interface_.pt_free(portal_);
  for (const nic::QueueId queue : {queue_, failure_queue_, notice_queue_}) {
    if (queue.exists()) std::ignore = interface_.eq_free(queue);
  }
  for (const nic::CounterId counter : {control_counter_, own_atomics_, answers_sent_, loss_counter_}) {
    if (counter.exists()) std::ignore = interface_.ct_free(counter);
  }
  for (const nic::CounterId counter : barrier_counters_) std::ignore = interface_.ct_free(counter);
  for (const nic::CounterId counter : idle_counters_) std::ignore = interface_.ct_free(counter);
}

Status Context::close() {
  Status flushed = flush_all();
  wait_for_end(control_counter_, control_begun_);
  Status met = barrier(true);
  tear_down();
  return met ? flushed : met;
}

Status Context::pause(const char* what, Time deadline) {
  if (!options_.pause) return interface_.port().wait();
  if (options_.pause(what, deadline)) return {};
  return fail(Code::fault, what, ": PtlAbort was called");
}

void Context::note_failure(nic::Fail reason) {
  if (!first_failure_.empty()) return;
  first_failure_ = nic::name_of(reason);
  if (reason == nic::Fail::pt_disabled)
    first_failure_ += ", as one is that has no room for notices (spl_rma_options.notices)";
}

Status Context::progress() {
  while (const std::optional<nic::Event> event = interface_.eq_get(queue_)) {
    if (event->kind != nic::EventKind::put || event->fail != nic::Fail::ok) continue;
    if (event->match_bits == bits::requests) on_request(*event);
    if (event->match_bits == bits::answers) on_answer(*event);
  }
  while (const std::optional<nic::Event> event = interface_.eq_get(failure_queue_)) note_failure(event->fail);
  take_notice_events();
  for (auto& [rank, peer] : targets_) {
    if (!peer.notified_gets.empty()) settle_notified_gets(rank);
    if (peer.emulated_begun == peer.emulated_ended) continue;
    const bool has_ended = options_.has_ended && options_.has_ended(rank);
    if (has_ended || interface_.ct_get(peer.emulation_counter).failure > 0) fail_pending(rank);
  }
  return {};
}

// Appends an entry for each other rank, from which alone the entry could take messages. When the rank is gone, the NIC
// counts a failure for the entry.
Status Context::watch_all() {
  if (watches_losses_) return {};
  watches_losses_ = true;
  for (uint32_t other = 0; other < options_.ranks; ++other) {
    if (other == rank()) continue;
    nic::Entry entry;
    entry.match_rank = {other};
    entry.match_bits = bits::watch;
    entry.counter = loss_counter_;
    entry.options.ct_peer_lost = true;
    entry.options.event_comm_disable = true;
    SPL_ASSIGN(const nic::EntryId entry_id, link(portal_, entry));
    entries_.push_back(entry_id);
  }
  return {};
}

bool Context::is_anyone_gone() const {
  if (interface_.ct_get(loss_counter_).failure > 0) return true;
  for (uint32_t other = 0; options_.has_ended && other < options_.ranks; ++other) {
    if (options_.has_ended(other)) return true;
  }
  return false;
}

// Messages of a barrier that has failed may still come, and would count for the next barrier.
Status Context::barrier(bool is_last) {
  if (has_failed_barrier_) return fail(Code::fault, "an earlier barrier has failed: a rank of the context is gone");
  Status met = disseminate(is_last);
  has_failed_barrier_ = !met;
  return met;
}

// The barrier is a dissemination: in round k a rank tells the one 2^k places further on, once it has heard in the
// rounds before. Messages of one round always come from the same rank, so their number says whether this barrier's has
// come. Whoever has left the last barrier may be gone, while others still wait for messages on their way.
Status Context::disseminate(bool is_last) {
  SPL_TRY(watch_all());
  for (uint32_t round = 0; round < barrier_counters_.size(); ++round) {
    nic::Put put;
    put.target = {(rank() + (uint32_t{1} << round)) % options_.ranks};
    put.portal = portal_;
    put.match_bits = bits::barrier | round;
    put.event_send_disable = true;
    spend_call_time();
    SPL_TRY(interface_.put(put));
    const auto has_come = [&] { return interface_.ct_get(barrier_counters_[round]).success > barriers_; };
    if (!is_last) {
      SPL_TRY(wait_until("a barrier", WaitFor::all_ranks, has_come));
      continue;
    }
    Time deadline = Time::never();
    for (;;) {
      SPL_TRY(progress());
      if (has_come()) break;
      if (deadline == Time::never() && is_anyone_gone()) deadline = now() + a_second;
      if (now() >= deadline) return fail(Code::fault, "the last barrier: a rank of the context is gone");
      SPL_TRY(pause("the last barrier", deadline));
    }
  }
  ++barriers_;
  return {};
}

Result<std::vector<uint8_t>> Context::allgather(std::span<const uint8_t> own) {
  SPL_ASSERT(own.size() <= allgather_bytes_max, own.size());
  // Calls use the two halves in turn. The words of call n are overwritten in call n + 2, after the barrier of call
  // n + 1; all ranks have read the words of call n before they enter that barrier.
  const uint64_t half = allgathers_++ % 2;
  uint8_t* const words = allgather_out_.get() + half * allgather_bytes_max;
  std::memcpy(words, own.data(), own.size());
  for (uint32_t other = 0; other < options_.ranks; ++other) {
    nic::Put put;
    put.local = words;
    put.length = own.size();
    put.target = {other};
    put.portal = portal_;
    put.match_bits = bits::allgather;
    put.remote_offset = (half * options_.ranks + rank()) * allgather_bytes_max;
    put.ack_request = nic::AckRequest::ct_ack;
    put.counter = control_counter_;
    put.event_send_disable = true;
    spend_call_time();
    SPL_TRY(interface_.put(put));
    ++control_begun_;
  }
  SPL_TRY(wait_until("what all ranks are told", WaitFor::targets, [&] { return is_control_quiet(); }));
  SPL_TRY(barrier());
  std::vector<uint8_t> all(own.size() * options_.ranks);
  for (uint32_t other = 0; other < options_.ranks; ++other) {
    std::memcpy(&all[other * own.size()], allgather_in_.get() + (half * options_.ranks + other) * allgather_bytes_max,
                own.size());
  }
  return all;
}

bool Context::is_control_quiet() const {
  const nic::CounterValue value = interface_.ct_get(control_counter_);
  return value.success + value.failure >= control_begun_;
}

Status Context::add_one(const Key& key, uint64_t offset, uint32_t count) {
  SPL_ASSERT(count <= ones.size(), count);
  Operation operation;
  operation.kind = Operation::Kind::accumulate;
  operation.key = key;
  operation.offset = offset;
  operation.bytes = count * sizeof(uint64_t);
  operation.from = reinterpret_cast<const uint8_t*>(ones.data());
  operation.op = static_cast<uint32_t>(spin::AtomicOperation::sum);
  operation.type = spin::Datatype::uint64;
  return issue(operation, {control_counter_, &control_begun_}, {key.rank});
}

}  // namespace spinloom::rma
