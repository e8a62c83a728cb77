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
    small_ = options.flow_control && random().chance(1, 2);
    disables_ = !options.flow_control || random().chance(1, 3);
    told_ = options.flow_control;
    const uint32_t slots = small_ ? static_cast<uint32_t>(2 + random().below(6)) : 1024;
    SPL_ASSIGN(queue_, world_.at(to_).eq_alloc(slots + 1, 1));
    SPL_ASSIGN(portal_, world_.at(to_).pt_alloc(queue_, options));
    for (uint32_t i = 0; i < messages; ++i) {
      froms_.push_back(any_rank());
      sources_.push_back(Region::random(random(), any_size()));
    }
    targets_.reserve(messages);
    landed_.resize(messages, false);
    waiting_.resize(messages, nullptr);
    acked_.resize(messages, false);
    sent_.resize(messages, false);
    waits_ = options.flow_control && random().chance(1, 2);
    if (waits_) SPL_TRY(append_overflow(messages));
    const bool starved = waits_ || (options.flow_control && (!small_ || random().chance(1, 2)));
    SPL_TRY(append(starved ? static_cast<uint32_t>(random().below(3)) : messages));
    for (uint32_t i = 0; i < messages; ++i) SPL_TRY(put(i));
    return {};
  }

  Status poll() override {
    SPL_TRY(take(small_));
    if (off_ && random().chance(1, 8)) {
      off_ = false;
      SPL_TRY(append(static_cast<uint32_t>(1 + random().below(3))));
      SPL_TRY(world_.at(to_).pt_enable(portal_));
    } else if (disables_ && random().chance(1, 40)) {
      SPL_TRY(disable());
    }
    if (waits_ && random().chance(1, 24)) SPL_TRY(append(static_cast<uint32_t>(1 + random().below(3))));
    for (uint32_t i = 0; i < again_.size(); ++i) {
      if (!random().chance(1, 16)) continue;
      const uint32_t which = again_[i];
      again_.erase(again_.begin() + i);
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
      again_.push_back(role);
      return {};
    }
    if (event.fail != Fail::ok || event.manipulated_bytes != sources_[role].size()) {
      return trouble(text("its ack says ", name_of(event.fail), " and ", event.manipulated_bytes, " B"));
    }
    acked_[role] = true;
    return {};
  }

  bool done() const override {
    return again_.empty() && !off_ && std::all_of(landed_.begin(), landed_.end(), [](bool one) { return one; }) &&
           std::all_of(acked_.begin(), acked_.end(), [](bool one) { return one; });
  }

  Status finish() override {
    SPL_TRY(take(false));
    for (const Holder& holder : holders_) {
      SPL_TRY(holder.memory->check(name() + ", an overflow entry"));
      const bool leaves = holder.use_once && holder.taken > 0;
      if (holder.unlinked != leaves || holder.freed != leaves) return trouble("an overflow entry's end was not told");
      if (!leaves) SPL_TRY(unlink(to_, holder.entry));
    }
    for (const Target& target : targets_) {
      SPL_TRY(target.memory->check(name() + ", an entry"));
      if (target.used && !target.unlinked) return trouble("an entry has left without its auto_unlink");
      if (!target.used) SPL_TRY(unlink(to_, target.entry));
    }
    SPL_TRY(world_.at(to_).pt_free(portal_));
    return world_.at(to_).eq_free(queue_);
  }

 private:
  static constexpr uint32_t first_holder = 12;
  static constexpr uint32_t first_entry = 24;
  struct Holder {  // an entry in the overflow list
    std::unique_ptr<Region> memory;
    nic::EntryId entry;
    bool use_once = false;
    uint32_t taken = 0;  // messages that landed in the entry
    uint32_t found = 0;  // messages among these that entries have taken
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
      entry.match_bits = bits();
      entry.user_ptr = name(first_entry + static_cast<uint32_t>(targets_.size()) - 1);
      entry.options.use_once = true;
      const size_t index = targets_.size() - 1;
      SPL_ASSIGN(const nic::EntryId appended, world_.at(to_).me_append(portal_, entry));
      targets_[index].entry = appended;
    }
    return {};
  }

  // Appends one entry for all messages, or one for each.
  Status append_overflow(uint32_t messages) {
    const bool each = random().chance(1, 2);
    holders_.reserve(messages);
    for (uint32_t i = 0; i < (each ? messages : 1); ++i) {
      Holder& holder = holders_.emplace_back();
      holder.memory = std::make_unique<Region>(world_.config.size_max * (each ? 1 : messages));
      holder.use_once = each;
      nic::Entry entry;
      entry.start = holder.memory->data();
      entry.length = holder.memory->size();
      entry.match_bits = bits();
      entry.user_ptr = name(first_holder + i);
      entry.options.use_once = each;
      entry.options.manage_local = true;
      SPL_ASSIGN(holder.entry, world_.at(to_).me_append(portal_, entry, nic::ListKind::overflow));
    }
    return {};
  }

  // Takes all events; with `slowly`, only one event now and then.
  Status take(bool slowly) {
    if (slowly && !random().chance(1, 6)) return {};
    while (const auto event = world_.at(to_).eq_get(queue_)) {
      if (event->after_gap) return trouble("events were overwritten");
      SPL_TRY(at_target(*event));
      if (slowly) break;
    }
    return {};
  }

  // Disables the portal table entry. When the call returns, all events of earlier messages are there, and nothing lands
  // any more.
  Status disable() {
    SPL_TRY(world_.at(to_).pt_disable(portal_));
    SPL_TRY(take(false));
    off_ = true;
    return {};
  }

  Status put(uint32_t i) {
    sent_[i] = false;
    nic::Put made = put_of(froms_[i], to_, i, sources_[i]);
    made.portal = portal_;
    return world_.at(froms_[i]).put(made);
  }

  Status at_target(const nic::Event& event) {
    if (event.kind == EventKind::pt_disabled) {
      if (off_) return trouble("switched off twice");
      if (!told_) return trouble("a pt_disabled event without flow control");
      ++of(world_.faults, Fault::flow_control);
      off_ = true;
      return {};
    }
    const uint64_t holder = event.user_ptr - name(first_holder);
    if (holder < holders_.size()) return at_holder(holders_[holder], event);
    const uint64_t role = event.user_ptr - name(first_entry);
    if (role >= targets_.size()) return trouble(text("an event ", name_of(event.kind), " of no entry"));
    Target& target = targets_[role];
    if (event.kind == EventKind::auto_unlink) {
      if (!target.used || std::exchange(target.unlinked, true)) return trouble("an auto_unlink at the wrong time");
      return {};
    }
    const uint64_t which = event.hdr_data - name(0);
    if (event.kind == EventKind::put_overflow) return found(target, which, event);
    if (off_) return trouble("a message landed after pt_disabled had told that none will");
    if (event.kind != EventKind::put || which >= sources_.size() || landed_[which] || waiting_[which] != nullptr ||
        target.used || event.initiator != nic::Rank{froms_[which]} ||
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

  Status at_holder(Holder& holder, const nic::Event& event) {
    if (event.kind == EventKind::auto_unlink) {
      if (!holder.use_once || holder.taken == 0 || std::exchange(holder.unlinked, true)) {
        return trouble("an overflow entry's auto_unlink at the wrong time");
      }
      return {};
    }
    if (event.kind == EventKind::auto_free) {
      if (!holder.unlinked || holder.found != holder.taken || std::exchange(holder.freed, true)) {
        return trouble("an overflow entry's auto_free at the wrong time");
      }
      holder.memory->spoil();
      return {};
    }
    if (off_) return trouble("a message came to the overflow list after pt_disabled had told that none will");
    const uint64_t which = event.hdr_data - name(0);
    if (event.kind != EventKind::put || !event.in_overflow || which >= sources_.size() || landed_[which] ||
        waiting_[which] != nullptr || event.initiator != nic::Rank{froms_[which]} ||
        event.manipulated_bytes != sources_[which].size() || (holder.use_once && holder.taken > 0)) {
      return trouble(text("an event ", name_of(event.kind), " in the overflow list, of message ", which));
    }
    const Region& source = sources_[which];
    const uint64_t offset = event.start - reinterpret_cast<uint64_t>(holder.memory->data());
    if (offset > holder.memory->size() || source.size() > holder.memory->size() - offset ||
        std::memcmp(holder.memory->data() + offset, source.data(), source.size()) != 0) {
      return trouble(text("message ", which, " is not where its overflow entry's event says"));
    }
    holder.memory->expect(offset, source.data(), source.size());
    ++holder.taken;
    waiting_[which] = &holder;
    return {};
  }

  // Checks the event of an entry that took a waiting message.
  Status found(Target& target, uint64_t which, const nic::Event& event) {
    if (which >= sources_.size() || waiting_[which] == nullptr || landed_[which] || target.used || !event.in_overflow ||
        event.initiator != nic::Rank{froms_[which]} || event.manipulated_bytes != sources_[which].size()) {
      return trouble(text("a put_overflow event of message ", which));
    }
    Holder& holder = *waiting_[which];
    const uint64_t offset = event.start - reinterpret_cast<uint64_t>(holder.memory->data());
    const Region& source = sources_[which];
    if (offset > holder.memory->size() || source.size() > holder.memory->size() - offset ||
        std::memcmp(holder.memory->data() + offset, source.data(), source.size()) != 0) {
      return trouble(text("message ", which, " is not where its put_overflow event says"));
    }
    ++holder.found;
    landed_[which] = true;
    target.used = true;
    return {};
  }

  uint32_t to_ = 0;
  nic::QueueId queue_;
  nic::PortalIndex portal_;
  std::vector<uint32_t> froms_;
  std::vector<Region> sources_;
  std::vector<Target> targets_;
  std::vector<Holder> holders_;
  std::vector<Holder*> waiting_;  // by message: the overflow entry in which it waits or has waited
  std::vector<bool> landed_;
  std::vector<bool> acked_;
  std::vector<bool> sent_;
  std::vector<uint32_t> again_;
  bool off_ = false;
  bool small_ = false;     // the queue is too small
  bool disables_ = false;  // the host disables the entry now and then
  bool waits_ = false;     // the entry has an overflow list
  bool told_ = false;      // the entry has flow control, so pt_disabled events may come
};

}  // namespace

std::unique_ptr<Exchange> make_flow(World& world, uint32_t id) { return std::make_unique<Flow>(world, id); }

}  // namespace spinloom::torture
