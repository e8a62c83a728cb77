#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;

bool is_initiator_event(EventKind kind) {
  return kind == EventKind::send || kind == EventKind::ack || kind == EventKind::reply;
}

bool is_entry_event(EventKind kind) {
  return kind == EventKind::link || kind == EventKind::auto_unlink || kind == EventKind::auto_free;
}

// Describes the first field that differs, among those that Portals 4 defines for this kind of event; empty if none
// does.
std::string difference(const nic::Event& got, const nic::Event& wanted) {
  const auto differs = [](const char* field, auto a, auto b) { return text(field, " is ", a, ", not ", b); };
  if (got.kind != wanted.kind) return differs("the event", name_of(got.kind), name_of(wanted.kind));
  if (is_entry_event(got.kind)) return {};
  if (got.fail != wanted.fail) return differs("its failure", name_of(got.fail), name_of(wanted.fail));
  if (got.kind == EventKind::send) return {};
  if (got.manipulated_bytes != wanted.manipulated_bytes) {
    return differs("mlength", got.manipulated_bytes, wanted.manipulated_bytes);
  }
  const bool offset_counts = !is_initiator_event(got.kind) || got.fail == nic::Fail::ok;
  if (offset_counts && got.remote_offset != wanted.remote_offset) {
    return differs("remote offset", got.remote_offset, wanted.remote_offset);
  }
  if (is_initiator_event(got.kind) && got.fail == nic::Fail::ok && got.in_overflow != wanted.in_overflow) {
    return differs("in overflow", got.in_overflow, wanted.in_overflow);
  }
  if (is_initiator_event(got.kind)) return {};
  if (got.initiator != wanted.initiator) return differs("initiator", got.initiator.value, wanted.initiator.value);
  if (got.match_bits != wanted.match_bits) return differs("match bits", got.match_bits, wanted.match_bits);
  if (got.requested_bytes != wanted.requested_bytes)
    return differs("rlength", got.requested_bytes, wanted.requested_bytes);
  if (got.start != wanted.start) return differs("start", int64_t(got.start - wanted.start), 0);
  if (got.in_overflow != wanted.in_overflow) return differs("in overflow", got.in_overflow, wanted.in_overflow);
  if (got.dropped_bytes != wanted.dropped_bytes)
    return differs("dropped bytes", got.dropped_bytes, wanted.dropped_bytes);
  if (got.kind != EventKind::get && got.hdr_data != wanted.hdr_data)
    return differs("header data", got.hdr_data, wanted.hdr_data);
  return {};
}

}  // namespace

void Exchange::expect(uint32_t role, nic::Event event, OnEvent check) {
  SPL_ASSERT(role < roles, "role ", role);
  expected_events_[role].push_back({event, std::move(check)});
  ++expected_count_;
}

void Exchange::expect(uint32_t role, nic::EventKind kind, OnEvent check) {
  nic::Event event;
  event.kind = kind;
  expect(role, event, std::move(check));
}

Status Exchange::on_event(uint32_t rank, uint32_t role, const nic::Event& event) {
  std::deque<Expected>& expected = expected_events_[role];
  if (expected.empty()) {
    return trouble(text("rank ", rank, ": an event ", name_of(event.kind), " (", name_of(event.fail),
                        ") that nobody expects, role ", role, ", mlength ", event.manipulated_bytes));
  }
  const Expected next = std::move(expected.front());
  expected.pop_front();
  --expected_count_;
  const std::string wrong = difference(event, next.event);
  if (!wrong.empty()) {
    return trouble(text("rank ", rank, ", role ", role, ", event ", name_of(event.kind), ": ", wrong));
  }
  return next.check ? next.check() : Status{};
}

std::string Exchange::missing_events() const {
  std::string line = name() + ":";
  for (uint32_t role = 0; role < roles; ++role) {
    for (const Expected& one : expected_events_[role]) line += text(" role ", role, " ", name_of(one.event.kind));
  }
  return line;
}

// Returns any living rank.
uint32_t Exchange::any_rank() {
  auto rank = static_cast<uint32_t>(random().below(world_.config.ranks));
  return host(rank).dead ? (rank + 1) % world_.config.ranks : rank;
}

// Returns a rank that may be dead: mostly another rank than `rank`, now and then `rank` itself.
uint32_t Exchange::other_rank(uint32_t rank) {
  if (random().chance(1, 10)) return rank;
  return static_cast<uint32_t>((rank + 1 + random().below(world_.config.ranks - 1)) % world_.config.ranks);
}

// Returns a size that is small, close to that of one to three packets, or anything up to size_max.
uint64_t Exchange::any_size() {
  const uint64_t most = world_.config.size_max;
  switch (random().below(4)) {
    case 0: return random().below(std::min<uint64_t>(most, 17) + 1);
    case 1: {
      const uint64_t packets = world_.config.payload_bytes * (1 + random().below(3));
      return std::min(most, packets + random().below(3) - 1);
    }
    default: return random().below(most + 1);
  }
}

Status Exchange::unlink(uint32_t rank, nic::EntryId entry) {
  const auto unlinked = world_.interface(rank).me_unlink(entry);
  if (!unlinked) return trouble(unlinked.error().message);
  if (*unlinked == portals::Unlinked::done) return {};
  return trouble(text("rank ", rank, ": entry ", entry, " is in use, and nothing is under way"));
}

nic::Put Exchange::put_of(uint32_t rank, uint32_t target, uint32_t role, const Region& source) {
  nic::Put put;
  put.local = source.data();
  put.length = source.size();
  put.target = nic::Rank{target};
  put.portal = host(target).portal;
  put.match_bits = match_bits();
  put.hdr_data = user_ptr_of(role);
  put.user_ptr = user_ptr_of(role);
  put.queue = host(rank).departures;
  put.ack_request = nic::AckRequest::ack;
  ++world_.messages;
  return put;
}

std::unique_ptr<Exchange> make_exchange(World& world, uint32_t id, Work work) {
  switch (work) {
    case Work::put:
    case Work::get:
    case Work::atomic:
    case Work::fetch_atomic:
    case Work::swap:
    case Work::iovec:
    case Work::counted: return make_transfer(world, id, work);
    case Work::queue:
    case Work::append: return make_row(world, id, work);
    case Work::unexpected: return make_unexpected(world, id);
    case Work::chain:
    case Work::release: return make_triggered(world, id, work);
    case Work::shared: return make_shared(world, id);
    case Work::stream:
    case Work::process: return make_outbound(world, id, work);
    case Work::scatter:
    case Work::misbehave: return make_handled(world, id, work);
    case Work::forward: return make_forward(world, id);
    case Work::flow: return make_flow(world, id);
    case Work::overrun: return make_overrun(world, id);
    case Work::crowd: return make_crowd(world, id);
    case Work::cancel: return make_cancelled(world, id);
    case Work::collective: return make_collective(world, id);
    case Work::frame_echo:
    case Work::frame_message:
    case Work::frame_ring:
    case Work::frame_stray:
    case Work::frame_host:
    case Work::frame_change: break;  // no exchanges between ranks: frame_run.cpp
  }
  SPL_ASSERT(false, "work ", static_cast<int>(work));
}

}  // namespace spinloom::torture
