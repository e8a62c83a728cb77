// Commands that wait for a counter and are cancelled. In one kind, nothing counts before the cancel: no command runs,
// all that they hold is given back, and as many may wait again. In the other kind, a message counts while the host
// cancels: the waiting append is performed or never will be, and the NIC and the host agree on that.
#include <algorithm>

#include "torture/exchange.hpp"
#include "torture/listed.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Cancelled final : public Exchange {
 public:
  Cancelled(World& world, uint32_t id) : Exchange(world, id, Work::cancel), races_(random().chance(1, 2)) {}

  Status begin() override {
    here_ = any_rank();
    there_ = other_rank(here_);
    source_ = Region::random(random(), any_size());
    target_ = Region(source_.size());
    never_ = Region(source_.size());
    SPL_ASSIGN(counter_, world_.at(here_).ct_alloc(races_ ? UINT32_MAX : puts_waiting));
    return races_ ? begin_race() : begin_calm();
  }

  // Cancels after some steps, if the cancel races with a message.
  Status poll() override {
    if (!races_ || cancelled_) return {};
    if (cancels_after_ > 0) {
      --cancels_after_;
      return {};
    }
    cancelled_ = true;
    return world_.at(here_).ct_cancel(counter_);
  }

  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (role != waiting_role) return Exchange::on_event(rank, role, event);
    if (event.kind != EventKind::link || !races_) {
      return trouble(text("an event ", name_of(event.kind), " of an append that was cancelled"));
    }
    if (std::exchange(linked_, true)) return trouble("a second link event");
    return {};
  }

  bool done() const override { return Exchange::done() && (!races_ || cancelled_); }

  Status finish() override {
    SPL_TRY(never_.check(name() + ", entry that was cancelled"));
    SPL_TRY(target_.check(name() + ", target"));
    SPL_TRY(source_.check(name() + ", source"));
    if (races_) {
      SPL_TRY(unlink(here_, counting_));
      if (linked_) {
        SPL_TRY(unlink(here_, waiting_));
      } else {
        SPL_TRY(expect_gone(waiting_));
      }
    }
    const nic::CounterValue value = world_.at(here_).ct_get(counter_);
    const nic::CounterValue wanted{races_ ? 1u : 5u, 0};
    if (value != wanted) return trouble(text("its counter is ", value.success, ", ", value.failure));
    return world_.at(here_).ct_free(counter_);
  }

 private:
  static constexpr uint32_t puts_waiting = 3;  // the most puts that may wait for the counter
  static constexpr uint32_t rounds = 4;
  static constexpr uint32_t counting_role = 16;
  static constexpr uint32_t waiting_role = 17;

  Status begin_calm() {
    const Region spare = Region::random(random(), any_size());
    std::vector<uint32_t> places;  // places of the entries' ids
    bool comes_back = false;
    for (uint32_t round = 0; round < rounds; ++round) {
      SPL_TRY(append_waiting());
      comes_back = comes_back || std::find(places.begin(), places.end(), waiting_.value) != places.end();
      places.push_back(waiting_.value);
      Listed list(random(), spare.size());
      list.write(spare.data(), spare.size());
      for (uint32_t i = 0; i < puts_waiting; ++i) {
        nic::Put put = put_of(here_, there_, 60, spare);
        --world_.messages;  // the message never leaves
        put.local = nullptr;
        put.descriptor = list.descriptor();
        put.descriptor_offset = list.offset();
        const Status registered = world_.at(here_).put(put, nic::Trigger{counter_, 1 + random().below(4), 0});
        if (!registered) {
          return trouble(text("put ", i, " of round ", round, " may not wait: ", registered.error().message));
        }
      }
      const nic::Put beyond = put_of(here_, there_, 60, spare);
      --world_.messages;
      if (world_.at(here_).put(beyond, nic::Trigger{counter_, 1, 0}).ok()) {
        return trouble(text("one put more than the ", puts_waiting, " that may wait for a counter waits"));
      }
      SPL_TRY(world_.at(here_).ct_cancel(counter_));
      SPL_TRY(list.let_go(name() + ", when its puts have been cancelled"));
      SPL_TRY(expect_gone(waiting_));
    }
    if (!comes_back) return trouble("appends that were cancelled keep their ids");
    SPL_TRY(world_.at(here_).ct_inc(counter_, {5, 0}));
    return put(waiting_role, Fail::dropped);
  }

  Status begin_race() {
    cancels_after_ = random().below(200);
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = bits(counting_role);
    entry.user_ptr = name(counting_role);
    entry.counter = counter_;
    entry.options.ct_comm = true;
    entry.options.event_comm_disable = true;
    SPL_ASSIGN(counting_, world_.at(here_).me_append(host(here_).portal, entry));
    SPL_TRY(append_waiting());
    target_.expect(0, source_.data(), source_.size());
    return put(counting_role, Fail::ok);
  }

  // Registers an append that is performed when the counter counts.
  Status append_waiting() {
    nic::Entry entry;
    entry.start = never_.data();
    entry.length = never_.size();
    entry.match_bits = bits(waiting_role);
    entry.user_ptr = name(waiting_role);
    entry.options.event_link_disable = false;
    SPL_ASSIGN(waiting_, world_.at(here_).me_append(host(here_).portal, entry, nic::ListKind::priority,
                                                    nic::Trigger{counter_, 1, 0}));
    return {};
  }

  // Expects that neither the NIC nor the host knows the entry.
  Status expect_gone(nic::EntryId entry) {
    const auto unlinked = world_.at(here_).me_unlink(entry);
    if (!unlinked) return {};
    return trouble(text("entry ", entry, " is there, though its append was cancelled"));
  }

  // Puts from the other rank.
  Status put(uint32_t which, Fail fail) {
    expect(0, EventKind::send, [this] {
      source_.spoil();
      return Status{};
    });
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.fail = fail;
    ack.manipulated_bytes = fail == Fail::ok ? source_.size() : 0;
    expect(0, ack);
    nic::Put made = put_of(there_, here_, 0, source_);
    made.match_bits = bits(which);
    return world_.at(there_).put(made);
  }

  bool races_;
  uint32_t here_ = 0;
  uint32_t there_ = 0;
  nic::CounterId counter_;
  nic::EntryId counting_;
  nic::EntryId waiting_;
  Region source_;
  Region target_;
  Region never_;
  uint64_t cancels_after_ = 0;
  bool cancelled_ = false;
  bool linked_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_cancelled(World& world, uint32_t id) { return std::make_unique<Cancelled>(world, id); }

}  // namespace spinloom::torture
