// Several puts in a row from one rank, which must match in the order in which they were sent, whatever the order in
// which their packets come. They go to several use-once entries with the same match bits, each of which takes one
// put, or to one entry that appends them and leaves its list when it is nearly full. In some runs exactly min_free
// bytes or one byte less are left on purpose.
#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Row final : public Exchange {
 public:
  Row(World& world, uint32_t id, Work work) : Exchange(world, id, work), appends_(work == Work::append) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    const uint32_t puts = static_cast<uint32_t>(2 + random().below(6));
    for (uint32_t i = 0; i < puts; ++i) sources_.push_back(Region::random(random(), any_size()));
    return appends_ ? put_to_one_entry() : put_to_entries();
  }

  Status finish() override {
    for (size_t i = 0; i < targets_.size(); ++i) SPL_TRY(targets_[i].check(text(name(), ", entry ", i)));
    for (size_t i = 0; i < sources_.size(); ++i) SPL_TRY(sources_[i].check(text(name(), ", source ", i)));
    for (const nic::EntryId entry : remaining_entries_) SPL_TRY(unlink(to_, entry));
    return {};
  }

 private:
  static constexpr uint32_t first_entry = 16;

  Status put_to_entries() {
    const size_t entries = 1 + random().below(sources_.size());
    targets_.reserve(entries);
    for (uint32_t i = 0; i < entries; ++i) {
      targets_.emplace_back(world_.config.size_max);
      nic::Entry entry;
      entry.start = targets_[i].data();
      entry.length = targets_[i].size();
      entry.match_bits = match_bits();
      entry.user_ptr = user_ptr_of(first_entry + i);
      entry.options.use_once = true;
      expect_landing(i, first_entry + i, i, 0, sources_[i].size());
      expect(first_entry + i, EventKind::auto_unlink);
      targets_[i].expect(0, sources_[i].data(), sources_[i].size());
      const auto appended = world_.interface(to_).me_append(host(to_).portal, entry);
      if (!appended) return appended.error();
    }
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      SPL_TRY(put(i, i < entries ? Fail::ok : Fail::dropped, sources_[i].size(), 0));
    }
    return {};
  }

  Status put_to_one_entry() {
    uint64_t total_bytes = 0;
    for (const Region& source : sources_) total_bytes += source.size();
    const uint64_t min_free = 1 + random().below(32);
    uint64_t length = random().chance(1, 2) ? total_bytes + 8 : total_bytes * 2 / 3 + 1;
    if (random().chance(1, 3)) {  // a message leaves exactly min_free, or one byte less
      length = min_free - random().below(2);
      const uint64_t before = 1 + random().below(sources_.size());
      for (uint64_t i = 0; i < before; ++i) length += sources_[i].size();
    }
    targets_.emplace_back(length);
    nic::Entry entry;
    entry.start = targets_[0].data();
    entry.length = targets_[0].size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(first_entry);
    entry.options.manage_local = true;
    entry.min_free = min_free;
    const auto appended = world_.interface(to_).me_append(host(to_).portal, entry);
    if (!appended) return appended.error();
    uint64_t offset = 0;
    bool is_linked = true;
    // Messages may end in any order, so each has a role, which its header data names.
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      if (!is_linked) {
        SPL_TRY(put(i, Fail::dropped, 0, 0));
        continue;
      }
      const uint64_t bytes = std::min(sources_[i].size(), entry.length - offset);
      landings_[i] = landing_of(i, offset, bytes);
      targets_[0].expect(offset, sources_[i].data(), bytes);
      SPL_TRY(put(i, Fail::ok, bytes, offset));
      offset += bytes;
      is_linked = entry.length - offset >= entry.min_free;
      ++landings_due_;
    }
    unlink_expected_ = !is_linked;
    if (is_linked) remaining_entries_.push_back(*appended);
    return {};
  }

  // The events of one entry belong to several messages, which may end in any order.
  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (!appends_ || role != first_entry) return Exchange::on_event(rank, role, event);
    if (event.kind == EventKind::auto_unlink) {
      if (!unlink_expected_ || unlink_seen_) return trouble("an auto_unlink that nobody expects");
      if (landings_due_ > 0) return trouble("auto_unlink before all events of messages that landed in the entry");
      unlink_seen_ = true;
      return {};
    }
    const uint64_t which = event.hdr_data - user_ptr_of(0);
    if (which >= sources_.size() || landings_[which].seen || landings_[which].event.initiator != nic::Rank{from_} ||
        event.kind != EventKind::put) {
      return trouble(text("an event ", name_of(event.kind), " for message ", which));
    }
    Landing& landing = landings_[which];
    landing.seen = true;
    --landings_due_;
    if (event.start != landing.event.start || event.manipulated_bytes != landing.event.manipulated_bytes) {
      return trouble(text(
          "message ", which, " landed at ", event.start - reinterpret_cast<uint64_t>(targets_[0].data()), " with ",
          event.manipulated_bytes, " B, not at ", landing.event.start - reinterpret_cast<uint64_t>(targets_[0].data()),
          " with ", landing.event.manipulated_bytes, " B"));
    }
    return {};
  }

  bool done() const override { return Exchange::done() && landings_due_ == 0 && (!unlink_expected_ || unlink_seen_); }

  struct Landing {
    nic::Event event;
    bool seen = false;
  };
  Landing landing_of(uint32_t i, uint64_t offset, uint64_t bytes) {
    Landing landing;
    landing.event.initiator = nic::Rank{from_};
    landing.event.start = reinterpret_cast<uint64_t>(targets_[0].data()) + offset;
    landing.event.manipulated_bytes = bytes;
    landing.event.hdr_data = user_ptr_of(i);
    return landing;
  }

  void expect_landing(uint32_t target, uint32_t role, uint32_t put, uint64_t offset, uint64_t bytes) {
    nic::Event event;
    event.kind = EventKind::put;
    event.initiator = nic::Rank{from_};
    event.match_bits = match_bits();
    event.requested_bytes = sources_[put].size();
    event.manipulated_bytes = bytes;
    event.start = reinterpret_cast<uint64_t>(targets_[target].data()) + offset;
    event.hdr_data = user_ptr_of(put);
    expect(role, event, [this, target]() -> Status {
      SPL_TRY(targets_[target].check(text(name(), ", entry ", target, ", when its event has come")));
      targets_[target].spoil();
      return Status{};
    });
  }

  Status put(uint32_t i, Fail failure, uint64_t bytes, uint64_t offset) {
    nic::Event send;
    send.kind = EventKind::send;
    expect(i, send, [this, i] {
      sources_[i].spoil();
      return Status{};
    });
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.fail = failure;
    ack.manipulated_bytes = failure == Fail::ok ? bytes : 0;
    ack.remote_offset = offset;
    expect(i, ack);
    return world_.interface(from_).put(put_of(from_, to_, i, sources_[i]));
  }

  bool appends_;
  uint32_t from_ = 0;
  uint32_t to_ = 0;
  std::vector<Region> sources_;
  std::vector<Region> targets_;
  std::vector<nic::EntryId> remaining_entries_;
  std::array<Landing, roles> landings_;
  uint32_t landings_due_ = 0;
  bool unlink_expected_ = false;
  bool unlink_seen_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_row(World& world, uint32_t id, Work work) {
  return std::make_unique<Row>(world, id, work);
}

}  // namespace spinloom::torture
