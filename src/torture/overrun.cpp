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
  uint32_t told = 0;
  uint32_t gaps = 0;

  // Checks the counts. `slept`: the host took no event before all were posted.
  [[nodiscard]] Status check(uint32_t posted, bool slept) const {
    const uint32_t kept = std::min(slots, posted);
    if (told > posted || told < kept || (slept && told != kept)) {
      return fail(Code::mismatch, "a queue of ", slots, " slots got ", posted, " events, ", told, " could be taken");
    }
    const uint32_t lost = posted - told;
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
    uint64_t all = 0;
    for (uint32_t i = 0; i < puts; ++i) {
      offsets_.push_back(all);
      sources_.push_back(Region::random(random(), any_size()));
      all += sources_.back().size();
    }
    target_ = Region(all);
    landings_.resize(puts, false);
    sends_.resize(puts, false);
    acks_.resize(puts, false);
    SPL_ASSIGN(here_, open_queue(to_));
    SPL_ASSIGN(there_, open_queue(from_));
    SPL_ASSIGN(portal_, world_.at(to_).pt_alloc(here_.id));
    SPL_ASSIGN(landed_, world_.at(to_).ct_alloc());
    SPL_ASSIGN(acked_, world_.at(from_).ct_alloc());
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = all;
    entry.match_bits = bits();
    entry.user_ptr = name(0);
    entry.counter = landed_;
    entry.options.manage_local = true;
    entry.options.ct_comm = true;
    SPL_ASSIGN(entry_, world_.at(to_).me_append(portal_, entry));
    for (uint32_t i = 0; i < puts; ++i) {
      target_.expect(offsets_[i], sources_[i].data(), sources_[i].size());
      nic::Put put = put_of(from_, to_, i, sources_[i]);
      put.portal = portal_;
      put.queue = there_.id;
      put.counter = acked_;
      SPL_TRY(world_.at(from_).put(put));
    }
    return {};
  }

  Status poll() override {
    const nic::CounterValue landed = world_.at(to_).ct_get(landed_);
    const nic::CounterValue acked = world_.at(from_).ct_get(acked_);
    const auto puts = static_cast<uint32_t>(sources_.size());
    if (landed.failure > 0 || acked.failure > 0 || landed.success > puts || acked.success > puts) {
      return trouble(text("its counters say ", landed.success, " and ", acked.success, ", of ", puts));
    }
    all_told_ = landed.success == puts && acked.success == puts;  // an event comes before its count
    if (!all_told_ && (sleeps_ || !random().chance(1, 20))) return {};
    SPL_TRY(take(to_, here_, [this](const nic::Event& event) { return at_target(event); }));
    SPL_TRY(take(from_, there_, [this](const nic::Event& event) { return at_initiator(event); }));
    if (!all_told_) return {};
    if (const Status good = here_.check(puts, sleeps_); !good) return trouble(good.error().message);
    if (const Status good = there_.check(2 * puts, sleeps_); !good) return trouble(good.error().message);
    return target_.check(name() + ", when all has been counted");
  }

  bool done() const override { return all_told_; }

  Status finish() override {
    SPL_TRY(target_.check(name() + ", target"));
    for (const Region& source : sources_) SPL_TRY(source.check(name() + ", a source"));
    SPL_TRY(unlink(to_, entry_));
    SPL_TRY(world_.at(to_).pt_free(portal_));
    SPL_TRY(world_.at(to_).eq_free(here_.id));
    SPL_TRY(world_.at(from_).eq_free(there_.id));
    SPL_TRY(world_.at(to_).ct_free(landed_));
    return world_.at(from_).ct_free(acked_);
  }

 private:
  Result<SmallQueue> open_queue(uint32_t rank) {
    SmallQueue made;
    made.slots = static_cast<uint32_t>(1 + random().below(6));
    SPL_ASSIGN(made.id, world_.at(rank).eq_alloc(made.slots));
    return made;
  }

  template <class Look>
  Status take(uint32_t rank, SmallQueue& queue, Look look) {
    while (const auto event = world_.at(rank).eq_get(queue.id)) {
      ++queue.told;
      if (event->after_gap) ++queue.gaps;
      SPL_TRY(look(*event));
    }
    return {};
  }

  // Notes an event of a message; an Error if one of its kind has come before.
  Status once(std::vector<bool>& told, uint64_t which, const nic::Event& event) {
    if (which >= told.size() || event.fail != Fail::ok) return trouble(text("an event ", name_of(event.kind)));
    if (told[which]) return trouble(text("a second ", name_of(event.kind), " of message ", which));
    told[which] = true;
    return {};
  }

  Status at_target(const nic::Event& event) {
    const uint64_t which = event.hdr_data - name(0);
    SPL_TRY(once(landings_, which, event));
    const uint64_t start = reinterpret_cast<uint64_t>(target_.data()) + offsets_[which];
    if (event.kind == EventKind::put && event.start == start && event.user_ptr == name(0) &&
        event.manipulated_bytes == sources_[which].size()) {
      return {};
    }
    return trouble(text("the ", name_of(event.kind), " event of message ", which, " is wrong"));
  }

  Status at_initiator(const nic::Event& event) {
    const uint64_t which = event.user_ptr - name(0);
    if (event.kind == EventKind::send) {
      SPL_TRY(once(sends_, which, event));
      if (acks_[which]) return trouble("a send event behind its ack");
      sources_[which].spoil();
      return {};
    }
    SPL_TRY(once(acks_, which, event));
    if (event.kind == EventKind::ack && event.manipulated_bytes == sources_[which].size()) return {};
    return trouble(text("the ", name_of(event.kind), " event of message ", which, " is wrong"));
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  bool sleeps_ = false;  // the hosts look only after all events have come
  bool all_told_ = false;
  SmallQueue here_;
  SmallQueue there_;
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
