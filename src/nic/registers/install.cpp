// The effect of `valid` registers: a whole group is read, checked and put in force.
#include <sstream>

#include "nic/registers/register_file.hpp"

namespace spinloom::registers {
namespace {

std::string hexadecimal(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

std::string describe_rule(const Rule& rule) {
  if (rule.start > rule.end) return "never";
  return text("word ", rule.index, " & ", hexadecimal(rule.mask), " in ", hexadecimal(rule.start), " .. ",
              hexadecimal(rule.end));
}

bool lies_in(const Window& part, const Window& whole) {
  return part.address >= whole.address && part.bytes <= whole.bytes &&
         part.address - whole.address <= whole.bytes - part.bytes;
}

}  // namespace

RuleSet RegisterFile::rule_set(uint32_t set) const {
  RuleSet result;
  result.any = kept_value(Register::me_mode, set) != 0;
  for (uint32_t i = 0; i < map_.shape().rules; ++i) {
    const uint32_t at = set * map_.shape().rules + i;
    result.rules.push_back({kept_value(Register::me_idx, at), kept_value(Register::me_mask, at),
                            kept_value(Register::me_start, at), kept_value(Register::me_end, at)});
  }
  result.last_frame = result.rules.back();
  result.rules.pop_back();
  return result;
}

Window RegisterFile::window(Register address, Register size, uint32_t index) const {
  return {kept_value(address, index), kept_value(size, index)};
}

Context RegisterFile::context(uint32_t index) const {
  Context context;
  context.enabled = kept_value(Register::her_ctx_enabled, index) != 0;
  context.handler_memory = map_.up_to_end_of_handler_memory(
      window(Register::her_meta_handler_mem_addr, Register::her_meta_handler_mem_size, index));
  context.host_memory = window(Register::her_meta_host_mem_addr_0, Register::her_meta_host_mem_size, index);
  context.host_memory.address |= uint64_t{kept_value(Register::her_meta_host_mem_addr_1, index)} << 32;
  context.header = window(Register::her_meta_hh_addr, Register::her_meta_hh_size, index);
  context.packet = window(Register::her_meta_ph_addr, Register::her_meta_ph_size, index);
  context.tail = window(Register::her_meta_th_addr, Register::her_meta_th_size, index);
  context.initialisation = window(Register::spinloom_init_addr, Register::spinloom_init_size, index);
  context.scratchpads = {window(Register::her_meta_scratchpad_0_addr, Register::her_meta_scratchpad_0_size, index),
                         window(Register::her_meta_scratchpad_1_addr, Register::her_meta_scratchpad_1_size, index),
                         window(Register::her_meta_scratchpad_2_addr, Register::her_meta_scratchpad_2_size, index),
                         window(Register::her_meta_scratchpad_3_addr, Register::her_meta_scratchpad_3_size, index)};
  return context;
}

Status RegisterFile::check(const RuleSet& set, uint32_t index) const {
  std::vector<Rule> rules = set.rules;
  rules.push_back(set.last_frame);
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    const bool never_meant = rule.mask == 0 && rule.end == 0;  // start 1, or 1 with its bytes swapped
    if (rule.start > rule.end && !never_meant) {
      return fail(Code::invalid, "rule ", i, " of set ", index, " can never hold: start ", hexadecimal(rule.start),
                  " is above end ", hexadecimal(rule.end), " (a range in network order turns round when its bytes are ",
                  "swapped); a rule that shall never hold has mask 0, start 1, end 0");
    }
    if (rule.index >= map_.shape().match_words) {
      return fail(Code::invalid, "rule ", i, " of set ", index, " looks at word ", rule.index,
                  ", the matching engine keeps words 0 to ", map_.shape().match_words - 1);
    }
  }
  return {};
}

// The board's library gives each handler 4096 bytes, also one near the end of program memory: only where a handler
// begins is checked.
Status RegisterFile::check(const Context& context, uint32_t index) const {
  if (!context.enabled) return {};
  struct Handler {
    const char* name;
    const Window& code;
  };
  bool any = false;
  for (const Handler& handler : {Handler{"hh", context.header}, Handler{"ph", context.packet},
                                 Handler{"th", context.tail}, Handler{"init", context.initialisation}}) {
    if (handler.code.bytes == 0) continue;
    any = any || &handler.code != &context.initialisation;
    if (!map_.in_program_memory(handler.code.address, 1)) {
      return fail(Code::invalid, "context ", index, " is enabled, but its ", handler.name, "_addr ",
                  hexadecimal(handler.code.address), " does not lie in program memory");
    }
  }
  if (!any) {
    return fail(Code::invalid, "context ", index, " is enabled, but no handler is installed in it: hh_size, ph_size ",
                "and th_size are 0");
  }
  if (context.handler_memory.bytes != 0 &&
      !map_.in_handler_memory(context.handler_memory.address, context.handler_memory.bytes)) {
    return fail(Code::invalid, "context ", index, " is enabled, but its memory at ",
                hexadecimal(context.handler_memory.address), " does not lie in handler memory");
  }
  const Window mapped = device_.mapped(index);
  if (context.host_memory.bytes != 0 && !lies_in(context.host_memory, mapped)) {
    return fail(Code::invalid, "context ", index, " is enabled, but its host memory, ", context.host_memory.bytes,
                " bytes at ", hexadecimal(context.host_memory.address), ", does not lie in what is mapped for it, ",
                mapped.bytes, " bytes at ", hexadecimal(mapped.address));
  }
  return {};
}

std::vector<RuleSet> RegisterFile::rule_sets() const {
  std::vector<RuleSet> sets;
  for (uint32_t i = 0; i < map_.shape().rule_sets; ++i) sets.push_back(rule_set(i));
  return sets;
}

std::vector<Context> RegisterFile::contexts() const {
  std::vector<Context> all;
  for (uint32_t i = 0; i < map_.shape().contexts; ++i) all.push_back(context(i));
  return all;
}

Status RegisterFile::install_matching() {
  std::vector<RuleSet> sets = rule_sets();
  for (uint32_t i = 0; i < sets.size(); ++i) SPL_TRY(check(sets[i], i));
  configuration_.rule_sets = std::move(sets);
  ++configuration_.matching_installs;
  return {};
}

Status RegisterFile::install_contexts() {
  std::vector<Context> installed = contexts();
  for (uint32_t i = 0; i < installed.size(); ++i) SPL_TRY(check(installed[i], i));
  configuration_.contexts = std::move(installed);
  ++configuration_.context_installs;
  return {};
}

std::string RegisterFile::status_text() const {
  const Configuration& current = configuration_;
  std::ostringstream out;
  out << "clusters: fetch mask " << hexadecimal(current.fetch_mask) << (current.reset ? ", held in reset" : "") << '\n';
  out << "matching: " << (current.matching_valid ? "in force" : "off (me/valid is 0)") << '\n';
  for (size_t set = 0; current.matching_valid && set < current.rule_sets.size(); ++set) {
    out << "  set " << set << ": " << (current.rule_sets[set].any ? "one of" : "all of") << '\n';
    for (const Rule& rule : current.rule_sets[set].rules) out << "    " << describe_rule(rule) << '\n';
    out << "    end of message: " << describe_rule(current.rule_sets[set].last_frame) << '\n';
  }
  out << "contexts: " << (current.contexts_valid ? "in force" : "off (her/valid is 0)") << '\n';
  for (size_t i = 0; current.contexts_valid && i < current.contexts.size(); ++i) {
    const Context& context = current.contexts[i];
    if (!context.enabled) continue;
    out << "  context " << i << ": " << (current.active[i] ? "active" : "installed, not active") << ", handlers at "
        << hexadecimal(context.header.address) << ", " << hexadecimal(context.packet.address) << ", "
        << hexadecimal(context.tail.address) << ", memory " << hexadecimal(context.handler_memory.address) << " + "
        << context.handler_memory.bytes << ", host " << hexadecimal(context.host_memory.address) << " + "
        << context.host_memory.bytes << '\n';
  }
  out << device_.status_text();
  return out.str();
}

}  // namespace spinloom::registers
