#include "live/node/publications.hpp"

#include <sched.h>

#include <algorithm>

#include "base/shared_heap.hpp"
#include "live/node/futex.hpp"

namespace spinloom::live {
namespace {

constexpr Time patience{1'000'000'000'000};  // 1 s: a peer that takes longer is stopped
constexpr int polls_before_yield = 1000;

using Gate = DirectGate<SharedWord>;

PublishedEntry published_of(const nic::PlainEntry& plain) {
  PublishedEntry entry;
  entry.start = reinterpret_cast<uint64_t>(plain.start);
  entry.length = plain.length;
  entry.match_bits = plain.match_bits;
  entry.ignore_bits = plain.ignore_bits;
  entry.match_rank = plain.match_rank.value;
  entry.user = plain.user;
  entry.options = (plain.op_put ? PublishedEntry::op_put : 0) | (plain.op_get ? PublishedEntry::op_get : 0) |
                  (plain.ack_disable ? PublishedEntry::ack_disable : 0) |
                  (plain.counter.exists() ? PublishedEntry::counts : 0) |
                  (plain.ct_bytes ? PublishedEntry::counts_bytes : 0);
  return entry;
}

}  // namespace

Publications::Publications(Segment& own, uint32_t ranks, HasEnded has_ended)
    : own_(own), ranks_(ranks), has_ended_(std::move(has_ended)), stays_(ranks) {
  sees_heap_ = process_heap().count_replacements(direct().heap_changes);
}

// Peers may not be asked any more. Whoever is inside leaves by himself.
Publications::~Publications() {
  for (uint32_t index = 0; index < used_; ++index) Gate::shut(direct().portals[index].gate);
  process_heap().forget(direct().heap_changes);
}

void Publications::refresh(nic::Nic& engine) {
  if (is_over_) return;
  for (const nic::PortalIndex portal : std::exchange(stale_, {})) {
    const uint32_t index = record_for(portal);
    if (index == DirectMemory::portals_max) continue;
    const std::vector<nic::PlainEntry> plain = engine.publish(portal, PublishedPortal::entries_max);
    if (plain.empty()) continue;
    Record& record = records_[index];
    record.portal = portal;
    record.counters.clear();
    PublishedPortal& published = direct().portals[index];
    published.portal.store(portal.value);
    published.heap_changes = direct().heap_changes.load();
    (void)own_.publish_heap();
    published.heap_is_shared = sees_heap_ && !process_heap().has_replaced() ? 1 : 0;
    published.entries_count = static_cast<uint32_t>(plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      published.entries[i] = published_of(plain[i]);
      record.counters.push_back(plain[i].counter);
    }
    if (used_ <= index) {
      used_ = index + 1;
      direct().portals_used.store(used_);
    }
    record.is_open = true;
    Gate::open(published.gate);
  }
}

// Returns the portal's record, or one that is free; portals_max: all are in use.
uint32_t Publications::record_for(nic::PortalIndex portal) {
  const auto its = std::ranges::find(records_, portal, &Record::portal);
  const auto found = its != records_.end() ? its : std::ranges::find(records_, false, &Record::is_open);
  return static_cast<uint32_t>(found - records_.begin());
}

bool Publications::close(nic::PortalIndex portal) {
  const auto found = std::ranges::find(records_, portal, &Record::portal);
  if (found == records_.end()) return true;
  const auto index = static_cast<uint32_t>(found - records_.begin());
  if (!shut(index)) {
    if (!is_over_) Gate::open(direct().portals[index].gate);
    return false;
  }
  keep_counts(index);
  found->is_open = false;
  return true;
}

bool Publications::shut(uint32_t index) {
  Gate::shut(direct().portals[index].gate);
  return wait_until_empty(index);
}

bool Publications::wait_until_empty(uint32_t index) {
  bool is_empty = true;
  for (uint32_t rank = 0; rank < ranks_; ++rank) is_empty = wait_for(rank, index + 1) && is_empty;
  return is_empty;
}

bool Publications::wait_for(uint32_t rank, uint64_t number) {
  SharedWord& slot = own_.channel_of(rank)->direct_slot;
  Time give_up{};
  for (int polls = 1; Gate::is_inside(slot, number); ++polls) {
    relax();
    if (polls % polls_before_yield != 0) continue;
    if (has_ended_(rank)) {
      Gate::leave(slot);
      break;
    }
    const uint64_t visit = slot.load();
    const Time now = monotonic_now();
    if (give_up == Time{}) give_up = now + patience;
    if (now >= give_up) stays_[rank] = visit;
    if (stays_[rank] == visit) return false;
    sched_yield();
  }
  return true;
}

// A peer that is stopped inside is not waited for without end. What it does when it goes on, an atomic of one element,
// may then fall between the reading and the writing of the caller's. All others have left.
void Publications::pause() {
  for (uint32_t index = 0; index < used_; ++index) {
    if (records_[index].is_open) (void)shut(index);
  }
}

void Publications::resume() {
  if (is_over_) return;
  for (uint32_t index = 0; index < used_; ++index) {
    if (records_[index].is_open) Gate::open(direct().portals[index].gate);
  }
}

void Publications::end() {
  pause();
  is_over_ = true;
}

void Publications::keep_counts(uint32_t index) {
  for (size_t i = 0; i < records_[index].counters.size(); ++i) {
    const uint64_t by = direct().counts[index][i].exchange(0);
    if (by > 0) kept_.push_back({records_[index].counters[i], by});
  }
}

// `counted` is cleared first: a peer adds, and then sets it.
std::vector<Publications::Count> Publications::take_counts() {
  if (direct().counted.exchange(0) != 0) {
    for (uint32_t index = 0; index < used_; ++index) {
      if (records_[index].is_open) keep_counts(index);
    }
  }
  return std::exchange(kept_, {});
}

uint64_t Publications::uncounted(nic::CounterId counter) const {
  if (!has_counts()) return 0;
  uint64_t sum = 0;
  for (const Count& kept : kept_) sum += kept.counter == counter ? kept.by : 0;
  for (uint32_t index = 0; index < used_; ++index) {
    const Record& record = records_[index];
    for (size_t i = 0; record.is_open && i < record.counters.size(); ++i)
      sum += record.counters[i] == counter ? direct().counts[index][i].load() : 0;
  }
  return sum;
}

}  // namespace spinloom::live
