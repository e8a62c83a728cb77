// A put that may come before its entry. Then it waits in the overflow entry, and is found there by the entry appended
// later, or by a search that removes it. The host appends the entry, or a triggered command does.
// Only the events show if the put came first. The bytes must be in exactly one of the two places.
#include <cstring>

#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Unexpected final : public Exchange {
 public:
  Unexpected(World& world, uint32_t id) : Exchange(world, id, Work::unexpected) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    source_ = Region::random(random(), any_size());
    copy_.assign(source_.data(), source_.data() + source_.size());
    target_ = Region(source_.size());
    searches_ = random().chance(1, 4);
    polls_until_append_ = random().below(400);
    if (!searches_ && random().chance(1, 3)) SPL_TRY(append_by_counter());
    nic::Put put = put_of(from_, to_, 0, source_);
    put.portal = host(to_).overflow;
    nic::Event send;
    send.kind = EventKind::send;
    expect(0, send, [this] {
      source_.spoil();
      return Status{};
    });
    acks_due_ = true;
    return world_.interface(from_).put(put);
  }

  // After some steps, appends the entry, or searches until the put is found.
  Status poll() override {
    if (polls_until_append_ > 0) {
      --polls_until_append_;
      return {};
    }
    if (search_found_ || has_appended_) return {};
    const nic::Entry entry = receive_entry();
    if (!searches_) {
      has_appended_ = true;
      if (counter_.exists()) return world_.interface(to_).ct_inc(counter_, {1, 0});
      const auto appended = world_.interface(to_).me_append(host(to_).overflow, entry);
      return appended ? Status{} : Status{appended.error()};
    }
    polls_until_append_ = 100;
    if (random().chance(1, 2)) {  // first a search that changes nothing
      ++searches_open_;
      const auto seen = world_.interface(to_).me_search(host(to_).overflow, entry, false);
      if (!seen) return seen.error();
    }
    if (search_found_) return {};
    ++searches_open_;
    const auto removed = world_.interface(to_).me_search(host(to_).overflow, entry, true);
    if (!removed) return removed.error();
    search_found_ = *removed > 0;
    if (*removed > 1) return trouble(text("a use-once search found ", *removed, " messages"));
    return {};
  }

  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (role == 0 && event.kind == EventKind::ack) {
      if (!std::exchange(acks_due_, false)) return trouble("a second ack");
      if (event.fail != Fail::ok || event.manipulated_bytes != copy_.size()) return trouble("its ack is wrong");
      acked_in_overflow_ = event.in_overflow;
      return {};
    }
    if (role == 0) return Exchange::on_event(rank, role, event);
    switch (event.kind) {
      case EventKind::put:
        if (searches_ || landed_) return trouble("a put event that nobody expects");
        landed_ = true;
        return compare(event, reinterpret_cast<uint64_t>(target_.data()), false);
      case EventKind::search:
        if (searches_open_-- == 0) return trouble("a search event without a search");
        if (event.fail == Fail::no_match) return {};
        return compare(event, 0, true);
      case EventKind::put_overflow:
        if (searches_ && searches_open_-- == 0) return trouble("an overflow event without a search");
        if (landed_) return trouble("it landed twice");
        landed_ = waited_ = true;
        return compare(event, 0, true);
      case EventKind::auto_unlink:
        if (!landed_ || searches_ || std::exchange(unlinked_, true)) return trouble("an auto_unlink at the wrong time");
        return {};
      default: return trouble(text("an event ", name_of(event.kind)));
    }
  }

  bool done() const override {
    return Exchange::done() && !acks_due_ && landed_ && searches_open_ == 0 && (searches_ || unlinked_);
  }

  Status finish() override {
    if (acked_in_overflow_ != waited_) return trouble("its ack names the other list");
    SPL_TRY(target_.check(name() + ", target"));
    if (counter_.exists()) SPL_TRY(world_.interface(to_).ct_free(counter_));
    return source_.check(name() + ", source");
  }

 private:
  [[nodiscard]] nic::Entry receive_entry() {
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(1);
    entry.options.use_once = true;
    return entry;
  }

  // Registers an append of the entry that the NIC performs when `counter_` counts.
  Status append_by_counter() {
    SPL_ASSIGN(counter_, world_.interface(to_).ct_alloc());
    const auto registered = world_.interface(to_).me_append(host(to_).overflow, receive_entry(),
                                                            nic::ListKind::priority, nic::Trigger{counter_, 1, 0});
    return registered ? Status{} : Status{registered.error()};
  }

  Status compare(const nic::Event& event, uint64_t start, bool in_overflow) {
    if (event.in_overflow != in_overflow || event.manipulated_bytes != copy_.size() ||
        event.requested_bytes != copy_.size() || event.initiator != nic::Rank{from_} ||
        event.match_bits != match_bits() || event.hdr_data != user_ptr_of(0) || event.fail != Fail::ok) {
      return trouble(text("the fields of its ", name_of(event.kind), " event are wrong: mlength ",
                          event.manipulated_bytes, ", rlength ", event.requested_bytes, ", of ", copy_.size()));
    }
    if (!in_overflow) {
      if (event.start != start) return trouble("it landed elsewhere in its entry");
      target_.expect(0, copy_.data(), copy_.size());
      SPL_TRY(target_.check(name() + ", when its event has come"));
      target_.spoil();
      return {};
    }
    // In the overflow entry the bytes must be complete, in a place of their own. A search that changes nothing may see
    // the put while it is still arriving.
    Region& overflow = host(to_).waiting_room;
    const uint64_t offset = event.start - reinterpret_cast<uint64_t>(overflow.data());
    if (offset > overflow.size() || copy_.size() > overflow.size() - offset)
      return trouble("it lies outside of the overflow entry");
    if (copy_.empty() || event.kind == EventKind::search) return {};
    if (std::memcmp(overflow.data() + offset, copy_.data(), copy_.size()) != 0)
      return trouble("its bytes are not in the overflow entry");
    for (uint64_t i = 0; event.kind == EventKind::put_overflow && i < copy_.size(); ++i) {
      if (overflow.expected()[offset + i] != Region::fill_byte)
        return trouble("another message's bytes lie there, too");
    }
    if (event.kind != EventKind::put_overflow) return {};
    // The host has consumed the message and will not read its place again; spoilt bytes mark the place as used.
    std::fill_n(overflow.data() + offset, copy_.size(), Region::spoilt_byte);
    std::fill_n(overflow.expected() + offset, copy_.size(), Region::spoilt_byte);
    return {};
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  nic::CounterId counter_;  // starts the append
  Region source_;
  Region target_;
  std::vector<uint8_t> copy_;
  uint64_t polls_until_append_ = 0;
  bool searches_ = false;
  bool has_appended_ = false;
  bool search_found_ = false;
  bool acks_due_ = false;
  bool landed_ = false;
  bool waited_ = false;  // the put waited in the overflow entry
  bool acked_in_overflow_ = false;
  bool unlinked_ = false;
  uint32_t searches_open_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_unexpected(World& world, uint32_t id) { return std::make_unique<Unexpected>(world, id); }

}  // namespace spinloom::torture
