// Handlers that use other NICs. Each packet's handler puts the packet to a third rank, gets bytes from there and
// writes them to its own host, and adds one to a word at the third rank. It waits for each of these, and keeps its
// HPU and its packet meanwhile. The third rank is always the last rank, at which no handler waits, because handlers
// that all wait for each other may wait for ever. This work cannot be combined with streaming puts: hosts rest while
// a handler of the loopback driver waits, and a stream that has not begun holds up the other messages of its rank.
#include <cstring>

#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;

class Forward final : public Exchange {
 public:
  Forward(World& world, uint32_t id) : Exchange(world, id, Work::forward) {}

  Status begin() override {
    third_ = world_.config.ranks - 1;
    from_ = any_rank();
    to_ = static_cast<uint32_t>(random().below(third_));
    source_ = Region::random(random(), any_size());
    get_source_ = Region::random(random(), source_.size());
    put_copy_ = Region(source_.size());
    target_ = Region(source_.size());
    put_copy_.expect(0, source_.data(), source_.size());
    target_.expect(0, get_source_.data(), get_source_.size());
    SPL_TRY(open_third());
    SPL_TRY(open_target());
    const auto on_send = [this] {
      source_.spoil();
      return Status{};
    };
    expect(0, EventKind::send, on_send);
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.manipulated_bytes = put_copy_.size();
    expect(0, ack);
    return world_.interface(from_).put(put_of(from_, to_, 0, source_));
  }

  Status finish() override {
    SPL_TRY(put_copy_.check(name() + ", what was put on"));
    SPL_TRY(target_.check(name() + ", what was got"));
    SPL_TRY(get_source_.check(name() + ", what was given"));
    const nic::CounterValue packets = world_.interface(third_).ct_get(counter_);
    if (packets.failure > 0 || packets.success != added_word_) {
      return trouble(text(packets.success, " packets were put on, and ", added_word_, " counted"));
    }
    for (const nic::EntryId entry : entries_) SPL_TRY(unlink(third_, entry));
    SPL_TRY(world_.interface(third_).ct_free(counter_));
    SPL_TRY(unlink(to_, entry_));
    SPL_TRY(world_.interface(to_).context_free(context_));
    return world_.interface(to_).memory_free(constants_);
  }

 private:
  Status open_third() {
    portals::Interface& interface = world_.interface(third_);
    SPL_ASSIGN(counter_, interface.ct_alloc());
    const auto append = [&](uint32_t which, uint8_t* start, uint64_t length) -> Status {
      nic::Entry entry;
      entry.start = start;
      entry.length = length;
      entry.match_bits = match_bits(which);
      entry.user_ptr = user_ptr_of(2);
      entry.options.op_get = which != 1;
      entry.options.op_put = which != 2;
      entry.options.event_comm_disable = true;
      entry.options.ct_comm = which == 1;
      entry.counter = counter_;
      SPL_ASSIGN(const nic::EntryId appended, interface.me_append(host(third_).portal, entry));
      entries_.push_back(appended);
      return {};
    };
    SPL_TRY(append(1, put_copy_.data(), put_copy_.size()));
    SPL_TRY(append(2, get_source_.data(), get_source_.size()));
    return append(3, reinterpret_cast<uint8_t*>(&added_word_), sizeof added_word_);
  }

  Status open_target() {
    portals::Interface& interface = world_.interface(to_);
    Plan plan;
    plan.third_rank = third_;
    plan.third_bits = match_bits();
    SPL_ASSIGN(constants_, interface.memory_alloc(sizeof plan));
    SPL_TRY(interface.memory_write(constants_, {reinterpret_cast<const uint8_t*>(&plan), sizeof plan}));
    nic::Context context;
    context.payload_entry = world_.handlers->forward;
    context.constants = {constants_, sizeof plan};
    SPL_ASSIGN(context_, interface.context_create(context));
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(1);
    entry.context = context_;
    nic::Event event;
    event.kind = EventKind::put;
    event.initiator = nic::Rank{from_};
    event.match_bits = match_bits();
    event.requested_bytes = event.manipulated_bytes = source_.size();
    event.start = reinterpret_cast<uint64_t>(target_.data());
    event.hdr_data = user_ptr_of(0);
    expect(1, event, [this] { return target_.check(name() + ", when its event has come"); });
    SPL_ASSIGN(entry_, interface.me_append(host(to_).portal, entry));
    return {};
  }

  uint32_t from_ = 0;
  uint32_t to_ = 0;
  uint32_t third_ = 0;
  Region source_;
  Region put_copy_;    // the third rank's memory, to which handlers put their packets
  Region get_source_;  // the third rank's memory, from which handlers get
  Region target_;
  uint64_t added_word_ = 0;
  nic::CounterId counter_;
  std::vector<nic::EntryId> entries_;
  nic::EntryId entry_;
  nic::ContextId context_;
  uint64_t constants_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_forward(World& world, uint32_t id) { return std::make_unique<Forward>(world, id); }

}  // namespace spinloom::torture
