// The NIC's host in a run with frames: contexts that come and go, rings that are read, frames that are sent.
#include <numeric>

#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

constexpr uint64_t memory_bytes = 1 << 16;  // host memory for a context
constexpr uint64_t state_bytes = 64;
constexpr uint64_t rest_max = 2000;  // rounds until the host goes on with a context, at most

frames::Limits limits_of(const Config& config, Random& random, uint32_t frame_bytes, uint32_t sites) {
  frames::Limits limits;
  const auto some = [&](uint32_t most) { return static_cast<uint32_t>(1 + random.below(most)); };
  const frames::SlotClass large{some(config.packet_buffer_packets), (frame_bytes + 7) / 8 * 8};
  const frames::SlotClass small{some(config.packet_buffer_packets), 64};
  limits.slots = {large, small};
  if (random.chance(1, 3)) limits.slots = {small, large};
  if (random.chance(1, 3)) limits.slots = {large};
  limits.frame_bytes_max = frame_bytes;
  limits.hpus = some(config.hpus);
  limits.message_queues = some(std::min(config.handler_messages, 16u));
  limits.idle_frames = some(100);
  limits.nic_memory_bytes = sites * state_bytes;
  limits.arbitration = random.chance(1, 2) ? frames::Arbitration::handlers_first : frames::Arbitration::round_robin;
  limits.fairness = random.chance(1, 2) ? frames::Fairness::oldest : frames::Fairness::by_cycles;
  limits.egress_depth = some(4);
  limits.host_frames = some(8);
  limits.mails = some(4);
  limits.matcher.rule_sets = sites;
  limits.matcher.message_word = message_at / 4;
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
  largest_frame_ = static_cast<uint32_t>(payload_at + std::max(config_.payload_bytes, 64u));
  const auto sites = static_cast<uint32_t>(kinds.size());
  SPL_ASSIGN(card_, FrameCard::make(limits_of(config_, random_, largest_frame_, sites), seed_, handlers_, *this));
  for (uint32_t number = 0; number < sites; ++number) {
    Site& site = sites_.emplace_back();
    site.id = spin::ContextId{number};
    site.kind = kinds[number];
    site.memory = Region(site.kind == Kind::ring ? frames::ring_entry_bytes * (1 + random_.below(5)) : memory_bytes);
    if (site.kind == Kind::message) {
      std::fill_n(site.memory.data() + memory_bytes - 8, 8, uint8_t{0});
      site.used = random_.below(16);  // places of any alignment
    }
    spin::Context& context = site.options.handlers;
    site.options.frames_to_memory = site.kind == Kind::ring;
    if (site.kind == Kind::echo) context.payload_entry = echo_;
    if (site.kind == Kind::message) {
      context.payload_entry = payload_;
      if (random_.chance(2, 3)) context.header_entry = header_;
      if (!context.header_entry || random_.chance(2, 3)) context.completion_entry = completion_;
    }
    if (site.kind != Kind::ring && random_.chance(1, 2)) context.initialise_entry = initialise_;
    if (site.kind != Kind::ring && random_.chance(2, 3)) context.mail_entry = mail_;
    if (random_.chance(1, 4))
      context.hpus = spin::HpuMask::of(static_cast<uint32_t>(random_.below(card_->nic().limits().hpus)), 1);
    context.state = {number * state_bytes, state_bytes};
    context.handler_host_start = reinterpret_cast<uint64_t>(site.memory.data());
    context.handler_host_length = site.memory.size();
  }
  set_rules();
  for (Site& site : sites_) SPL_TRY(install(site));
  if (config_.dead != 0) host_dies_ = Time{200 + static_cast<int64_t>(random_.below(3000))};
  return {};
}

// Rule set n takes the frames for context n, and has one of three equivalent forms, at random. A ring that is the last
// site may take all other frames, too.
void FrameRun::set_rules() {
  std::vector<frames::RuleSet> sets;
  for (const Site& site : sites_) {
    const uint32_t word = 0xb588u | site.id.value << 16;
    frames::RuleSet set;
    const frames::Rule itself{head_at / 4, 0x00ffffff, word, word};
    switch (random_.below(3)) {
      case 0: set.rules = {itself}; break;
      case 1:
        set.rules = {{head_at / 4, 0xffff, 0xb588, 0xb588},
                     {head_at / 4, 0xff0000, site.id.value << 16, site.id.value << 16}};
        break;
      default: set.mode = frames::RuleMode::any; set.rules = {frames::Rule::never(), itself};
    }
    if (site.kind == Kind::message) set.last_frame = {head_at / 4, 0x01000000, 0x01000000, 0x01000000};
    sets.push_back(set);
  }
  if (sites_.back().kind == Kind::ring && random_.chance(1, 2)) {
    sets.back() = {frames::RuleMode::all, {frames::Rule::always()}, frames::Rule::never()};
    strays_in_ring_ = true;
  }
  const Status done = card_->nic().configure(sets);
  if (!done) return on_trouble(done.error().message);
  rules_ = std::move(sets);
}

// Clears the context's memory, then installs, initialises and activates it, as a host does.
Status FrameRun::install(Site& site) {
  frames::Nic& nic = card_->nic();
  std::fill_n(card_->nic_memory().data() + site.options.handlers.state.offset, state_bytes, uint8_t{0});
  site.payload_runs = 0;
  site.ring_read = 0;
  if (site.kind == Kind::ring) std::fill_n(site.memory.data(), site.memory.size(), uint8_t{0});
  SPL_TRY(nic.install(site.id, site.options));
  if (!site.options.handlers.initialise_entry) {
    site.stage = Stage::active;
    return nic.activate(site.id);
  }
  site.stage = Stage::initialising;
  SPL_TRY(card_->initialise(site.id));
  if (nic.activate(site.id).ok())
    return fail(Code::mismatch, "context ", site.id, " is activated before it is initialised");
  return {};
}

// Lets a context rest, runs one of its handlers, or gives all rules in other forms, as a host does.
void FrameRun::begin_change() {
  Site& site = sites_[random_.below(sites_.size())];
  if (site.stage != Stage::active) return;
  switch (random_.below(4)) {
    case 0: return set_rules();
    case 1:
      if (site.kind == Kind::ring) return;
      ++wanted_.host_runs;
      if (const Status done = card_->invoke(site.id, 1u << 30); !done) on_trouble(done.error().message);
      return;
    default:
      if (const Status done = card_->nic().activate(site.id, false); !done) on_trouble(done.error().message);
      site.stage = Stage::resting;
      site.until = now_ + Time{static_cast<int64_t>(random_.below(rest_max))};
  }
}

bool FrameRun::go_on(Site& site) {
  frames::Nic& nic = card_->nic();
  if (site.stage == Stage::leaving) {
    if (const Status done = nic.remove(site.id); !done) return false;
    while (read_ring(site)) {
    }
    site.stage = Stage::gone;
    site.until = now_ + Time{static_cast<int64_t>(random_.below(rest_max))};
    return true;
  }
  if (site.until > now_ || (site.stage != Stage::resting && site.stage != Stage::gone)) return false;
  Status done;
  if (site.stage == Stage::gone) {
    done = install(site);
  } else if (random_.chance(1, 2)) {
    done = nic.activate(site.id);
    site.stage = Stage::active;
  } else {
    site.stage = Stage::leaving;
  }
  if (!done) on_trouble(done.error().message);
  return true;
}

// Ends the host's program: all contexts that are active or rest are removed, and installed again later.
void FrameRun::host_dies() {
  host_dies_ = Time::never();
  ++of(outcome_.faults, Fault::peer_dead);
  note("the host's program dies");
  for (Site& site : sites_) {
    if (site.stage != Stage::active && site.stage != Stage::resting) continue;
    const Status done = card_->nic().activate(site.id, false);
    if (!done) on_trouble(done.error().message);
    site.stage = Stage::leaving;
  }
}

// Reads one entry of the ring, if its header has the next number. Returns false if not.
bool FrameRun::read_ring(Site& site) {
  if (site.kind != Kind::ring) return false;
  const uint64_t entries = site.memory.size() / frames::ring_entry_bytes;
  const uint8_t* const entry = site.memory.data() + site.ring_read % entries * frames::ring_entry_bytes;
  frames::RingHeader header;
  std::memcpy(&header, entry, sizeof header);
  if (header.sequence != site.ring_read + 1) return false;
  const FrameView frame{entry + sizeof header,
                        std::min<size_t>(header.length, frames::ring_entry_bytes - sizeof header)};
  const auto head = head_of(frame);
  const bool ours = head && is_known(frame, *head);
  if (header.length != frame.size() || header.rule_set != site.id.value || (head && head->message != header.message) ||
      (!strays_in_ring_ && !ours)) {
    on_trouble(text("entry ", header.sequence, " of the ring is not a frame that has come"));
  }
  record(frame);
  ++site.ring_read;
  ++wanted_.ring;
  card_->nic().on_host_read(site.id, 1);
  return true;
}

bool FrameRun::send_from_host() {
  if (host_waits_.empty()) return false;
  const uint64_t token = ++host_tokens_;
  host_leaves_.emplace_back(token, host_waits_.front());
  if (!card_->send(host_waits_.front(), token)) {
    host_leaves_.pop_back();
    ++wanted_.refused;
    return false;
  }
  host_waits_.pop_front();
  return true;
}

}  // namespace spinloom::torture
