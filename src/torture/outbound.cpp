// Messages whose bytes are put together while they leave: streaming puts, to which the host adds one region after the
// other, and process-puts, whose packets are filled by handlers that may fail.
#include <cstring>
#include <optional>

#include "spinloom/handler.h"
#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

class Outbound final : public Exchange {
 public:
  Outbound(World& world, uint32_t id, Work work) : Exchange(world, id, work), is_process_put_(work == Work::process) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    length_ = any_size();
    packed_.resize(length_);
    return is_process_put_ ? start_process_put() : start_stream();
  }

  // Adds the next region after some steps, and not before the target has read the memory that it asked for.
  Status poll() override {
    if (regions_.empty() || target_reads_ || random().chance(3, 4)) return {};
    const nic::PutRegion next = regions_.front();
    regions_.pop_front();
    return world_.interface(from_).stream_append(stream_, next, regions_.empty());
  }
  bool done() const override { return regions_.empty() && Exchange::done(); }

  // Handlers that had not started when one failed never start, so the message may be cut before the bad packet.
  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (failure_ == Fail::ok || event.kind == EventKind::send) return Exchange::on_event(rank, role, event);
    std::optional<uint64_t>& reported_bytes = role == 0 ? acked_bytes_ : landed_bytes_;
    const bool is_right_kind = event.kind == (role == 0 ? EventKind::ack : EventKind::put);
    if (!is_right_kind || reported_bytes || event.fail != Fail::aborted || event.dropped_bytes != 0 ||
        event.manipulated_bytes == 0 || event.manipulated_bytes > cut_bytes_ ||
        event.manipulated_bytes % world_.config.payload_bytes != 0) {
      return trouble(text("an event ", name_of(event.kind), " (", name_of(event.fail), ") of ", event.manipulated_bytes,
                          " B of a message that is cut at ", cut_bytes_));
    }
    reported_bytes = event.manipulated_bytes;
    return {};
  }

  Status finish() override {
    if (acked_bytes_ != landed_bytes_) return trouble("target and initiator were not told the same");
    if (landed_bytes_) target_.expect(0, packed_.data(), *landed_bytes_);
    SPL_TRY(target_.check(name() + ", target"));
    SPL_TRY(memory_.check(name() + ", source"));
    SPL_TRY(read_source_.check(name() + ", memory that the target reads"));
    SPL_TRY(read_copy_.check(name() + ", what the target has read"));
    if (read_entry_.exists()) SPL_TRY(unlink(from_, read_entry_));
    if (context_.exists()) {
      SPL_TRY(world_.interface(from_).context_free(context_));
      SPL_TRY(world_.interface(from_).memory_free(constants_));
    }
    return unlink(to_, entry_);
  }

 private:
  Status start_stream() {
    memory_ = Region::random(random(), length_ * 2 + 64);
    for (uint64_t streamed = 0; streamed < length_ || regions_.empty();) {
      const uint64_t piece = std::min(length_ - streamed, 1 + random().below(300));
      const uint64_t at = random().below(memory_.size() - piece + 1);
      regions_.push_back({at, piece});
      if (piece > 0) std::memcpy(packed_.data() + streamed, memory_.data() + at, piece);
      streamed += piece;
    }
    regions_.push_back({0, 0});  // the stream may also end with an empty region
    // Two streams that wait for each other's target would be the hosts' own fault: requests queue behind headers.
    target_reads_ = from_ != to_ && length_ > 0 && !world_.stream_waits && random().chance(1, 2);
    if (target_reads_) regions_.push_front({0, 0});  // an empty region: the header has no bytes to leave with
    SPL_TRY(append());
    const nic::PutRegion first = regions_.front();
    regions_.pop_front();
    SPL_ASSIGN(stream_, world_.interface(from_).stream_start(make_put(), memory_.size(), first));
    return target_reads_ ? start_target_read() : Status{};
  }

  // Has the target get memory of the initiator, whose host adds regions to its stream only after that.
  Status start_target_read() {
    world_.stream_waits = true;
    read_source_ = Region::random(random(), 1 + random().below(2 * world_.config.payload_bytes));
    read_copy_ = Region(read_source_.size());
    read_copy_.expect(0, read_source_.data(), read_source_.size());
    nic::Entry entry;
    entry.start = read_source_.data();
    entry.length = read_source_.size();
    entry.match_bits = match_bits(1);
    entry.user_ptr = user_ptr_of(2);
    entry.options.op_put = false;
    entry.options.op_get = true;
    entry.options.event_comm_disable = true;
    entry.options.event_link_disable = true;
    SPL_ASSIGN(read_entry_, world_.interface(from_).me_append(host(from_).portal, entry));
    nic::Event event;
    event.kind = EventKind::reply;
    event.manipulated_bytes = read_source_.size();
    expect(3, event, [this] {
      target_reads_ = world_.stream_waits = false;
      return read_copy_.check(name() + ", when the reply has come");
    });
    portals::GetArguments get;
    get.target = nic::Rank{from_};
    get.portal = host(from_).portal;
    get.match_bits = match_bits(1);
    get.length = read_source_.size();
    get.reply.local = read_copy_.data();
    get.reply.queue = host(to_).departures;
    get.reply.user_ptr = user_ptr_of(3);
    ++world_.messages;
    return world_.interface(to_).get(get);
  }

  Status start_process_put() {
    Plan plan;
    plan.block = static_cast<uint32_t>(8 + random().below(60));
    plan.stride = plan.block + static_cast<uint32_t>(random().below(20));
    memory_ = Region::random(random(), (length_ / plan.block + 1) * plan.stride);
    for (uint64_t i = 0; i < length_; ++i) packed_[i] = memory_.data()[i / plan.block * plan.stride + i % plan.block];
    const uint64_t payload = world_.config.payload_bytes;
    const uint64_t packets = (length_ + payload - 1) / payload;
    uint64_t leaving_bytes = length_;
    Fail failure = Fail::ok;
    if (packets > 0 && random().chance(1, 3)) {  // cut at the end of a packet
      leaving_bytes = payload * random().below(packets);
      plan.bad_from_offset = leaving_bytes;
      constexpr uint32_t codes[] = {FAIL, DROP, 77, SEGV};
      constexpr Fail fails[] = {Fail::handler_fail, Fail::handler_code, Fail::handler_code, Fail::segv};
      const uint64_t which = random().below(4);
      plan.payload_code = codes[which];
      failure = fails[which];
    }
    portals::Interface& interface = world_.interface(from_);
    SPL_ASSIGN(constants_, interface.memory_alloc(sizeof plan));
    SPL_TRY(interface.memory_write(constants_, {reinterpret_cast<const uint8_t*>(&plan), sizeof plan}));
    nic::Context context;
    context.payload_entry = world_.handlers->gather;
    context.constants = {constants_, sizeof plan};
    if (random().chance(1, 2)) context.blocked_round_robin = nic::BlockedRoundRobin{1, 2};
    SPL_ASSIGN(context_, interface.context_create(context));
    failure_ = failure;
    cut_bytes_ = leaving_bytes;
    SPL_TRY(append());
    return interface.process_put(make_put(), memory_.size(), context_);
  }

  Status append() {
    target_ = Region(length_ + 16);
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(1);
    if (failure_ == Fail::ok) {
      target_.expect(0, packed_.data(), length_);
      nic::Event event;
      event.kind = EventKind::put;
      event.initiator = nic::Rank{from_};
      event.match_bits = match_bits();
      event.requested_bytes = event.manipulated_bytes = length_;
      event.start = reinterpret_cast<uint64_t>(target_.data());
      event.hdr_data = user_ptr_of(0);
      expect(1, event, [this] { return target_.check(name() + ", when its event has come"); });
    }
    SPL_ASSIGN(entry_, world_.interface(to_).me_append(host(to_).portal, entry));
    return {};
  }

  nic::Put make_put() {
    nic::Put put = put_of(from_, to_, 0, memory_);
    put.length = length_;
    put.counter = host(from_).sent;
    put.ct_ack = random().chance(1, 2);
    const bool good = failure_ == Fail::ok;
    nic::Event send;
    send.kind = EventKind::send;
    send.fail = failure_;
    expect(0, send);
    if (put.ct_ack) ++(good ? host(from_).sent_expected.success : host(from_).sent_expected.failure);
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.manipulated_bytes = length_;
    if (good) expect(0, ack);
    return put;
  }

  bool is_process_put_;
  uint32_t from_ = 0;
  uint32_t to_ = 0;
  uint64_t length_ = 0;
  std::vector<uint8_t> packed_;
  Region memory_;
  Region target_;
  std::deque<nic::PutRegion> regions_;
  nic::StreamId stream_;
  bool target_reads_ = false;  // the target reads read_source_, and the stream waits for that
  Region read_source_;
  Region read_copy_;
  nic::EntryId read_entry_;
  nic::ContextId context_;
  uint64_t constants_ = 0;
  Fail failure_ = Fail::ok;
  uint64_t cut_bytes_ = 0;  // the most bytes that land if a handler fails
  std::optional<uint64_t> acked_bytes_;
  std::optional<uint64_t> landed_bytes_;
  nic::EntryId entry_;
};

}  // namespace

std::unique_ptr<Exchange> make_outbound(World& world, uint32_t id, Work work) {
  return std::make_unique<Outbound>(world, id, work);
}

}  // namespace spinloom::torture
