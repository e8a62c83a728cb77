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
    owner_rank_ = any_rank();
    sender_rank_ = other_rank(owner_rank_);
    source_ = Region::random(random(), any_size());
    target_ = Region(source_.size());
    untouched_ = Region(source_.size());
    SPL_ASSIGN(counter_, world_.interface(owner_rank_).ct_alloc(races_ ? UINT32_MAX : puts_waiting));
    return races_ ? begin_race() : begin_unraced();
  }

  // Cancels after some steps, if the cancel races with a message.
  Status poll() override {
    if (!races_ || cancelled_) return {};
    if (cancels_after_ > 0) {
      --cancels_after_;
      return {};
    }
    cancelled_ = true;
    return world_.interface(owner_rank_).ct_cancel(counter_);
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
    SPL_TRY(untouched_.check(name() + ", entry that was cancelled"));
    SPL_TRY(target_.check(name() + ", target"));
    SPL_TRY(source_.check(name() + ", source"));
    if (races_) {
      SPL_TRY(unlink(owner_rank_, counting_entry_));
      if (linked_) {
        SPL_TRY(unlink(owner_rank_, waiting_entry_));
      } else {
        SPL_TRY(expect_gone(waiting_entry_));
      }
    }
    const nic::CounterValue value = world_.interface(owner_rank_).ct_get(counter_);
    const nic::CounterValue wanted{races_ ? 1u : 5u, 0};
    if (value != wanted) return trouble(text("its counter is ", value.success, ", ", value.failure));
    return world_.interface(owner_rank_).ct_free(counter_);
  }

 private:
  static constexpr uint32_t puts_waiting = 3;  // the most puts that may wait for the counter
  static constexpr uint32_t rounds = 4;
  static constexpr uint32_t counting_role = 16;
  static constexpr uint32_t waiting_role = 17;

  Status begin_unraced() {
    const Region spare = Region::random(random(), any_size());
    std::vector<uint32_t> places;  // places of the entries' ids
    bool id_comes_back = false;
    for (uint32_t round = 0; round < rounds; ++round) {
      SPL_TRY(append_waiting());
      id_comes_back = id_comes_back || std::find(places.begin(), places.end(), waiting_entry_.value) != places.end();
      places.push_back(waiting_entry_.value);
      ListedMemory list(random(), spare.size());
      list.write(spare.data(), spare.size());
      for (uint32_t i = 0; i < puts_waiting; ++i) {
        nic::Put put = put_of(owner_rank_, sender_rank_, 60, spare);
        --world_.messages;  // the message never leaves
        put.local = nullptr;
        put.descriptor = list.descriptor();
        put.descriptor_offset = list.offset();
        const Status registered =
            world_.interface(owner_rank_).put(put, nic::Trigger{counter_, 1 + random().below(4), 0});
        if (!registered) {
          return trouble(text("put ", i, " of round ", round, " may not wait: ", registered.error().message));
        }
      }
      const nic::Put beyond = put_of(owner_rank_, sender_rank_, 60, spare);
      --world_.messages;
      if (world_.interface(owner_rank_).put(beyond, nic::Trigger{counter_, 1, 0}).ok()) {
        return trouble(text("one put more than the ", puts_waiting, " that may wait for a counter waits"));
      }
      SPL_TRY(world_.interface(owner_rank_).ct_cancel(counter_));
      SPL_TRY(list.check_released(name() + ", when its puts have been cancelled"));
      SPL_TRY(expect_gone(waiting_entry_));
    }
    if (!id_comes_back) return trouble("appends that were cancelled keep their ids");
    SPL_TRY(world_.interface(owner_rank_).ct_inc(counter_, {5, 0}));
    return put(waiting_role, Fail::dropped);
  }

  Status begin_race() {
    cancels_after_ = random().below(200);
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = match_bits(counting_role);
    entry.user_ptr = user_ptr_of(counting_role);
    entry.counter = counter_;
    entry.options.ct_comm = true;
    entry.options.event_comm_disable = true;
    SPL_ASSIGN(counting_entry_, world_.interface(owner_rank_).me_append(host(owner_rank_).portal, entry));
    SPL_TRY(append_waiting());
    target_.expect(0, source_.data(), source_.size());
    return put(counting_role, Fail::ok);
  }

  // Registers an append that is performed when the counter counts.
  Status append_waiting() {
    nic::Entry entry;
    entry.start = untouched_.data();
    entry.length = untouched_.size();
    entry.match_bits = match_bits(waiting_role);
    entry.user_ptr = user_ptr_of(waiting_role);
    entry.options.event_link_disable = false;
    SPL_ASSIGN(waiting_entry_,
               world_.interface(owner_rank_)
                   .me_append(host(owner_rank_).portal, entry, nic::ListKind::priority, nic::Trigger{counter_, 1, 0}));
    return {};
  }

  // Expects that neither the NIC nor the host knows the entry.
  Status expect_gone(nic::EntryId entry) {
    const auto unlinked = world_.interface(owner_rank_).me_unlink(entry);
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
    nic::Put put = put_of(sender_rank_, owner_rank_, 0, source_);
    put.match_bits = match_bits(which);
    return world_.interface(sender_rank_).put(put);
  }

  bool races_;                // a message counts while the host cancels
  uint32_t owner_rank_ = 0;   // the rank of the counter, and the target of the message
  uint32_t sender_rank_ = 0;  // the rank that sends the message
  nic::CounterId counter_;
  nic::EntryId counting_entry_;
  nic::EntryId waiting_entry_;
  Region source_;
  Region target_;
  Region untouched_;           // memory of entries whose appends are cancelled
  uint64_t cancels_after_ = 0;  // polls until the host cancels
  bool cancelled_ = false;
  bool linked_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_cancelled(World& world, uint32_t id) { return std::make_unique<Cancelled>(world, id); }

}  // namespace spinloom::torture
