// Unexpected puts, more than a portal table entry keeps headers for. The first puts wait; the others are refused, and
// with flow control the first refused put disables the portal table entry. Then the host appends entries, which find
// the waiting messages in the order in which they came.
#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Crowd final : public Exchange {
 public:
  Crowd(World& world, uint32_t id) : Exchange(world, id, Work::crowd) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    portals::PortalOptions options;
    options.flow_control = has_flow_control_ = random().chance(1, 2);
    options.index = nic::PortalIndex{World::crowd_portals + host(to_).crowds++};
    SPL_ASSIGN(queue_, world_.interface(to_).eq_alloc(64, 1));
    SPL_ASSIGN(portal_, world_.interface(to_).pt_alloc(queue_, options));
    nic::Entry entry;  // an entry without memory, which keeps headers
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(first_entry);
    SPL_ASSIGN(overflow_entry_, world_.interface(to_).me_append(portal_, entry, nic::ListKind::overflow));
    const uint32_t puts = World::crowd_headers + static_cast<uint32_t>(random().below(4));
    some_refused_ = puts > World::crowd_headers;
    sources_.reserve(puts);
    for (uint32_t i = 0; i < puts; ++i) {
      sources_.push_back(Region::random(random(), any_size()));
      const bool waits = i < World::crowd_headers;
      expect(i, EventKind::send, [this, i] {
        sources_[i].spoil();
        return Status{};
      });
      nic::Event ack;
      ack.kind = EventKind::ack;
      ack.fail = waits ? Fail::ok : has_flow_control_ ? Fail::pt_disabled : Fail::dropped;
      ack.in_overflow = waits;
      expect(i, ack);
      nic::Put put = put_of(from_, to_, i, sources_[i]);
      put.portal = portal_;
      SPL_TRY(world_.interface(from_).put(put));
    }
    return {};
  }

  Status poll() override {
    while (const auto event = world_.interface(to_).eq_get(queue_)) SPL_TRY(on_target_event(*event));
    if (!Exchange::done() || has_appended_) return {};
    has_appended_ = true;
    if (waiting_count_ != World::crowd_headers)
      return trouble(text(waiting_count_, " puts wait, and all have been acknowledged"));
    for (uint32_t i = 0; i < World::crowd_headers; ++i) {
      nic::Entry entry;
      entry.match_bits = match_bits();
      entry.user_ptr = user_ptr_of(first_entry + 1 + i);
      entry.options.use_once = true;
      const auto appended = world_.interface(to_).me_append(portal_, entry);
      if (!appended) return appended.error();
    }
    return {};
  }

  bool done() const override {
    return Exchange::done() && unlinked_count_ == World::crowd_headers &&
           disabled_seen_ == (has_flow_control_ && some_refused_);
  }

  Status finish() override {
    SPL_TRY(unlink(to_, overflow_entry_));
    SPL_TRY(world_.interface(to_).pt_free(portal_));
    return world_.interface(to_).eq_free(queue_);
  }

 private:
  static constexpr uint32_t first_entry = 20;

  Status on_target_event(const nic::Event& event) {
    switch (event.kind) {
      case EventKind::put: {  // messages may end in any order
        const uint64_t which = event.hdr_data - user_ptr_of(0);
        if (which >= World::crowd_headers || std::exchange(put_seen_[which], true)) break;
        if (event.user_ptr != user_ptr_of(first_entry) || !event.in_overflow) break;
        if (event.requested_bytes != sources_[which].size() || event.manipulated_bytes != 0) break;
        ++waiting_count_;
        return {};
      }
      case EventKind::put_overflow:
        if (event.user_ptr != user_ptr_of(first_entry + 1 + found_count_) ||
            event.hdr_data != user_ptr_of(found_count_))
          break;
        ++found_count_;
        return {};
      case EventKind::auto_unlink:
        if (event.user_ptr != user_ptr_of(first_entry + 1 + unlinked_count_) || unlinked_count_ >= found_count_) break;
        ++unlinked_count_;
        return {};
      case EventKind::pt_disabled:
        if (disabled_seen_ || !has_flow_control_ || !some_refused_ || waiting_count_ < World::crowd_headers) break;
        disabled_seen_ = true;
        ++count_of(world_.faults, Fault::flow_control);
        return {};
      default: break;
    }
    return trouble(text("an event ", name_of(event.kind), " of message ", event.hdr_data - user_ptr_of(0),
                        ", of entry ", event.user_ptr - user_ptr_of(first_entry), "; ", waiting_count_, " wait, ",
                        found_count_, " were found"));
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  bool has_flow_control_ = false;
  bool some_refused_ = false;  // some puts must be refused
  bool disabled_seen_ = false;  // the pt_disabled event has come
  bool has_appended_ = false;
  std::array<bool, World::crowd_headers> put_seen_{};
  uint32_t waiting_count_ = 0;
  uint32_t found_count_ = 0;
  uint32_t unlinked_count_ = 0;
  nic::QueueId queue_;
  nic::PortalIndex portal_;
  nic::EntryId overflow_entry_;
  std::vector<Region> sources_;
};

}  // namespace

std::unique_ptr<Exchange> make_crowd(World& world, uint32_t id) { return std::make_unique<Crowd>(world, id); }

}  // namespace spinloom::torture
