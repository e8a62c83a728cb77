// Messages whose handlers place the bytes, fail, fault, loop, write outside of the entry, or return an unknown code.
// The tables of docs/handlers.md have the result that must follow in each case.
#include "spinloom/handler.h"
#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;
using nic::HandlerEnd;

class Handled final : public Exchange {
 public:
  Handled(World& world, uint32_t id, Work work) : Exchange(world, id, work), misbehaves_(work == Work::misbehave) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    length_ = any_size();
    source_ = Region::random(random(), length_);
    plan_.block = static_cast<uint32_t>(4 + random().below(60));
    plan_.stride = plan_.block + static_cast<uint32_t>(random().below(20));
    plan_.blocking = random().chance(1, 3) ? 1 : 0;
    context_.payload_entry = world_.handlers->payload;
    if (random().chance(1, 3)) {
      context_.header_entry = world_.handlers->header;
      plan_.header_code = PROCESS_DATA;
    }
    if (random().chance(1, 2)) {
      context_.completion_entry = world_.handlers->completion;
      plan_.completion_event = random().chance(1, 2) ? 1 : 0;
    }
    choose_policy();
    landing_bytes_ = length_;
    if (misbehaves_) choose_mischief();
    target_ = Region((length_ / plan_.block + 1) * plan_.stride + length_);
    predict_memory();
    SPL_TRY(install());
    return put();
  }

  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (role == 1 && event.kind == EventKind::put && some_dropped_) return check_partial_event(event);
    if (role == 0 && event.kind == EventKind::ack && some_dropped_) {
      nic::Event comparable = event;  // a copy without the number of bytes taken, which only the run knows
      if (comparable.manipulated_bytes > length_) return trouble("its ack has more bytes than the message");
      comparable.manipulated_bytes = 0;
      return Exchange::on_event(rank, role, comparable);
    }
    return Exchange::on_event(rank, role, event);
  }

  Status finish() override {
    if (some_dropped_) {
      SPL_TRY(check_partial_memory());
    } else {
      SPL_TRY(target_.check(name() + ", target"));
    }
    SPL_TRY(source_.check(name() + ", source"));
    SPL_TRY(unlink(to_, entry_));
    SPL_TRY(world_.interface(to_).context_free(context_id_));
    return world_.interface(to_).memory_free(constants_);
  }

 private:
  void choose_policy() {
    if (random().chance(1, 3)) {
      context_.blocked_round_robin = nic::BlockedRoundRobin{static_cast<uint32_t>(1 + random().below(3)),
                                                            static_cast<uint32_t>(1 + random().below(3))};
    }
    if (random().chance(1, 4))
      context_.hpus = nic::HpuMask::range(static_cast<uint32_t>(random().below(world_.config.hpus)), 1);
  }

  void draw_bad_end(uint8_t& end, uint32_t& code, Fail& failure, bool& stops) {
    stops = false;
    switch (random().below(6)) {
      case 0: code = FAIL, failure = Fail::handler_fail; break;
      case 1: code = SEGV, failure = Fail::segv; break;
      case 2: code = 1234, failure = Fail::handler_code; break;
      case 3: end = static_cast<uint8_t>(HandlerEnd::fault), failure = Fail::handler_fault, stops = true; break;
      case 4: end = static_cast<uint8_t>(HandlerEnd::segv), failure = Fail::segv, stops = true; break;
      default: end = static_cast<uint8_t>(HandlerEnd::budget), failure = Fail::handler_budget, stops = true; break;
    }
  }

  void choose_mischief() {
    bool stops = false;
    const bool has_header = context_.header_entry.has_value();
    switch (random().below(5)) {
      case 0:  // the header handler
        if (!has_header) context_.header_entry = world_.handlers->header;
        draw_bad_end(plan_.header_end, plan_.header_code, failure_, stops);
        dropped_bytes_ = length_;
        break;
      case 1:  // the header handler decides otherwise
        if (!has_header) context_.header_entry = world_.handlers->header;
        plan_.header_code = random().chance(1, 2) ? DROP : PROCEED;
        if (random().chance(1, 2)) {
          plan_.header_code = plan_.header_code == DROP ? DROP_PENDING : PROCEED_PENDING;
          is_pending_ = true;
        }
        proceeds_ = plan_.header_code == PROCEED || plan_.header_code == PROCEED_PENDING;
        if (!proceeds_) dropped_bytes_ = length_;
        break;
      case 2:  // the completion handler
        context_.completion_entry = world_.handlers->completion;
        plan_.completion_event = 0;
        if (random().chance(1, 3)) {
          plan_.completion_code = SUCCESS_PENDING;
          is_pending_ = true;
        } else {
          draw_bad_end(plan_.completion_end, plan_.completion_code, failure_, stops);
          stops = false;
        }
        break;
      default: choose_bad_payload(stops); break;
    }
    if (stops) {
      plan_.completion_event = 0;
      handler_stopped_ = true;
    }
  }

  void choose_bad_payload(bool& stops) {
    if (length_ == 0) return;
    const uint64_t payload = world_.config.payload_bytes;
    plan_.bad_from_offset = payload * random().below((length_ + payload - 1) / payload);
    if (random().chance(1, 4)) {
      plan_.payload_code = DROP;
      dropped_bytes_ = length_ - plan_.bad_from_offset;
    } else if (random().chance(1, 4)) {
      plan_.outside = 1;  // the call is refused; the handler goes on and reports success
      failure_ = Fail::segv;
    } else {
      draw_bad_end(plan_.payload_end, plan_.payload_code, failure_, stops);
      some_dropped_ = stops;
    }
  }

  void predict_memory() {
    if (proceeds_) {
      landing_bytes_ = std::min<uint64_t>(length_, target_.size());
      target_.expect(0, source_.data(), landing_bytes_);
      return;
    }
    const uint64_t good =
        dropped_bytes_ == length_ && plan_.bad_from_offset == UINT64_MAX ? 0 : std::min(length_, plan_.bad_from_offset);
    for (uint64_t i = 0; i < good; ++i) {
      target_.expect(i / plan_.block * plan_.stride + i % plan_.block, source_.data() + i, 1);
    }
  }

  Status install() {
    portals::Interface& interface = world_.interface(to_);
    SPL_ASSIGN(constants_, interface.memory_alloc(sizeof plan_));
    SPL_TRY(interface.memory_write(constants_, {reinterpret_cast<const uint8_t*>(&plan_), sizeof plan_}));
    context_.constants = {constants_, sizeof plan_};
    context_.active = random().chance(3, 4);  // otherwise activated once its entry is there
    SPL_ASSIGN(context_id_, interface.context_create(context_));
    nic::Entry entry;
    entry.start = target_.data();
    entry.length = target_.size();
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(1);
    entry.context = context_id_;
    entry.counter = host(to_).landed;
    entry.options.ct_comm = random().chance(1, 2);
    nic::Event event;
    event.initiator = nic::Rank{from_};
    event.match_bits = match_bits();
    event.requested_bytes = length_;
    event.start = reinterpret_cast<uint64_t>(target_.data());
    event.hdr_data = user_ptr_of(0);
    event.dropped_bytes = dropped_bytes_;
    event.fail = failure_;
    const bool has_event = !is_pending_ || failure_ != Fail::ok;
    if (context_.completion_entry && plan_.completion_event != 0 && !handler_stopped_) {
      event.kind = EventKind::dma;
      expect(1, event);
    }
    event.kind = EventKind::put;
    event.manipulated_bytes = landing_bytes_ - dropped_bytes_;
    if (has_event) {
      expect(1, event,
             [this] { return some_dropped_ ? Status{} : target_.check(name() + ", when its event has come"); });
      if (entry.options.ct_comm) {
        ++(failure_ == Fail::ok ? host(to_).landed_expected.success : host(to_).landed_expected.failure);
      }
    }
    SPL_ASSIGN(entry_, interface.me_append(host(to_).portal, entry));
    return context_.active ? Status{} : interface.context_activate(context_id_);
  }

  Status put() {
    nic::Event send;
    send.kind = EventKind::send;
    expect(0, send, [this] {
      if (!some_dropped_) source_.spoil();
      return Status{};
    });
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.fail = failure_;
    ack.manipulated_bytes = some_dropped_ ? 0 : landing_bytes_ - dropped_bytes_;
    expect(0, ack);
    return world_.interface(from_).put(put_of(from_, to_, 0, source_));
  }

  // Checks the event of a message with a stopped handler: only the run knows how many packets had not started.
  Status check_partial_event(const nic::Event& event) {
    if (event.dropped_bytes == 0 || event.dropped_bytes > length_ ||
        event.manipulated_bytes != length_ - event.dropped_bytes) {
      return trouble(text("dropped ", event.dropped_bytes, " and kept ", event.manipulated_bytes, " of ", length_));
    }
    nic::Event comparable = event;
    comparable.dropped_bytes = dropped_bytes_;
    comparable.manipulated_bytes = landing_bytes_ - dropped_bytes_;
    partial_event_seen_ = true;
    return Exchange::on_event(to_, 1, comparable);
  }

  // Checks that each byte is the old byte or the sent byte.
  Status check_partial_memory() {
    if (!partial_event_seen_) return trouble("its event never came");
    const Region untouched(target_.size());
    for (uint64_t i = 0; i < target_.size(); ++i) {
      const uint8_t byte = target_.data()[i];
      if (byte != untouched.data()[i] && byte != target_.expected()[i]) return trouble(text("byte ", i, " is wrong"));
    }
    return {};
  }

  bool misbehaves_;
  uint32_t from_ = 0;
  uint32_t to_ = 0;
  uint64_t length_ = 0;
  Plan plan_;
  nic::Context context_;
  nic::ContextId context_id_;
  uint64_t constants_ = 0;
  nic::EntryId entry_;
  Region source_;
  Region target_;
  Fail failure_ = Fail::ok;
  uint64_t dropped_bytes_ = 0;
  uint64_t landing_bytes_ = 0;
  bool proceeds_ = false;     // the header handler lets the message land without payload handlers
  bool is_pending_ = false;   // a handler leaves the message pending, so no put event comes
  bool handler_stopped_ = false;
  bool some_dropped_ = false;  // a payload handler was stopped: only the run knows how many packets were dropped
  bool partial_event_seen_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_handled(World& world, uint32_t id, Work work) {
  return std::make_unique<Handled>(world, id, work);
}

}  // namespace spinloom::torture
