// Event queues that are too small, without flow control, at the target and at the initiator. The oldest events are
// overwritten, and the next event taken reports that. The newest events stay, no event comes twice, and bytes and
// counters are correct.
#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

// A queue whose events are counted.
struct SmallQueue {
  nic::QueueId id;
  uint32_t slots = 0;
  uint32_t events_taken = 0;
  uint32_t gaps = 0;  // events that report that others before them were overwritten

  // Checks the counts. `has_slept`: the host took no event before all were posted.
  [[nodiscard]] Status check(uint32_t posted, bool has_slept) const {
    const uint32_t least = std::min(slots, posted);
    if (events_taken > posted || events_taken < least || (has_slept && events_taken != least)) {
      return fail(Code::mismatch, "a queue of ", slots, " slots got ", posted, " events, ", events_taken,
                  " could be taken");
    }
    const uint32_t lost = posted - events_taken;
    if (gaps > lost || (lost > 0 && gaps == 0)) {
      return fail(Code::mismatch, lost, " events were overwritten, and ", gaps, " said that some had been");
    }
    return {};
  }
};

class Overrun final : public Exchange {
 public:
  Overrun(World& world, uint32_t id) : Exchange(world, id, Work::overrun) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    sleeps_ = random().chance(1, 3);
    const auto puts = static_cast<uint32_t>(3 + random().below(8));
    uint64_t total_bytes = 0;
    for (uint32_t i = 0; i < puts; ++i) {
      offsets_.push_back(total_bytes);
      sources_.push_back(Region::random(random(), any_size()));
      total_bytes += sources_.back().size();
    }
    target_ = Region(total_bytes);
    landings_.resize(puts, false);
    sends_.resize(puts, false);
    acks_.resize(puts, false);
    SPL_ASSIGN(target_queue_, open_queue(to_));
    SPL_ASSIGN(initiator_queue_, open_queue(from_));
    SPL_ASSIGN(portal_, world_.interface(to_).pt_alloc(target_queue_.id));
    SPL_ASSIGN(landed_, world_.interface(to_).ct_alloc());
    SPL_ASSIGN(acked_, world_.interface(from_).ct_alloc());
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = total_bytes;
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(0);
    entry.counter = landed_;
    entry.options.manage_local = true;
    entry.options.ct_comm = true;
    SPL_ASSIGN(entry_, world_.interface(to_).me_append(portal_, entry));
    for (uint32_t i = 0; i < puts; ++i) {
      target_.expect(offsets_[i], sources_[i].data(), sources_[i].size());
      nic::Put put = put_of(from_, to_, i, sources_[i]);
      put.portal = portal_;
      put.queue = initiator_queue_.id;
      put.counter = acked_;
      SPL_TRY(world_.interface(from_).put(put));
    }
    return {};
  }

  Status poll() override {
    const nic::CounterValue landed = world_.interface(to_).ct_get(landed_);
    const nic::CounterValue acked = world_.interface(from_).ct_get(acked_);
    const auto puts = static_cast<uint32_t>(sources_.size());
    if (landed.failure > 0 || acked.failure > 0 || landed.success > puts || acked.success > puts) {
      return trouble(text("its counters say ", landed.success, " and ", acked.success, ", of ", puts));
    }
    all_counted_ = landed.success == puts && acked.success == puts;  // an event comes before its count
    if (!all_counted_ && (sleeps_ || !random().chance(1, 20))) return {};
    SPL_TRY(take_events(to_, target_queue_, [this](const nic::Event& event) { return on_target_event(event); }));
    SPL_TRY(
        take_events(from_, initiator_queue_, [this](const nic::Event& event) { return on_initiator_event(event); }));
    if (!all_counted_) return {};
    if (const Status good = target_queue_.check(puts, sleeps_); !good) return trouble(good.error().message);
    if (const Status good = initiator_queue_.check(2 * puts, sleeps_); !good) return trouble(good.error().message);
    return target_.check(name() + ", when all has been counted");
  }

  bool done() const override { return all_counted_; }

  Status finish() override {
    SPL_TRY(target_.check(name() + ", target"));
    for (const Region& source : sources_) SPL_TRY(source.check(name() + ", a source"));
    SPL_TRY(unlink(to_, entry_));
    SPL_TRY(world_.interface(to_).pt_free(portal_));
    SPL_TRY(world_.interface(to_).eq_free(target_queue_.id));
    SPL_TRY(world_.interface(from_).eq_free(initiator_queue_.id));
    SPL_TRY(world_.interface(to_).ct_free(landed_));
    return world_.interface(from_).ct_free(acked_);
  }

 private:
  Result<SmallQueue> open_queue(uint32_t rank) {
    SmallQueue queue;
    queue.slots = static_cast<uint32_t>(1 + random().below(6));
    SPL_ASSIGN(queue.id, world_.interface(rank).eq_alloc(queue.slots));
    return queue;
  }

  template <class OnEvent>
  Status take_events(uint32_t rank, SmallQueue& queue, OnEvent on_event) {
    while (const auto event = world_.interface(rank).eq_get(queue.id)) {
      ++queue.events_taken;
      if (event->after_gap) ++queue.gaps;
      SPL_TRY(on_event(*event));
    }
    return {};
  }

  // Notes an event of a message; an Error if one of its kind has come before.
  Status note_once(std::vector<bool>& seen, uint64_t which, const nic::Event& event) {
    if (which >= seen.size() || event.fail != Fail::ok) return trouble(text("an event ", name_of(event.kind)));
    if (seen[which]) return trouble(text("a second ", name_of(event.kind), " of message ", which));
    seen[which] = true;
    return {};
  }

  Status on_target_event(const nic::Event& event) {
    const uint64_t which = event.hdr_data - user_ptr_of(0);
    SPL_TRY(note_once(landings_, which, event));
    const uint64_t start = reinterpret_cast<uint64_t>(target_.data()) + offsets_[which];
    if (event.kind == EventKind::put && event.start == start && event.user_ptr == user_ptr_of(0) &&
        event.manipulated_bytes == sources_[which].size()) {
      return {};
    }
    return trouble(text("the ", name_of(event.kind), " event of message ", which, " is wrong"));
  }

  Status on_initiator_event(const nic::Event& event) {
    const uint64_t which = event.user_ptr - user_ptr_of(0);
    if (event.kind == EventKind::send) {
      SPL_TRY(note_once(sends_, which, event));
      if (acks_[which]) return trouble("a send event behind its ack");
      sources_[which].spoil();
      return {};
    }
    SPL_TRY(note_once(acks_, which, event));
    if (event.kind == EventKind::ack && event.manipulated_bytes == sources_[which].size()) return {};
    return trouble(text("the ", name_of(event.kind), " event of message ", which, " is wrong"));
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  bool sleeps_ = false;  // the hosts look only after all events have come
  bool all_counted_ = false;
  SmallQueue target_queue_;
  SmallQueue initiator_queue_;
  nic::PortalIndex portal_;
  nic::EntryId entry_;
  nic::CounterId landed_;
  nic::CounterId acked_;
  std::vector<Region> sources_;
  std::vector<uint64_t> offsets_;
  Region target_;
  std::vector<bool> landings_;
  std::vector<bool> sends_;
  std::vector<bool> acks_;
};

}  // namespace

std::unique_ptr<Exchange> make_overrun(World& world, uint32_t id) { return std::make_unique<Overrun>(world, id); }

}  // namespace spinloom::torture
