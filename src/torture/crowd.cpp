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
    options.flow_control = flow_ = random().chance(1, 2);
    options.want = nic::PortalIndex{World::crowd_portals + host(to_).crowds++};
    SPL_ASSIGN(queue_, world_.at(to_).eq_alloc(64, 1));
    SPL_ASSIGN(portal_, world_.at(to_).pt_alloc(queue_, options));
    nic::Entry entry;  // an entry without memory, which keeps headers
    entry.match_bits = bits();
    entry.user_ptr = name(first_entry);
    SPL_ASSIGN(holder_, world_.at(to_).me_append(portal_, entry, nic::ListKind::overflow));
    const uint32_t puts = World::crowd_headers + static_cast<uint32_t>(random().below(4));
    refused_ = puts > World::crowd_headers;
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
      ack.fail = waits ? Fail::ok : flow_ ? Fail::pt_disabled : Fail::dropped;
      ack.in_overflow = waits;
      expect(i, ack);
      nic::Put put = put_of(from_, to_, i, sources_[i]);
      put.portal = portal_;
      SPL_TRY(world_.at(from_).put(put));
    }
    return {};
  }

  Status poll() override {
    while (const auto event = world_.at(to_).eq_get(queue_)) SPL_TRY(at_target(*event));
    if (!Exchange::done() || appended_) return {};
    appended_ = true;
    if (waiting_ != World::crowd_headers) return trouble(text(waiting_, " puts wait, and all have been acknowledged"));
    for (uint32_t i = 0; i < World::crowd_headers; ++i) {
      nic::Entry entry;
      entry.match_bits = bits();
      entry.user_ptr = name(first_entry + 1 + i);
      entry.options.use_once = true;
      const auto appended = world_.at(to_).me_append(portal_, entry);
      if (!appended) return appended.error();
    }
    return {};
  }

  bool done() const override {
    return Exchange::done() && unlinked_ == World::crowd_headers && disabled_ == (flow_ && refused_);
  }

  Status finish() override {
    SPL_TRY(unlink(to_, holder_));
    SPL_TRY(world_.at(to_).pt_free(portal_));
    return world_.at(to_).eq_free(queue_);
  }

 private:
  static constexpr uint32_t first_entry = 20;

  Status at_target(const nic::Event& event) {
    switch (event.kind) {
      case EventKind::put: {  // messages may end in any order
        const uint64_t which = event.hdr_data - name(0);
        if (which >= World::crowd_headers || std::exchange(waits_[which], true)) break;
        if (event.user_ptr != name(first_entry) || !event.in_overflow) break;
        if (event.requested_bytes != sources_[which].size() || event.manipulated_bytes != 0) break;
        ++waiting_;
        return {};
      }
      case EventKind::put_overflow:
        if (event.user_ptr != name(first_entry + 1 + found_) || event.hdr_data != name(found_)) break;
        ++found_;
        return {};
      case EventKind::auto_unlink:
        if (event.user_ptr != name(first_entry + 1 + unlinked_) || unlinked_ >= found_) break;
        ++unlinked_;
        return {};
      case EventKind::pt_disabled:
        if (disabled_ || !flow_ || !refused_ || waiting_ < World::crowd_headers) break;
        disabled_ = true;
        ++of(world_.faults, Fault::flow_control);
        return {};
      default: break;
    }
    return trouble(text("an event ", name_of(event.kind), " of message ", event.hdr_data - name(0), ", of entry ",
                        event.user_ptr - name(first_entry), "; ", waiting_, " wait, ", found_, " were found"));
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  bool flow_ = false;
  bool refused_ = false;  // some puts must be refused
  bool disabled_ = false;  // the pt_disabled event has come
  bool appended_ = false;
  std::array<bool, World::crowd_headers> waits_{};
  uint32_t waiting_ = 0;
  uint32_t found_ = 0;
  uint32_t unlinked_ = 0;
  nic::QueueId queue_;
  nic::PortalIndex portal_;
  nic::EntryId holder_;
  std::vector<Region> sources_;
};

}  // namespace

std::unique_ptr<Exchange> make_crowd(World& world, uint32_t id) { return std::make_unique<Crowd>(world, id); }

}  // namespace spinloom::torture
