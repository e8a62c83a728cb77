// The control registers of a live NIC: what they read from the card, and what they change there.
#include <cstring>

#include "ethernet/service.hpp"

namespace spinloom::ethernet {
namespace {

using registers::Register;

constexpr uint64_t handler_memory = 0x1c000000;  // its address on the board

}  // namespace

// Writes to the registers what is in force: shorter rule sets are filled up with rules that change nothing.
void Service::show_rules() {
  showing_ = true;
  const uint32_t rules = card_.nic().limits().matcher.rules;
  const auto set = [this](Register id, uint32_t index, uint32_t value) {
    const Status written = file_.write(registers::Place{id, index}, value);
    SPL_ASSERT(written.ok(), written.error().message);
  };
  set(Register::me_valid, 0, 0);
  for (uint32_t number = 0; number < rule_sets_.size(); ++number) {
    const frame::RuleSet& given = rule_sets_[number];
    const bool any = given.mode == frame::RuleMode::any;
    set(Register::me_mode, number, any ? 1 : 0);
    for (uint32_t which = 0; which <= rules; ++which) {
      frame::Rule rule = any || given.rules.empty() ? frame::Rule::never() : frame::Rule::always();
      if (which == rules) {
        rule = given.last_frame;
      } else if (which < given.rules.size()) {
        rule = given.rules[which];
      }
      const uint32_t index = number * (rules + 1) + which;
      set(Register::me_idx, index, rule.index);
      set(Register::me_mask, index, rule.mask);
      set(Register::me_start, index, rule.start);
      set(Register::me_end, index, rule.end);
    }
  }
  // A rule that cannot hold, and is not the one that says so, keeps the registers from being valid; the rules stay.
  (void)file_.write(registers::Place{Register::me_valid, 0}, 1);
  showing_ = false;
}

void Service::show_active() {
  showing_ = true;
  for (uint32_t context = 0; context < rule_sets_.size(); ++context) {
    const bool installed = card_.nic().context(ContextId{context}) != nullptr;
    const bool active = !installed || card_.nic().is_active(ContextId{context});  // 1 after reset
    (void)file_.write(registers::Place{Register::spinloom_active, context}, active ? 1 : 0);
  }
  active_ = file_.configuration().active;
  showing_ = false;
}

void Service::changed(const registers::Configuration& configuration) {
  if (showing_) return;
  std::vector<frame::RuleSet> sets(rule_sets_.size());
  if (configuration.matching_valid) {
    const auto rule_of = [](const registers::Rule& rule) {
      return frame::Rule{rule.index, rule.mask, rule.start, rule.end};
    };
    for (size_t number = 0; number < sets.size(); ++number) {
      const registers::RuleSet& given = configuration.rule_sets[number];
      sets[number].mode = given.any ? frame::RuleMode::any : frame::RuleMode::all;
      for (const registers::Rule& rule : given.rules) sets[number].rules.push_back(rule_of(rule));
      sets[number].last_frame = rule_of(given.last_frame);
    }
  }
  const Status configured = configure(std::move(sets));
  SPL_ASSERT(configured.ok(), configured.error().message);  // the registers check what the matching unit checks
  const std::vector<bool> before = std::exchange(active_, configuration.active);
  for (uint32_t context = 0; context < active_.size(); ++context) {
    const bool installed = card_.nic().context(ContextId{context}) != nullptr;
    if (installed && before[context] != active_[context]) (void)card_.activate(ContextId{context}, active_[context]);
  }
}

uint32_t Service::value_of(registers::Place place) const {
  if (place.id >= Register::counts_received) {
    const auto which = static_cast<size_t>(place.id) - static_cast<size_t>(Register::counts_received);
    return which < frame::count_kinds ? static_cast<uint32_t>(card_.nic().counts()[which]) : 0;
  }
  switch (place.id) {
    case Register::stats_cluster: return place.index == 1 ? card_.nic().state().hpus_busy : 0;
    case Register::stats_mpq: {
      const frame::Limits& limits = card_.nic().limits();
      return card_.nic().state().messages >= limits.message_queues ? UINT32_MAX : 0;
    }
    case Register::stats_datapath:
      return place.index == 0 ? static_cast<uint32_t>(card_.nic().count(frame::Count::dropped_full)) : 0;
    default: return 0;
  }
}

void Service::print(const frame::DebugLine& line) {
  const PrintedLine said(line);
  for (const char one : said.text + '\n') {
    if (printed_.size() == stdout_characters) printed_.pop_front();
    printed_.push_back(registers::stdout_word(said.cluster, said.core, static_cast<uint8_t>(one)));
  }
}

uint32_t Service::pop_stdout() {
  if (printed_.empty()) return registers::stdout_empty;
  const uint32_t word = printed_.front();
  printed_.pop_front();
  return word;
}

registers::Window Service::mapped(uint32_t context) const {
  const host::SharedMemory* const memory = card_.shared_host_memory(ContextId{context});
  if (memory == nullptr || memory->bytes().empty()) return {};
  return {reinterpret_cast<uint64_t>(memory->bytes().data()), memory->bytes().size()};
}

Status Service::call(const registers::HostCall& call) { return card_.invoke(ContextId{call.context}, call.message); }

std::string Service::status_text() const {
  std::string lines = text("wire: ", card_.wire().description(), '\n', "under way: ", card_.nic().waiting(), '\n',
                           "programs: ", desk_->programs(), '\n');
  for (uint32_t context = 0; context < rule_sets_.size(); ++context) {
    const spin::Context* const installed = card_.nic().context(ContextId{context});
    if (installed == nullptr) continue;
    lines += text("context ", context, ": ", card_.nic().is_active(ContextId{context}) ? "active" : "inactive",
                  ", state of ", installed->state.length, " B at 0x", std::hex,
                  handler_memory + installed->state.offset, std::dec, '\n');
  }
  return lines;
}

Result<uint8_t*> Service::place_of(uint64_t address, uint64_t bytes) const {
  const std::span<uint8_t> memory = card_.nic_memory().bytes();
  const uint64_t offset = address - handler_memory;
  if (address < handler_memory || offset > memory.size() || bytes > memory.size() - offset) {
    return fail(Code::unsupported,
                "this NIC has no program memory: its handlers are files; handler memory begins at 0x", std::hex,
                handler_memory);
  }
  return memory.data() + offset;
}

Status Service::read(uint64_t address, std::span<uint64_t> words) const {
  SPL_ASSIGN(const uint8_t* const from, place_of(address, words.size_bytes()));
  std::memcpy(words.data(), from, words.size_bytes());
  return {};
}

Status Service::write(uint64_t address, std::span<const uint64_t> words) {
  SPL_ASSIGN(uint8_t* const to, place_of(address, words.size_bytes()));
  std::memcpy(to, words.data(), words.size_bytes());
  return {};
}

}  // namespace spinloom::ethernet
