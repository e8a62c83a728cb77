// The effect of `valid` registers: a whole group is read, checked and put in force.
#include "nic/registers/register_file.hpp"

namespace spinloom::registers {
namespace {

std::string hexadecimal(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

std::string sentence(const Rule& rule) {
  if (rule.start > rule.end) return "never";
  return text("word ", rule.index, " & ", hexadecimal(rule.mask), " in ", hexadecimal(rule.start), " .. ",
              hexadecimal(rule.end));
}

bool inside(const Window& part, const Window& whole) {
  return part.address >= whole.address && part.bytes <= whole.bytes &&
         part.address - whole.address <= whole.bytes - part.bytes;
}

}  // namespace

RuleSet RegisterFile::rule_set(uint32_t set) const {
  RuleSet made;
  made.any = kept(Register::me_mode, set) != 0;
  for (uint32_t i = 0; i < map_.shape().rules; ++i) {
    const uint32_t at = set * map_.shape().rules + i;
    made.rules.push_back({kept(Register::me_idx, at), kept(Register::me_mask, at), kept(Register::me_start, at),
                          kept(Register::me_end, at)});
  }
  made.last_frame = made.rules.back();
  made.rules.pop_back();
  return made;
}

Window RegisterFile::window(Register address, Register size, uint32_t index) const {
  return {kept(address, index), kept(size, index)};
}

Context RegisterFile::context(uint32_t index) const {
  Context made;
  made.enabled = kept(Register::her_ctx_enabled, index) != 0;
  made.handler_memory = map_.up_to_end_of_handler_memory(
      window(Register::her_meta_handler_mem_addr, Register::her_meta_handler_mem_size, index));
  made.host_memory = window(Register::her_meta_host_mem_addr_0, Register::her_meta_host_mem_size, index);
  made.host_memory.address |= uint64_t{kept(Register::her_meta_host_mem_addr_1, index)} << 32;
  made.header = window(Register::her_meta_hh_addr, Register::her_meta_hh_size, index);
  made.packet = window(Register::her_meta_ph_addr, Register::her_meta_ph_size, index);
  made.tail = window(Register::her_meta_th_addr, Register::her_meta_th_size, index);
  made.initialisation = window(Register::spinloom_init_addr, Register::spinloom_init_size, index);
  made.scratchpads = {window(Register::her_meta_scratchpad_0_addr, Register::her_meta_scratchpad_0_size, index),
                      window(Register::her_meta_scratchpad_1_addr, Register::her_meta_scratchpad_1_size, index),
                      window(Register::her_meta_scratchpad_2_addr, Register::her_meta_scratchpad_2_size, index),
                      window(Register::her_meta_scratchpad_3_addr, Register::her_meta_scratchpad_3_size, index)};
  return made;
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
Status RegisterFile::check(const Context& one, uint32_t index) const {
  if (!one.enabled) return {};
  struct Handler {
    const char* name;
    const Window& code;
  };
  bool any = false;
  for (const Handler& handler : {Handler{"hh", one.header}, Handler{"ph", one.packet}, Handler{"th", one.tail},
                                 Handler{"init", one.initialisation}}) {
    if (handler.code.bytes == 0) continue;
    any = any || &handler.code != &one.initialisation;
    if (!map_.in_program_memory(handler.code.address, 1)) {
      return fail(Code::invalid, "context ", index, " is enabled, but its ", handler.name, "_addr ",
                  hexadecimal(handler.code.address), " does not lie in program memory");
    }
  }
  if (!any) {
    return fail(Code::invalid, "context ", index, " is enabled, but no handler is installed in it: hh_size, ph_size ",
                "and th_size are 0");
  }
  if (one.handler_memory.bytes != 0 && !map_.in_handler_memory(one.handler_memory.address, one.handler_memory.bytes)) {
    return fail(Code::invalid, "context ", index, " is enabled, but its memory at ",
                hexadecimal(one.handler_memory.address), " does not lie in handler memory");
  }
  const Window mapped = device_.mapped(index);
  if (one.host_memory.bytes != 0 && !inside(one.host_memory, mapped)) {
    return fail(Code::invalid, "context ", index, " is enabled, but its host memory, ", one.host_memory.bytes,
                " bytes at ", hexadecimal(one.host_memory.address), ", does not lie in what is mapped for it, ",
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
  std::vector<Context> made;
  for (uint32_t i = 0; i < map_.shape().contexts; ++i) made.push_back(context(i));
  return made;
}

Status RegisterFile::install_matching() {
  std::vector<RuleSet> sets = rule_sets();
  for (uint32_t i = 0; i < sets.size(); ++i) SPL_TRY(check(sets[i], i));
  configuration_.rule_sets = std::move(sets);
  ++configuration_.matching_installs;
  return {};
}

Status RegisterFile::install_contexts() {
  std::vector<Context> made = contexts();
  for (uint32_t i = 0; i < made.size(); ++i) SPL_TRY(check(made[i], i));
  configuration_.contexts = std::move(made);
  ++configuration_.context_installs;
  return {};
}

std::string RegisterFile::status_text() const {
  const Configuration& now = configuration_;
  std::ostringstream out;
  out << "clusters: fetch mask " << hexadecimal(now.fetch_mask) << (now.reset ? ", held in reset" : "") << '\n';
  out << "matching: " << (now.matching_valid ? "in force" : "off (me/valid is 0)") << '\n';
  for (size_t set = 0; now.matching_valid && set < now.rule_sets.size(); ++set) {
    out << "  set " << set << ": " << (now.rule_sets[set].any ? "one of" : "all of") << '\n';
    for (const Rule& rule : now.rule_sets[set].rules) out << "    " << sentence(rule) << '\n';
    out << "    end of message: " << sentence(now.rule_sets[set].last_frame) << '\n';
  }
  out << "contexts: " << (now.contexts_valid ? "in force" : "off (her/valid is 0)") << '\n';
  for (size_t i = 0; now.contexts_valid && i < now.contexts.size(); ++i) {
    const Context& one = now.contexts[i];
    if (!one.enabled) continue;
    out << "  context " << i << ": " << (now.active[i] ? "active" : "installed, not active") << ", handlers at "
        << hexadecimal(one.header.address) << ", " << hexadecimal(one.packet.address) << ", "
        << hexadecimal(one.tail.address) << ", memory " << hexadecimal(one.handler_memory.address) << " + "
        << one.handler_memory.bytes << ", host " << hexadecimal(one.host_memory.address) << " + "
        << one.host_memory.bytes << '\n';
  }
  out << device_.status_text();
  return out.str();
}

}  // namespace spinloom::registers
