// One operation to an entry of its own: put, get, atomic, fetching atomic or swap; also on lists of memory, and with
// counters only. The seed chooses the operations that the entry allows, its bounds, lists as the initiator's memory,
// and the events that are wanted.
#include <cstring>
#include <optional>

#include "torture/elements.hpp"
#include "torture/exchange.hpp"
#include "torture/listed.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;
using nic::Fail;

enum class EntryCase : uint8_t {
  fits,
  cut,           // the entry ends within the message
  behind,        // the remote offset lies behind the entry's end
  no_truncate,   // the message would be cut, so the entry does not match
  wrong_rank,
  wrong_bits,
  forbidden,     // the entry does not allow the operation
  other_user,
  no_portal,
};

class Transfer final : public Exchange {
 public:
  Transfer(World& world, uint32_t id, Work work) : Exchange(world, id, work), work_(work) {}

  Status begin() override {
    from_ = any_rank();
    to_ = other_rank(from_);
    choose_shape();
    choose_entry();
    predict();
    choose_lists();
    if (entry_case_ != EntryCase::wrong_bits && entry_case_ != EntryCase::no_portal && !host(to_).dead) {
      if (work_ == Work::counted) {
        SPL_ASSIGN(entry_.counter, world_.interface(to_).ct_alloc());
        counter_ = entry_.counter;
      }
      SPL_ASSIGN(entry_id_, world_.interface(to_).me_append(host(to_).portal, entry_));
      appended_ = true;
    }
    return start();
  }

  Status on_event(uint32_t rank, uint32_t role, const nic::Event& event) override {
    if (world_.config.dead == 0) return Exchange::on_event(rank, role, event);
    return on_event_near_death(rank, role, event);
  }

  Status poll() override {
    if (work_ != Work::counted || count_seen_) return {};
    const nic::CounterValue value = world_.interface(to_).ct_get(counter_);
    if (value == nic::CounterValue{}) return {};
    count_seen_ = true;
    if (value != nic::CounterValue{entry_.options.ct_bytes ? landed_bytes_ : 1, 0}) {
      return trouble(text("the counter says ", value.success, " and ", value.failure));
    }
    return target_.check(name() + ", when the counter says that it has landed");
  }

  bool done() const override {
    if (world_.config.dead != 0) return has_ended_near_death();
    return Exchange::done() && (work_ != Work::counted || count_seen_);
  }

  Status finish() override {
    if (source_list_ && !host(from_).dead) SPL_TRY(source_list_->check_released(name() + ", at the end"));
    if (reply_list_ && !host(from_).dead) SPL_TRY(reply_list_->check_released(name() + ", at the end"));
    if (world_.config.dead != 0 && (host(from_).dead || host(to_).dead)) return give_up();
    SPL_TRY(target_.check(name() + ", target"));
    SPL_TRY(source_.check(name() + ", source"));
    SPL_TRY(reply_.check(name() + ", reply"));
    if (source_list_) SPL_TRY(source_list_->check(name() + ", list of its source"));
    if (reply_list_) SPL_TRY(reply_list_->check(name() + ", list of its reply"));
    const bool has_left = entry_.options.use_once && fail_ == Fail::ok;
    if (appended_ && !has_left) SPL_TRY(unlink(to_, entry_id_));
    if (counter_.exists()) return world_.interface(to_).ct_free(counter_);
    return {};
  }

 private:
  [[nodiscard]] bool fetches() const { return work_ == Work::fetch_atomic || work_ == Work::swap; }
  [[nodiscard]] bool is_atomic() const { return work_ == Work::atomic || fetches(); }
  [[nodiscard]] bool has_reply() const { return work_ == Work::get || fetches(); }

  void choose_shape() {
    length_ = any_size();
    if (work_ == Work::iovec) length_ = std::min<uint64_t>(length_, world_.config.payload_bytes);
    if (!is_atomic()) return;
    constexpr nic::Datatype types[] = {nic::Datatype::int8, nic::Datatype::uint16, nic::Datatype::int32,
                                       nic::Datatype::uint64, nic::Datatype::float64};
    constexpr nic::AtomicOperation operations[] = {nic::AtomicOperation::min, nic::AtomicOperation::max,
                                                   nic::AtomicOperation::sum};
    datatype_ = types[random().below(std::size(types))];
    operation_ = operations[random().below(std::size(operations))];
    if (work_ == Work::swap)
      operation_ = random().chance(1, 2) ? nic::AtomicOperation::swap : nic::AtomicOperation::compare_swap;
    const uint64_t element = nic::bytes_of(datatype_);
    const uint64_t most = std::min<uint64_t>({512, world_.config.payload_bytes, world_.config.datagram_bytes - 200});
    length_ = nic::has_operand(operation_) ? element : element * (1 + random().below(most / element));
  }

  void choose_entry() {
    if (random().chance(2, 5) && work_ != Work::counted) entry_case_ = static_cast<EntryCase>(1 + random().below(8));
    if (work_ == Work::iovec && entry_case_ == EntryCase::behind) entry_case_ = EntryCase::cut;
    if (length_ == 0 && (entry_case_ == EntryCase::cut || entry_case_ == EntryCase::no_truncate))
      entry_case_ = EntryCase::fits;
    offset_ = random().chance(1, 2) || work_ == Work::iovec ? 0 : 16 * random().below(20);
    uint64_t room = offset_ + length_ + random().below(64);
    if (entry_case_ == EntryCase::cut || entry_case_ == EntryCase::no_truncate)
      room = offset_ + random().below(length_);
    if (entry_case_ == EntryCase::behind) {
      room = offset_;
      offset_ += 16 * (1 + random().below(4));
    }
    // Aligned for elements: the guard zone is 32 bytes long, and the allocator aligns to 16.
    target_ = has_reply() || is_atomic() ? numbers(room) : Region(room);
    entry_.start = target_.data();
    entry_.length = room;
    entry_.match_bits = entry_case_ == EntryCase::wrong_bits ? match_bits(1) : match_bits();
    entry_.user_ptr = user_ptr_of(1);
    nic::EntryOptions& options = entry_.options;
    options.op_get = has_reply() || random().chance(1, 4);
    options.op_put = work_ != Work::get || random().chance(1, 4);
    options.use_once = random().chance(1, 2);
    options.no_truncate = entry_case_ == EntryCase::no_truncate;
    options.event_link_disable = random().chance(1, 2);
    options.event_unlink_disable = random().chance(1, 4);
    options.event_comm_disable = random().chance(1, 6);
    options.event_success_disable = random().chance(1, 8);
    options.ack_disable = world_.config.dead == 0 && random().chance(1, 12);
    options.ct_comm = random().chance(1, 2);
    options.ct_bytes = random().chance(1, 3);
    options.manage_local = offset_ == 0 && work_ != Work::iovec && random().chance(1, 3);
    if (options.use_once &&
        (options.event_unlink_disable || world_.config.dead != 0)) {  // an event must report that the id is free
      options.event_comm_disable = options.event_success_disable = false;
    }
    entry_.counter = host(to_).landed;
    if (entry_case_ == EntryCase::wrong_rank) entry_.match_rank = nic::Rank{from_ + 1};
    if (entry_case_ == EntryCase::other_user) entry_.user = 77;
    if (entry_case_ == EntryCase::forbidden) {
      options.op_put = options.op_get = false;
      if (work_ == Work::get) options.op_put = true;
      if (work_ == Work::put || work_ == Work::iovec) options.op_get = true;
      if (fetches()) (random().chance(1, 2) ? options.op_put : options.op_get) = true;
    }
    if (work_ == Work::counted) {
      options = nic::EntryOptions{};
      options.ct_comm = true;
      options.ct_bytes = length_ > 0 && random().chance(1, 2);
      options.event_comm_disable = true;
    }
    if (work_ == Work::iovec) split_memory();
  }

  // A region of random numbers that are small and whole in every datatype.
  Region numbers(uint64_t length) {
    Region region(length);
    if (!is_atomic()) return Region::random(random(), length);
    const uint64_t element = nic::bytes_of(datatype_);
    for (uint64_t at = 0; at + element <= length; at += element) {
      const double real = static_cast<double>(random().below(1000));
      const uint64_t integer = random().next();
      std::memcpy(region.data() + at, datatype_ == nic::Datatype::float64 ? static_cast<const void*>(&real) : &integer,
                  element);
    }
    region.expect(0, region.data(), length);
    return region;
  }

  void split_memory() {
    for (uint64_t at = 0; at < entry_.length;) {
      const uint64_t piece = std::min(entry_.length - at, 1 + random().below(100));
      pieces_.push_back({target_.data() + at, piece});
      at += piece;
    }
    entry_.iovec = pieces_;
  }

  // The initiator's memory may be a list, too.
  void choose_lists() {
    const uint64_t chances_in_8 = work_ == Work::iovec ? 4 : 2;
    if (work_ != Work::get && random().chance(chances_in_8, 8)) {
      source_list_.emplace(random(), length_);
      source_list_->write(source_.data(), length_);
    }
    if (has_reply() && random().chance(chances_in_8, 8)) reply_list_.emplace(random(), length_);
  }

  // Predicts the results that Portals 4 demands, and makes the initiator's memory.
  void predict() {
    source_ = is_atomic() ? numbers(length_) : Region::random(random(), work_ == Work::get ? 0 : length_);
    reply_ = Region(has_reply() ? length_ : 0);
    const uint64_t room = offset_ < entry_.length ? entry_.length - offset_ : 0;
    switch (entry_case_) {
      case EntryCase::wrong_rank:
      case EntryCase::wrong_bits:
      case EntryCase::no_truncate:
      case EntryCase::no_portal: fail_ = Fail::dropped; break;
      case EntryCase::forbidden: fail_ = Fail::op_violation; break;
      case EntryCase::other_user: fail_ = Fail::perm_violation; break;
      default: fail_ = Fail::ok; break;
    }
    landed_bytes_ = fail_ == Fail::ok ? std::min(length_, room) : 0;
    if (is_atomic()) landed_bytes_ -= landed_bytes_ % nic::bytes_of(datatype_);
    uint8_t* const place = target_.expected() + (landed_bytes_ > 0 ? offset_ : 0);
    if (has_reply()) reply_expected_.assign(place, place + landed_bytes_);
    if (work_ == Work::get) return;
    if (!is_atomic()) {
      if (landed_bytes_ > 0) target_.expect(offset_, source_.data(), landed_bytes_);
      return;
    }
    const uint64_t element = nic::bytes_of(datatype_);
    if (operation_ == nic::AtomicOperation::compare_swap) {
      const bool swaps = random().chance(1, 2) && landed_bytes_ > 0;
      operand_.fill(0);
      std::memcpy(operand_.data(), landed_bytes_ > 0 ? place : source_.data(), element);
      if (!swaps) operand_[0] ^= datatype_ == nic::Datatype::float64 ? 1ull << 52 : 1;
      if (swaps) target_.expect(offset_, source_.data(), element);
      return;
    }
    apply(operation_, datatype_, place, source_.data(), landed_bytes_);
  }

  void expect_target() {
    if (!appended_) return;
    if (!entry_.options.event_link_disable) expect(1, EventKind::link);
    if (fail_ != Fail::ok) return;
    const nic::EntryOptions& options = entry_.options;
    nic::Event event;
    event.kind = work_ == Work::get ? EventKind::get
                 : fetches()        ? EventKind::fetch_atomic
                 : is_atomic()      ? EventKind::atomic
                                    : EventKind::put;
    event.initiator = nic::Rank{from_};
    event.match_bits = match_bits();
    event.requested_bytes = length_;
    event.manipulated_bytes = landed_bytes_;
    event.remote_offset = offset_;
    event.start = reinterpret_cast<uint64_t>(entry_.start) + offset_;
    event.hdr_data = user_ptr_of(0);
    if (!options.event_comm_disable && !options.event_success_disable) {
      expect(1, event, [this] { return check_landed(); });
    }
    if (options.ct_comm && entry_.counter == host(to_).landed) {
      host(to_).landed_expected.success += options.ct_bytes ? landed_bytes_ : 1;
    }
    if (options.use_once && !options.event_unlink_disable) expect(1, EventKind::auto_unlink);
  }

  // Checks the bytes, which are there before the event; afterwards the host may use the memory.
  Status check_landed() {
    SPL_TRY(target_.check(name() + ", when its event has come"));
    if (entry_.options.use_once) target_.spoil();
    return {};
  }

  void expect_initiator(nic::Put& put) {
    const bool acked = put.ack_request != nic::AckRequest::none && !(fail_ == Fail::ok && entry_.options.ack_disable);
    nic::CounterValue& expected_count = host(from_).sent_expected;
    nic::Event send;
    send.kind = EventKind::send;
    if (!put.event_send_disable && !put.event_success_disable) {
      expect(0, send, [this, last = put.ack_request == nic::AckRequest::none] {
        source_.spoil();
        if (!source_list_) return Status{};
        source_list_->spoil();
        return last ? source_list_->check_released(name() + ", when it has been sent") : Status{};
      });
    }
    if (put.ct_send) expected_count.success += put.ct_bytes ? length_ : 1;
    if (!acked) return;
    nic::Event ack;
    ack.kind = EventKind::ack;
    ack.fail = fail_;
    ack.manipulated_bytes = landed_bytes_;
    ack.remote_offset = entry_.options.manage_local ? 0 : offset_;
    const bool has_event = put.ack_request == nic::AckRequest::ack && !(fail_ == Fail::ok && put.event_success_disable);
    if (has_event) {
      expect(0, ack, [this] {
        return source_list_ ? source_list_->check_released(name() + ", when its ack has come") : Status{};
      });
    }
    if (!put.ct_ack) return;
    if (fail_ != Fail::ok) {
      ++expected_count.failure;
    } else {
      expected_count.success += put.ct_bytes ? landed_bytes_ : 1;
    }
  }

  void expect_reply(const nic::ReplyTo& reply) {
    nic::Event event;
    event.kind = EventKind::reply;
    event.fail = fail_;
    event.manipulated_bytes = landed_bytes_;
    event.remote_offset = entry_.options.manage_local ? 0 : offset_;
    if (reply_list_) {
      reply_list_->expect(reply_expected_.data(), reply_expected_.size());
    } else {
      reply_.expect(0, reply_expected_.data(), reply_expected_.size());
    }
    if (fail_ != Fail::ok || !reply.event_success_disable) {
      expect(2, event, [this]() -> Status {
        SPL_TRY(reply_.check(name() + ", when its reply has come"));
        reply_.spoil();
        if (!reply_list_) return Status{};
        SPL_TRY(reply_list_->check(name() + ", list, when its reply has come"));
        reply_list_->spoil();
        return reply_list_->check_released(name() + ", when its reply has come");
      });
    }
    if (!reply.ct_reply) return;
    nic::CounterValue& expected_count = host(from_).sent_expected;
    if (fail_ != Fail::ok) {
      ++expected_count.failure;
    } else {
      expected_count.success += reply.ct_bytes ? landed_bytes_ : 1;
    }
  }

  Status start() {
    nic::Put put = put_of(from_, to_, 0, source_);
    put.length = length_;
    if (source_list_) {
      put.local = nullptr;
      put.descriptor = source_list_->descriptor();
      put.descriptor_offset = source_list_->offset();
    }
    if (entry_case_ == EntryCase::no_portal) put.portal = nic::PortalIndex{200};
    put.remote_offset = offset_;
    put.counter = host(from_).sent;
    put.ack_request = static_cast<nic::AckRequest>(random().below(4));
    put.ct_send = random().chance(1, 3);
    put.ct_ack = random().chance(1, 2);
    put.ct_bytes = random().chance(1, 3);
    put.event_send_disable = random().chance(1, 6);
    put.event_success_disable = random().chance(1, 6);
    if (world_.config.dead != 0) {  // every operation must end with an event
      put.ack_request = nic::AckRequest::ack;
      put.event_send_disable = put.event_success_disable = put.ct_send = put.ct_ack = false;
    }
    nic::ReplyTo reply;
    reply.local = reply_list_ ? nullptr : reply_.data();
    if (reply_list_) {
      reply.descriptor = reply_list_->descriptor();
      reply.descriptor_offset = reply_list_->offset();
    }
    reply.queue = host(from_).departures;
    reply.counter = host(from_).sent;
    reply.ct_reply = world_.config.dead == 0 && random().chance(1, 2);
    reply.ct_bytes = random().chance(1, 3);
    reply.event_success_disable = world_.config.dead == 0 && random().chance(1, 8);
    reply.user_ptr = user_ptr_of(2);
    expect_target();
    auto& refusals = host(to_).refused_expected;
    if (fail_ == Fail::perm_violation) ++refusals[static_cast<size_t>(nic::Refusal::permission)];
    if (fail_ == Fail::op_violation) ++refusals[static_cast<size_t>(nic::Refusal::operation)];
    if (work_ == Work::get) {
      expect_reply(reply);
      nic::Get get;
      get.reply = reply;
      get.length = length_;
      get.target = put.target;
      get.portal = put.portal;
      get.match_bits = put.match_bits;
      get.remote_offset = offset_;
      return world_.interface(from_).get(get);
    }
    if (!is_atomic()) {
      expect_initiator(put);
      return world_.interface(from_).put(put);
    }
    nic::Atomic atomic;
    atomic.operation = operation_;
    atomic.datatype = datatype_;
    atomic.operand = operand_;
    if (fetches()) {
      put.ack_request = nic::AckRequest::none;
      atomic.fetch = reply;
      expect_reply(reply);
    }
    expect_initiator(put);
    atomic.put = put;
    return world_.interface(from_).atomic(atomic);
  }

  // ---- runs in which a rank dies: each operation of a living rank ends once, well or as undeliverable ----

  Status on_event_near_death(uint32_t rank, uint32_t role, const nic::Event& event) {
    const bool involved = host(from_).dead || host(to_).dead;
    if (role == 1 && event.kind != EventKind::link) matched_ = true;
    if (rank == from_ &&
        (event.kind == EventKind::ack || event.kind == EventKind::reply || event.kind == EventKind::send)) {
      ++(event.kind == EventKind::send ? sends_ : ends_);
      if (sends_ > 1 || ends_ > 1) return trouble(text("a second ", name_of(event.kind)));
      if (event.kind == EventKind::send && event.fail == Fail::undeliverable) send_failed_ = true;
      if (event.kind == EventKind::ack && send_failed_) return trouble("an ack after a send that failed");
      if (event.fail == Fail::undeliverable && host(to_).dead) {
        undeliverable_ = true;
        return {};
      }
    }
    if (involved && event.fail == Fail::undeliverable && rank == to_) {
      if (++cut_events_ > 1) return trouble("its rest is missing twice");
      return {};
    }
    if (undeliverable_ || cut_events_ > 0) return {};
    return Exchange::on_event(rank, role, event);
  }

  [[nodiscard]] bool has_ended_near_death() const {
    const bool initiator_dead = world_.hosts[from_].dead;
    if (initiator_dead) return true;
    const uint64_t wanted_sends = work_ == Work::get ? 0 : 1;
    const bool ended = ends_ > 0 || (send_failed_ && !has_reply());
    return target_is_dead() ? sends_ >= wanted_sends && ended : Exchange::done();
  }
  [[nodiscard]] bool target_is_dead() const { return world_.hosts[to_].dead; }

  // A living target gives its entry back; the bytes in its memory are unknown.
  Status give_up() {
    if (host(to_).dead || !appended_ || (matched_ && entry_.options.use_once)) return {};
    const auto unlinked = world_.interface(to_).me_unlink(entry_id_);
    if (unlinked && *unlinked == portals::Unlinked::in_use) return trouble("its entry is in use for ever");
    return {};
  }

  Work work_;
  uint32_t from_ = 0;
  uint32_t to_ = 0;
  uint64_t length_ = 0;
  uint64_t offset_ = 0;
  EntryCase entry_case_ = EntryCase::fits;
  nic::Datatype datatype_ = nic::Datatype::int8;
  nic::AtomicOperation operation_ = nic::AtomicOperation::sum;
  nic::AtomicOperand operand_{};
  Region source_;
  Region target_;
  Region reply_;
  std::optional<ListedMemory> source_list_;
  std::optional<ListedMemory> reply_list_;
  std::vector<uint8_t> reply_expected_;
  std::vector<nic::IovecElement> pieces_;
  nic::Entry entry_;
  nic::EntryId entry_id_;
  nic::CounterId counter_;
  bool appended_ = false;
  Fail fail_ = Fail::ok;
  uint64_t landed_bytes_ = 0;
  bool count_seen_ = false;
  uint64_t sends_ = 0;
  uint64_t ends_ = 0;
  uint64_t cut_events_ = 0;
  bool undeliverable_ = false;
  bool send_failed_ = false;
  bool matched_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_transfer(World& world, uint32_t id, Work work) {
  return std::make_unique<Transfer>(world, id, work);
}

}  // namespace spinloom::torture
