// The NIC's host in a run with frames: contexts that come and go, rings that are read, frames that are sent.
#include <numeric>

#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

constexpr uint64_t memory_bytes = 1 << 16;  // host memory for a context
constexpr uint64_t state_bytes = 64;
constexpr uint64_t rest_max = 2000;  // rounds until the host goes on with a context, at most

frames::Limits limits_of(const Config& config, Random& random, uint32_t frame_bytes, uint32_t contexts) {
  frames::Limits limits;
  const auto up_to = [&](uint32_t most) { return static_cast<uint32_t>(1 + random.below(most)); };
  const frames::SlotClass large{up_to(config.packet_buffer_packets), (frame_bytes + 7) / 8 * 8};
  const frames::SlotClass small{up_to(config.packet_buffer_packets), 64};
  limits.slots = {large, small};
  if (random.chance(1, 3)) limits.slots = {small, large};
  if (random.chance(1, 3)) limits.slots = {large};
  limits.frame_bytes_max = frame_bytes;
  limits.hpus = up_to(config.hpus);
  limits.message_queues = up_to(std::min(config.handler_messages, 16u));
  limits.idle_frames = up_to(100);
  limits.nic_memory_bytes = contexts * state_bytes;
  limits.arbitration = random.chance(1, 2) ? frames::Arbitration::handlers_first : frames::Arbitration::round_robin;
  limits.fairness = random.chance(1, 2) ? frames::Fairness::oldest : frames::Fairness::by_cycles;
  limits.egress_depth = up_to(4);
  limits.host_frames = up_to(8);
  limits.mails = up_to(4);
  limits.matcher.rule_sets = contexts;
  limits.matcher.message_word = message_offset / 4;
  return limits;
}

}  // namespace

Status FrameRun::set_up() {
  make_handlers();
  const auto weight = [this](Work work) { return config_.weights[static_cast<size_t>(work)]; };
  std::vector<Kind> kinds;
  if (weight(Work::frame_echo) > 0) kinds.push_back(Kind::echo);
  if (weight(Work::frame_ring) > 0) kinds.push_back(Kind::ring);
  for (uint64_t more = weight(Work::frame_message) > 0 ? 1 + random_.below(3) : 0; more > 0; --more) {
    kinds.push_back(Kind::message);
  }
  if (kinds.empty()) kinds.push_back(Kind::echo);  // runs with strays or frames of the host need a context, too
  random_.shuffle(kinds);
  payload_bytes_ = static_cast<uint32_t>(1 + random_.below(config_.payload_bytes));
  largest_frame_ = static_cast<uint32_t>(payload_offset + std::max(config_.payload_bytes, 64u));
  const auto contexts = static_cast<uint32_t>(kinds.size());
  SPL_ASSIGN(card_, FrameCard::make(limits_of(config_, random_, largest_frame_, contexts), seed_, handlers_, *this));
  for (uint32_t number = 0; number < contexts; ++number) {
    ContextRecord& record = contexts_.emplace_back();
    record.id = spin::ContextId{number};
    record.kind = kinds[number];
    record.memory =
        Region(record.kind == Kind::ring ? frames::ring_entry_bytes * (1 + random_.below(5)) : memory_bytes);
    if (record.kind == Kind::message) {
      std::fill_n(record.memory.data() + memory_bytes - 8, 8, uint8_t{0});
      record.used = random_.below(16);  // places of any alignment
    }
    spin::Context& context = record.options.handlers;
    record.options.frames_to_memory = record.kind == Kind::ring;
    if (record.kind == Kind::echo) context.payload_entry = echo_;
    if (record.kind == Kind::message) {
      context.payload_entry = payload_;
      if (random_.chance(2, 3)) context.header_entry = header_;
      if (!context.header_entry || random_.chance(2, 3)) context.completion_entry = completion_;
    }
    if (record.kind != Kind::ring && random_.chance(1, 2)) context.initialise_entry = initialise_;
    if (record.kind != Kind::ring && random_.chance(2, 3)) context.mail_entry = mail_;
    if (random_.chance(1, 4))
      context.hpus = spin::HpuMask::range(static_cast<uint32_t>(random_.below(card_->nic().limits().hpus)), 1);
    context.state = {number * state_bytes, state_bytes};
    context.handler_host_start = reinterpret_cast<uint64_t>(record.memory.data());
    context.handler_host_length = record.memory.size();
  }
  set_rules();
  for (ContextRecord& record : contexts_) SPL_TRY(install(record));
  if (config_.dead != 0) host_death_ = Time{200 + static_cast<int64_t>(random_.below(3000))};
  return {};
}

// Rule set n takes the frames for context n, and has one of three equivalent forms, at random. A ring that is the last
// site may take all other frames, too.
void FrameRun::set_rules() {
  std::vector<frames::RuleSet> sets;
  for (const ContextRecord& record : contexts_) {
    const uint32_t word = 0xb588u | record.id.value << 16;
    frames::RuleSet set;
    const frames::Rule exact_rule{head_offset / 4, 0x00ffffff, word, word};
    switch (random_.below(3)) {
      case 0: set.rules = {exact_rule}; break;
      case 1:
        set.rules = {{head_offset / 4, 0xffff, 0xb588, 0xb588},
                     {head_offset / 4, 0xff0000, record.id.value << 16, record.id.value << 16}};
        break;
      default: set.mode = frames::RuleMode::any; set.rules = {frames::Rule::never(), exact_rule};
    }
    if (record.kind == Kind::message) set.last_frame = {head_offset / 4, 0x01000000, 0x01000000, 0x01000000};
    sets.push_back(set);
  }
  if (contexts_.back().kind == Kind::ring && random_.chance(1, 2)) {
    sets.back() = {frames::RuleMode::all, {frames::Rule::always()}, frames::Rule::never()};
    strays_in_ring_ = true;
  }
  const Status status = card_->nic().configure(sets);
  if (!status) return on_trouble(status.error().message);
  rules_ = std::move(sets);
}

// Clears the context's memory, then installs, initialises and activates it, as a host does.
Status FrameRun::install(ContextRecord& record) {
  frames::Nic& nic = card_->nic();
  std::fill_n(card_->nic_memory().data() + record.options.handlers.state.offset, state_bytes, uint8_t{0});
  record.payload_runs = 0;
  record.ring_read = 0;
  if (record.kind == Kind::ring) std::fill_n(record.memory.data(), record.memory.size(), uint8_t{0});
  SPL_TRY(nic.install(record.id, record.options));
  if (!record.options.handlers.initialise_entry) {
    record.stage = Stage::active;
    return nic.activate(record.id);
  }
  record.stage = Stage::initialising;
  SPL_TRY(card_->initialise(record.id));
  if (nic.activate(record.id).ok())
    return fail(Code::mismatch, "context ", record.id, " is activated before it is initialised");
  return {};
}

// Lets a context rest, runs one of its handlers, or gives all rules in other forms, as a host does.
void FrameRun::change_contexts() {
  ContextRecord& record = contexts_[random_.below(contexts_.size())];
  if (record.stage != Stage::active) return;
  switch (random_.below(4)) {
    case 0: return set_rules();
    case 1:
      if (record.kind == Kind::ring) return;
      ++expected_.host_runs;
      if (const Status status = card_->invoke(record.id, 1u << 30); !status) on_trouble(status.error().message);
      return;
    default:
      if (const Status status = card_->nic().activate(record.id, false); !status) on_trouble(status.error().message);
      record.stage = Stage::resting;
      record.until = now_ + Time{static_cast<int64_t>(random_.below(rest_max))};
  }
}

bool FrameRun::advance(ContextRecord& record) {
  frames::Nic& nic = card_->nic();
  if (record.stage == Stage::leaving) {
    if (const Status status = nic.remove(record.id); !status) return false;
    while (read_ring(record)) {
    }
    record.stage = Stage::gone;
    record.until = now_ + Time{static_cast<int64_t>(random_.below(rest_max))};
    return true;
  }
  if (record.until > now_ || (record.stage != Stage::resting && record.stage != Stage::gone)) return false;
  Status status;
  if (record.stage == Stage::gone) {
    status = install(record);
  } else if (random_.chance(1, 2)) {
    status = nic.activate(record.id);
    record.stage = Stage::active;
  } else {
    record.stage = Stage::leaving;
  }
  if (!status) on_trouble(status.error().message);
  return true;
}

// Ends the host's program: all contexts that are active or rest are removed, and installed again later.
void FrameRun::kill_host() {
  host_death_ = Time::never();
  ++count_of(outcome_.faults, Fault::peer_dead);
  note("the host's program dies");
  for (ContextRecord& record : contexts_) {
    if (record.stage != Stage::active && record.stage != Stage::resting) continue;
    const Status status = card_->nic().activate(record.id, false);
    if (!status) on_trouble(status.error().message);
    record.stage = Stage::leaving;
  }
}

// Reads one entry of the ring, if its header has the next number. Returns false if not.
bool FrameRun::read_ring(ContextRecord& record) {
  if (record.kind != Kind::ring) return false;
  const uint64_t entries = record.memory.size() / frames::ring_entry_bytes;
  const uint8_t* const entry = record.memory.data() + record.ring_read % entries * frames::ring_entry_bytes;
  frames::RingHeader header;
  std::memcpy(&header, entry, sizeof header);
  if (header.sequence != record.ring_read + 1) return false;
  const FrameView frame{entry + sizeof header,
                        std::min<size_t>(header.length, frames::ring_entry_bytes - sizeof header)};
  const auto head = head_of(frame);
  const bool is_known_frame = head && is_known(frame, *head);
  if (header.length != frame.size() || header.rule_set != record.id.value ||
      (head && head->message != header.message) || (!strays_in_ring_ && !is_known_frame)) {
    on_trouble(text("entry ", header.sequence, " of the ring is not a frame that has come"));
  }
  hash_frame(frame);
  ++record.ring_read;
  ++expected_.ring;
  card_->nic().on_host_read(record.id, 1);
  return true;
}

bool FrameRun::send_from_host() {
  if (host_queue_.empty()) return false;
  const uint64_t token = ++host_tokens_;
  host_in_flight_.emplace_back(token, host_queue_.front());
  if (!card_->send(host_queue_.front(), token)) {
    host_in_flight_.pop_back();
    ++expected_.refused;
    return false;
  }
  host_queue_.pop_front();
  return true;
}

}  // namespace spinloom::torture
