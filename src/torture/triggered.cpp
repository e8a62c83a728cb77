// Commands that wait for counters. In a chain, each rank's entry counts, and the counter sends the message on to the
// next rank. In a release, several puts, registered in any order of thresholds, wait for one counter, and one count
// starts them all. A row of use-once entries at the target shows the order in which they left.
#include <algorithm>
#include <numeric>

#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;

class Chain final : public Exchange {
 public:
  Chain(World& world, uint32_t id) : Exchange(world, id, Work::chain) {}

  Status begin() override {
    const uint32_t hops = static_cast<uint32_t>(2 + random().below(8));
    source_ = Region::random(random(), any_size());
    copy_.assign(source_.data(), source_.data() + source_.size());
    uint32_t rank = any_rank();
    for (uint32_t i = 0; i <= hops; ++i) {
      ranks_.push_back(rank);
      rank = other_rank(rank);
    }
    for (uint32_t i = 0; i < hops; ++i) memory_.emplace_back(source_.size());
    for (uint32_t i = 0; i < hops; ++i) SPL_TRY(prepare(i));
    nic::Put first = put_of(ranks_[0], ranks_[1], 0, source_);
    first.ack_request = nic::AckRequest::none;
    first.match_bits = match_bits(0);
    expect(0, EventKind::send);
    return world_.interface(ranks_[0]).put(first);
  }

  Status finish() override {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i].expect(0, copy_.data(), copy_.size());
      SPL_TRY(memory_[i].check(text(name(), ", hop ", i)));
      SPL_TRY(unlink(ranks_[i + 1], entries_[i]));
      const nic::CounterValue value = world_.interface(ranks_[i + 1]).ct_get(counters_[i]);
      if (value != nic::CounterValue{1, 0}) return trouble(text("the counter of hop ", i, " is ", value.success));
      SPL_TRY(world_.interface(ranks_[i + 1]).ct_free(counters_[i]));
    }
    return {};
  }

 private:
  // Makes the entry of a hop, and the put that its counter starts.
  Status prepare(uint32_t hop) {
    const uint32_t rank = ranks_[hop + 1];
    SPL_ASSIGN(const nic::CounterId counter, world_.interface(rank).ct_alloc());
    counters_.push_back(counter);
    nic::Entry entry;
    entry.start = memory_[hop].data();
    entry.length = memory_[hop].size();
    entry.match_bits = match_bits(hop);
    entry.user_ptr = user_ptr_of(10 + hop);
    entry.counter = counter;
    entry.options.ct_comm = true;
    nic::Event event;
    event.kind = EventKind::put;
    event.initiator = nic::Rank{ranks_[hop]};
    event.match_bits = match_bits(hop);
    event.requested_bytes = event.manipulated_bytes = copy_.size();
    event.start = reinterpret_cast<uint64_t>(entry.start);
    event.hdr_data = user_ptr_of(hop);
    expect(10 + hop, event, [this, hop] {
      memory_[hop].expect(0, copy_.data(), copy_.size());
      return memory_[hop].check(text(name(), ", hop ", hop, ", when its event has come"));
    });
    SPL_ASSIGN(const nic::EntryId appended, world_.interface(rank).me_append(host(rank).portal, entry));
    entries_.push_back(appended);
    if (hop + 1 == memory_.size()) return {};
    nic::Put next = put_of(rank, ranks_[hop + 2], hop + 1, memory_[hop]);
    next.ack_request = nic::AckRequest::none;
    next.match_bits = match_bits(hop + 1);
    expect(hop + 1, EventKind::send);
    return world_.interface(rank).put(next, nic::Trigger{counter, 1, 0});
  }

  std::vector<uint32_t> ranks_;
  std::vector<Region> memory_;
  std::vector<nic::EntryId> entries_;
  std::vector<nic::CounterId> counters_;
  Region source_;
  std::vector<uint8_t> copy_;
};

class Release final : public Exchange {
 public:
  Release(World& world, uint32_t id) : Exchange(world, id, Work::release) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    const uint32_t puts = static_cast<uint32_t>(2 + random().below(5));
    SPL_ASSIGN(counter_, world_.interface(from_).ct_alloc());
    // Two groups of thresholds; the puts of a group must start in the order in which they were registered.
    std::vector<uint32_t> thresholds(puts);
    for (uint32_t& threshold : thresholds) threshold = static_cast<uint32_t>(1 + random().below(2));
    std::vector<uint32_t> order(puts);
    std::iota(order.begin(), order.end(), 0);
    all_at_once_ = random().chance(1, 2);
    if (!all_at_once_) {
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return thresholds[a] != thresholds[b] ? thresholds[a] < thresholds[b] : a < b;
      });
    }
    for (uint32_t i = 0; i < puts; ++i) sources_.push_back(Region::random(random(), any_size()));
    for (uint32_t i = 0; i < puts; ++i) targets_.emplace_back(world_.config.size_max);
    for (uint32_t i = 0; i < puts; ++i) SPL_TRY(append(i, order[i]));
    for (uint32_t i = 0; i < puts; ++i) {
      expect(i, EventKind::send, [this, i] {
        sources_[i].spoil();
        return Status{};
      });
      nic::Event ack;
      ack.kind = EventKind::ack;
      ack.manipulated_bytes = sources_[i].size();
      expect(i, ack);
      SPL_TRY(
          world_.interface(from_).put(put_of(from_, to_, i, sources_[i]), nic::Trigger{counter_, thresholds[i], 0}));
    }
    // A command that runs at each count, and a command that never runs.
    SPL_ASSIGN(follower_, world_.interface(from_).ct_alloc());
    SPL_TRY(world_.interface(from_).ct_inc(follower_, {1, 0}, nic::Trigger{counter_, 1, 1}));
    SPL_TRY(world_.interface(from_).put(put_of(from_, to_, 60, sources_[0]), nic::Trigger{counter_, 1000, 0}));
    // Failures start waiting commands just as successes do.
    final_count_.failure = random().below(3);
    final_count_.success = 2 - final_count_.failure;
    if (all_at_once_ && random().chance(1, 2)) return world_.interface(from_).ct_set(counter_, final_count_);
    if (all_at_once_) return world_.interface(from_).ct_inc(counter_, final_count_);
    const nic::CounterValue first = final_count_.failure > 0 ? nic::CounterValue{0, 1} : nic::CounterValue{1, 0};
    const nic::CounterValue second{final_count_.success - first.success, final_count_.failure - first.failure};
    SPL_TRY(world_.interface(from_).ct_inc(counter_, second, nic::Trigger{counter_, 1, 0}));
    return world_.interface(from_).ct_inc(counter_, first);
  }

  Status finish() override {
    for (size_t i = 0; i < targets_.size(); ++i) SPL_TRY(targets_[i].check(text(name(), ", entry ", i)));
    const nic::CounterValue value = world_.interface(from_).ct_get(counter_);
    if (value != final_count_) return trouble(text("its counter is ", value.success, ", ", value.failure));
    const nic::CounterValue followed = world_.interface(from_).ct_get(follower_);
    if (followed != nic::CounterValue{2, 0})
      return trouble(text("a persistent count is ", followed.success, ", not 2"));
    if (random().chance(1, 2)) SPL_TRY(world_.interface(from_).ct_cancel(counter_));  // otherwise ct_free cancels them
    SPL_TRY(world_.interface(from_).ct_free(counter_));
    return world_.interface(from_).ct_free(follower_);
  }

 private:
  static constexpr uint32_t first_entry = 16;

  Status append(uint32_t place, uint32_t put) {
    nic::Entry entry;
    entry.start = targets_[place].data();
    entry.length = targets_[place].size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(first_entry + place);
    entry.options.use_once = true;
    nic::Event event;
    event.kind = EventKind::put;
    event.initiator = nic::Rank{from_};
    event.match_bits = match_bits();
    event.requested_bytes = event.manipulated_bytes = sources_[put].size();
    event.start = reinterpret_cast<uint64_t>(entry.start);
    event.hdr_data = user_ptr_of(put);
    expect(first_entry + place, event);
    expect(first_entry + place, EventKind::auto_unlink);
    targets_[place].expect(0, sources_[put].data(), sources_[put].size());
    const auto appended = world_.interface(to_).me_append(host(to_).portal, entry);
    return appended ? Status{} : Status{appended.error()};
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  bool all_at_once_ = false;  // one command counts for all puts; otherwise a triggered count follows the first
  nic::CounterId counter_;
  nic::CounterId follower_;
  nic::CounterValue final_count_;
  std::vector<Region> sources_;
  std::vector<Region> targets_;
};

}  // namespace

std::unique_ptr<Exchange> make_triggered(World& world, uint32_t id, Work work) {
  if (work == Work::chain) return std::make_unique<Chain>(world, id);
  return std::make_unique<Release>(world, id);
}

}  // namespace spinloom::torture
