// A portal table entry that is disabled while messages arrive. Flow control does that when a message finds no entry,
// or no room in an event queue that is too small; the host does it at any time. The host then takes events, appends
// entries and enables the portal table entry again, and the initiators repeat refused messages. With an overflow
// list, messages that find no entry wait there, and entries that are appended later take them; their events need room
// in the queue, too. In the end every message has landed once, and no event was lost.
#include <algorithm>
#include <cstring>

#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Flow final : public Exchange {
 public:
  Flow(World& world, uint32_t id) : Exchange(world, id, Work::flow) {}

  Status begin() override {
    to_ = any_rank();
    const uint32_t messages = static_cast<uint32_t>(3 + random().below(8));
    portals::PortalOptions options;
    options.flow_control = random().chance(3, 4);
    has_small_queue_ = options.flow_control && random().chance(1, 2);
    host_disables_ = !options.flow_control || random().chance(1, 3);
    has_flow_control_ = options.flow_control;
    const uint32_t slots = has_small_queue_ ? static_cast<uint32_t>(2 + random().below(6)) : 1024;
    SPL_ASSIGN(queue_, world_.interface(to_).eq_alloc(slots + 1, 1));
    SPL_ASSIGN(portal_, world_.interface(to_).pt_alloc(queue_, options));
    for (uint32_t i = 0; i < messages; ++i) {
      senders_.push_back(any_rank());
      sources_.push_back(Region::random(random(), any_size()));
    }
    targets_.reserve(messages);
    landed_.resize(messages, false);
    overflow_of_.resize(messages, nullptr);
    acked_.resize(messages, false);
    sent_.resize(messages, false);
    has_overflow_list_ = options.flow_control && random().chance(1, 2);
    if (has_overflow_list_) SPL_TRY(append_overflow(messages));
    const bool starved = has_overflow_list_ || (options.flow_control && (!has_small_queue_ || random().chance(1, 2)));
    SPL_TRY(append(starved ? static_cast<uint32_t>(random().below(3)) : messages));
    for (uint32_t i = 0; i < messages; ++i) SPL_TRY(put(i));
    return {};
  }

  Status poll() override {
    SPL_TRY(take_events(has_small_queue_));
    if (is_disabled_ && random().chance(1, 8)) {
      is_disabled_ = false;
      SPL_TRY(append(static_cast<uint32_t>(1 + random().below(3))));
      SPL_TRY(world_.interface(to_).pt_enable(portal_));
    } else if (host_disables_ && random().chance(1, 40)) {
      SPL_TRY(disable());
    }
    if (has_overflow_list_ && random().chance(1, 24)) SPL_TRY(append(static_cast<uint32_t>(1 + random().below(3))));
    for (uint32_t i = 0; i < refused_.size(); ++i) {
      if (!random().chance(1, 16)) continue;
      const uint32_t which = refused_[i];
      refused_.erase(refused_.begin() + i);
      SPL_TRY(put(which));
    }
    return {};
  }

  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (role >= sources_.size()) return Exchange::on_event(rank, role, event);
    if (event.kind == EventKind::send) {
      if (sent_[role]) return trouble("a second send event");
      sent_[role] = true;
      return {};
    }
    if (event.kind != EventKind::ack || !sent_[role]) return trouble(text("an event ", name_of(event.kind)));
    if (acked_[role]) return trouble("a second ack");
    if (event.fail == Fail::pt_disabled) {
      if (event.manipulated_bytes != 0) return trouble("a refused message moved bytes");
      refused_.push_back(role);
      return {};
    }
    if (event.fail != Fail::ok || event.manipulated_bytes != sources_[role].size()) {
      return trouble(text("its ack says ", name_of(event.fail), " and ", event.manipulated_bytes, " B"));
    }
    acked_[role] = true;
    return {};
  }

  bool done() const override {
    return refused_.empty() && !is_disabled_ &&
           std::all_of(landed_.begin(), landed_.end(), [](bool one) { return one; }) &&
           std::all_of(acked_.begin(), acked_.end(), [](bool one) { return one; });
  }

  Status finish() override {
    SPL_TRY(take_events(false));
    for (const OverflowEntry& overflow : overflow_entries_) {
      SPL_TRY(overflow.memory->check(name() + ", an overflow entry"));
      const bool leaves = overflow.use_once && overflow.landed > 0;
      if (overflow.unlinked != leaves || overflow.freed != leaves)
        return trouble("an overflow entry's end was not told");
      if (!leaves) SPL_TRY(unlink(to_, overflow.entry));
    }
    for (const Target& target : targets_) {
      SPL_TRY(target.memory->check(name() + ", an entry"));
      if (target.used && !target.unlinked) return trouble("an entry has left without its auto_unlink");
      if (!target.used) SPL_TRY(unlink(to_, target.entry));
    }
    SPL_TRY(world_.interface(to_).pt_free(portal_));
    return world_.interface(to_).eq_free(queue_);
  }

 private:
  static constexpr uint32_t first_overflow = 12;
  static constexpr uint32_t first_entry = 24;
  struct OverflowEntry {  // an entry in the overflow list
    std::unique_ptr<Region> memory;
    nic::EntryId entry;
    bool use_once = false;
    uint32_t landed = 0;  // messages that landed in the entry
    uint32_t matched = 0;  // messages among these that entries have taken
    bool unlinked = false;
    bool freed = false;
  };
  struct Target {
    std::unique_ptr<Region> memory;
    nic::EntryId entry;
    bool used = false;
    bool unlinked = false;
  };

  Status append(uint32_t entries) {
    for (; entries > 0 && first_entry + targets_.size() < roles; --entries) {
      Target& target = targets_.emplace_back();
      target.memory = std::make_unique<Region>(world_.config.size_max);
      nic::Entry entry;
      entry.start = target.memory->data();
      entry.length = target.memory->size();
      entry.match_bits = match_bits();
      entry.user_ptr = user_ptr_of(first_entry + static_cast<uint32_t>(targets_.size()) - 1);
      entry.options.use_once = true;
      const size_t index = targets_.size() - 1;
      SPL_ASSIGN(const nic::EntryId appended, world_.interface(to_).me_append(portal_, entry));
      targets_[index].entry = appended;
    }
    return {};
  }

  // Appends one entry for all messages, or one for each.
  Status append_overflow(uint32_t messages) {
    const bool one_per_message = random().chance(1, 2);
    overflow_entries_.reserve(messages);
    for (uint32_t i = 0; i < (one_per_message ? messages : 1); ++i) {
      OverflowEntry& overflow = overflow_entries_.emplace_back();
      overflow.memory = std::make_unique<Region>(world_.config.size_max * (one_per_message ? 1 : messages));
      overflow.use_once = one_per_message;
      nic::Entry entry;
      entry.start = overflow.memory->data();
      entry.length = overflow.memory->size();
      entry.match_bits = match_bits();
      entry.user_ptr = user_ptr_of(first_overflow + i);
      entry.options.use_once = one_per_message;
      entry.options.manage_local = true;
      SPL_ASSIGN(overflow.entry, world_.interface(to_).me_append(portal_, entry, nic::ListKind::overflow));
    }
    return {};
  }

  // Takes all events; with `is_slow`, only one event now and then.
  Status take_events(bool is_slow) {
    if (is_slow && !random().chance(1, 6)) return {};
    while (const auto event = world_.interface(to_).eq_get(queue_)) {
      if (event->after_gap) return trouble("events were overwritten");
      SPL_TRY(on_target_event(*event));
      if (is_slow) break;
    }
    return {};
  }

  // Disables the portal table entry. When the call returns, all events of earlier messages are there, and nothing lands
  // any more.
  Status disable() {
    SPL_TRY(world_.interface(to_).pt_disable(portal_));
    SPL_TRY(take_events(false));
    is_disabled_ = true;
    return {};
  }

  Status put(uint32_t i) {
    sent_[i] = false;
    nic::Put put = put_of(senders_[i], to_, i, sources_[i]);
    put.portal = portal_;
    return world_.interface(senders_[i]).put(put);
  }

  Status on_target_event(const nic::Event& event) {
    if (event.kind == EventKind::pt_disabled) {
      if (is_disabled_) return trouble("switched off twice");
      if (!has_flow_control_) return trouble("a pt_disabled event without flow control");
      ++count_of(world_.faults, Fault::flow_control);
      is_disabled_ = true;
      return {};
    }
    const uint64_t overflow = event.user_ptr - user_ptr_of(first_overflow);
    if (overflow < overflow_entries_.size()) return on_overflow_event(overflow_entries_[overflow], event);
    const uint64_t role = event.user_ptr - user_ptr_of(first_entry);
    if (role >= targets_.size()) return trouble(text("an event ", name_of(event.kind), " of no entry"));
    Target& target = targets_[role];
    if (event.kind == EventKind::auto_unlink) {
      if (!target.used || std::exchange(target.unlinked, true)) return trouble("an auto_unlink at the wrong time");
      return {};
    }
    const uint64_t which = event.hdr_data - user_ptr_of(0);
    if (event.kind == EventKind::put_overflow) return on_overflow_match(target, which, event);
    if (is_disabled_) return trouble("a message landed after pt_disabled had told that none will");
    if (event.kind != EventKind::put || which >= sources_.size() || landed_[which] || overflow_of_[which] != nullptr ||
        target.used || event.initiator != nic::Rank{senders_[which]} ||
        event.manipulated_bytes != sources_[which].size()) {
      return trouble(text("an event ", name_of(event.kind), " of message ", which));
    }
    landed_[which] = true;
    target.used = true;
    target.memory->expect(0, sources_[which].data(), sources_[which].size());
    SPL_TRY(target.memory->check(name() + ", when its event has come"));
    target.memory->spoil();
    return {};
  }

  Status on_overflow_event(OverflowEntry& overflow, const nic::Event& event) {
    if (event.kind == EventKind::auto_unlink) {
      if (!overflow.use_once || overflow.landed == 0 || std::exchange(overflow.unlinked, true)) {
        return trouble("an overflow entry's auto_unlink at the wrong time");
      }
      return {};
    }
    if (event.kind == EventKind::auto_free) {
      if (!overflow.unlinked || overflow.matched != overflow.landed || std::exchange(overflow.freed, true)) {
        return trouble("an overflow entry's auto_free at the wrong time");
      }
      overflow.memory->spoil();
      return {};
    }
    if (is_disabled_) return trouble("a message came to the overflow list after pt_disabled had told that none will");
    const uint64_t which = event.hdr_data - user_ptr_of(0);
    if (event.kind != EventKind::put || !event.in_overflow || which >= sources_.size() || landed_[which] ||
        overflow_of_[which] != nullptr || event.initiator != nic::Rank{senders_[which]} ||
        event.manipulated_bytes != sources_[which].size() || (overflow.use_once && overflow.landed > 0)) {
      return trouble(text("an event ", name_of(event.kind), " in the overflow list, of message ", which));
    }
    const Region& source = sources_[which];
    const uint64_t offset = event.start - reinterpret_cast<uint64_t>(overflow.memory->data());
    if (offset > overflow.memory->size() || source.size() > overflow.memory->size() - offset ||
        std::memcmp(overflow.memory->data() + offset, source.data(), source.size()) != 0) {
      return trouble(text("message ", which, " is not where its overflow entry's event says"));
    }
    overflow.memory->expect(offset, source.data(), source.size());
    ++overflow.landed;
    overflow_of_[which] = &overflow;
    return {};
  }

  // Checks the event of an entry that took a waiting message.
  Status on_overflow_match(Target& target, uint64_t which, const nic::Event& event) {
    if (which >= sources_.size() || overflow_of_[which] == nullptr || landed_[which] || target.used ||
        !event.in_overflow || event.initiator != nic::Rank{senders_[which]} ||
        event.manipulated_bytes != sources_[which].size()) {
      return trouble(text("a put_overflow event of message ", which));
    }
    OverflowEntry& overflow = *overflow_of_[which];
    const uint64_t offset = event.start - reinterpret_cast<uint64_t>(overflow.memory->data());
    const Region& source = sources_[which];
    if (offset > overflow.memory->size() || source.size() > overflow.memory->size() - offset ||
        std::memcmp(overflow.memory->data() + offset, source.data(), source.size()) != 0) {
      return trouble(text("message ", which, " is not where its put_overflow event says"));
    }
    ++overflow.matched;
    landed_[which] = true;
    target.used = true;
    return {};
  }

  uint32_t to_ = 0;
  nic::QueueId queue_;
  nic::PortalIndex portal_;
  std::vector<uint32_t> senders_;
  std::vector<Region> sources_;
  std::vector<Target> targets_;
  std::vector<OverflowEntry> overflow_entries_;
  std::vector<OverflowEntry*> overflow_of_;  // one for each message: the overflow entry in which it waits or has waited
  std::vector<bool> landed_;
  std::vector<bool> acked_;
  std::vector<bool> sent_;
  std::vector<uint32_t> refused_;
  bool is_disabled_ = false;
  bool has_small_queue_ = false;  // the queue is too small
  bool host_disables_ = false;  // the host disables the entry now and then
  bool has_overflow_list_ = false;  // the entry has an overflow list
  bool has_flow_control_ = false;  // the entry has flow control, so pt_disabled events may come
};

}  // namespace

std::unique_ptr<Exchange> make_flow(World& world, uint32_t id) { return std::make_unique<Flow>(world, id); }

}  // namespace spinloom::torture
