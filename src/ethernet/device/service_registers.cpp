// The control registers of a live NIC: what they read from the card, and what they change there.
#include <cstring>

#include "ethernet/device/service.hpp"

namespace spinloom::ethernet {
namespace {

using registers::Register;

constexpr uint64_t handler_memory = 0x1c000000;  // its address on the board
constexpr uint32_t handler_bytes = 4096;

using Shown = std::pair<registers::RegisterInstance, uint32_t>;

}  // namespace

// Shorter rule sets are filled up with rules that change nothing.
void Service::show_rules() {
  std::vector<Shown> shown{{{Register::me_valid, 0}, 1}};
  const uint32_t rules = card_.nic().limits().matcher.rules;
  for (uint32_t number = 0; number < rule_sets_.size(); ++number) {
    const frames::RuleSet& given = rule_sets_[number];
    const bool any = given.mode == frames::RuleMode::any;
    shown.push_back({{Register::me_mode, number}, any ? 1u : 0u});
    for (uint32_t which = 0; which <= rules; ++which) {
      frames::Rule rule = any || given.rules.empty() ? frames::Rule::never() : frames::Rule::always();
      if (which == rules) {
        rule = given.last_frame;
      } else if (which < given.rules.size()) {
        rule = given.rules[which];
      }
      const uint32_t index = number * (rules + 1) + which;
      shown.push_back({{Register::me_idx, index}, rule.index});
      shown.push_back({{Register::me_mask, index}, rule.mask});
      shown.push_back({{Register::me_start, index}, rule.start});
      shown.push_back({{Register::me_end, index}, rule.end});
    }
  }
  file_.set_reported(shown);
}

void Service::show_contexts() {
  std::vector<Shown> shown{{{Register::cl_ctrl, 0}, (1u << file_.map().shape().clusters) - 1}};
  uint32_t installed = 0;
  for (uint32_t number = 0; number < rule_sets_.size(); ++number) {
    const spin::Context* const context = card_.nic().context(ContextId{number});
    const spin::Context none;
    const spin::Context& shown_context = context == nullptr ? none : *context;
    const registers::Window host = context == nullptr ? registers::Window{} : mapped(number);
    const auto show = [&](Register id, uint64_t value) {
      shown.push_back({{id, number}, static_cast<uint32_t>(value)});
    };
    const auto show_handler = [&](Register address, Register bytes, const std::optional<uint32_t>& entry) {
      show(address, entry && !live::HandlerLibrary::is_native(shown_context.image) ? *entry : 0);
      show(bytes, entry ? handler_bytes : 0);
    };
    installed += context == nullptr ? 0 : 1;
    show(Register::her_ctx_enabled, context == nullptr ? 0 : 1);
    show(Register::spinloom_active,
         context == nullptr || card_.nic().is_active(ContextId{number}) ? 1 : 0);  // 1 after reset
    show(Register::her_meta_handler_mem_addr, context == nullptr ? 0 : handler_memory + shown_context.state.offset);
    show(Register::her_meta_handler_mem_size, shown_context.state.length);
    show(Register::her_meta_host_mem_addr_0, host.address);
    show(Register::her_meta_host_mem_addr_1, host.address >> 32);
    show(Register::her_meta_host_mem_size, host.bytes);
    show_handler(Register::her_meta_hh_addr, Register::her_meta_hh_size, shown_context.header_entry);
    show_handler(Register::her_meta_ph_addr, Register::her_meta_ph_size, shown_context.payload_entry);
    show_handler(Register::her_meta_th_addr, Register::her_meta_th_size, shown_context.completion_entry);
    show_handler(Register::spinloom_init_addr, Register::spinloom_init_size, shown_context.initialise_entry);
  }
  shown.push_back({{Register::her_valid, 0}, installed == 0 ? 0u : 1u});
  file_.set_reported(shown);
}

Status Service::may_change(registers::RegisterInstance place, uint32_t value) const {
  const registers::Description& one = registers::describe(place.id);
  if (place.id == Register::her_valid || one.guard == Register::her_valid) {
    return fail(Code::unsupported,
                "contexts of this NIC are installed by its command line and by programs, from files; "
                "spinloom/active keeps frames from one");
  }
  if (place.id == Register::cl_ctrl || place.id == Register::spinloom_core_mask) {
    return fail(Code::unsupported, "handlers of this NIC run on a thread of its process, which has no clusters");
  }
  if (place.id != Register::spinloom_active) return {};
  const ContextId id{place.index};
  const spin::Context* const context = card_.nic().context(id);
  if (context == nullptr) return fail(Code::invalid, "context ", id, " is not installed");
  if (value == 1 && context->initialise_entry && !card_.is_initialised(id)) {
    return fail(Code::invalid, "the initialise_handler of context ", id, " has not succeeded");
  }
  return {};
}

void Service::configuration_changed(const registers::Configuration& configuration) {
  std::vector<frames::RuleSet> sets(rule_sets_.size());
  if (configuration.matching_valid) {
    const auto rule_of = [](const registers::Rule& rule) {
      return frames::Rule{rule.index, rule.mask, rule.start, rule.end};
    };
    for (size_t number = 0; number < sets.size(); ++number) {
      const registers::RuleSet& given = configuration.rule_sets[number];
      sets[number].mode = given.any ? frames::RuleMode::any : frames::RuleMode::all;
      for (const registers::Rule& rule : given.rules) sets[number].rules.push_back(rule_of(rule));
      sets[number].last_frame = rule_of(given.last_frame);
    }
  }
  const Status configured = configure(std::move(sets));
  SPL_ASSERT(configured.ok(), configured.error().message);  // the registers check what the matching unit checks
  for (uint32_t number = 0; number < configuration.active.size(); ++number) {
    const ContextId id{number};
    if (card_.nic().context(id) != nullptr) (void)card_.activate(id, configuration.active[number]);
  }
}

uint32_t Service::value_of(registers::RegisterInstance place) const {
  if (place.id >= Register::counts_received) {
    const auto which = static_cast<size_t>(place.id) - static_cast<size_t>(Register::counts_received);
    return which < frames::count_kinds ? static_cast<uint32_t>(card_.nic().counts()[which]) : 0;
  }
  switch (place.id) {
    case Register::spinloom_call: return calls_[place.index];
    case Register::spinloom_init_state: return card_.is_initialised(ContextId{place.index}) ? 2 : 0;
    case Register::stats_cluster: return place.index == 1 ? card_.nic().state().hpus_busy : 0;
    case Register::stats_mpq: {
      const frames::Limits& limits = card_.nic().limits();
      return card_.nic().state().messages >= limits.message_queues ? UINT32_MAX : 0;
    }
    case Register::stats_datapath:
      return place.index == 0 ? static_cast<uint32_t>(card_.nic().count(frames::Count::dropped_full)) : 0;
    default: return 0;
  }
}

void Service::print(const frames::DebugLine& line) {
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

Status Service::call(const registers::HostCall& call) {
  SPL_TRY(card_.invoke(ContextId{call.context}, call.message));
  ++calls_[call.context];
  return {};
}

std::string Service::status_text() const {
  return text("wire: ", card_.wire().description(), '\n', "under way: ", card_.nic().describe_waiting(), '\n',
              "programs: ", desk_->programs(), '\n');
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
