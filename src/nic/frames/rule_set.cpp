#include "nic/frames/rule_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace spinloom::frames {
namespace {

bool holds(const RuleSet& set, std::span<const uint8_t> frame) {
  const auto rule_holds = [frame](const Rule& rule) { return rule.holds(word_of(frame, rule.index)); };
  if (set.rules.empty()) return false;
  return set.mode == RuleMode::all ? std::ranges::all_of(set.rules, rule_holds)
                                   : std::ranges::any_of(set.rules, rule_holds);
}

}  // namespace

uint32_t word_of(std::span<const uint8_t> frame, uint32_t index) {
  const uint64_t at = uint64_t{index} * 4;
  if (at + 4 <= frame.size()) {
    uint32_t word;
    std::memcpy(&word, frame.data() + at, 4);
    return std::endian::native == std::endian::little ? word : __builtin_bswap32(word);
  }
  uint32_t word = 0;
  for (uint64_t byte = at; byte < frame.size(); ++byte) word |= uint32_t{frame[byte]} << (byte - at) * 8;
  return word;
}

Status Matcher::configure(std::vector<RuleSet> rule_sets) {
  if (rule_sets.size() > limits_.rule_sets) {
    return fail(Code::exhausted, rule_sets.size(), " rule sets, but the matching unit has ", limits_.rule_sets,
                " (MatcherLimits::rule_sets)");
  }
  for (size_t number = 0; number < rule_sets.size(); ++number) {
    const RuleSet& set = rule_sets[number];
    if (set.rules.size() > limits_.rules) {
      return fail(Code::exhausted, "rule set ", number, " has ", set.rules.size(), " rules, but the matching unit has ",
                  limits_.rules, " for each set (MatcherLimits::rules)");
    }
    const auto beyond = [this](const Rule& rule) { return (uint64_t{rule.index} + 1) * 4 > limits_.inspected_bytes; };
    const auto found = std::ranges::find_if(set.rules, beyond);
    if (found != set.rules.end() || beyond(set.last_frame)) {
      return fail(Code::invalid, "rule set ", number, " looks at word ",
                  found != set.rules.end() ? found->index : set.last_frame.index, ", but only the first ",
                  limits_.inspected_bytes / 4, " words of a frame are inspected (MatcherLimits::inspected_bytes)");
    }
  }
  rule_sets_ = std::move(rule_sets);
  return {};
}

std::optional<Matcher::Match> Matcher::match(std::span<const uint8_t> frame) const {
  for (uint32_t number = 0; number < rule_sets_.size(); ++number) {
    const RuleSet& set = rule_sets_[number];
    if (!holds(set, frame)) continue;
    return Match{number, word_of(frame, limits_.message_word),
                 set.last_frame.holds(word_of(frame, set.last_frame.index))};
  }
  return std::nullopt;
}

}  // namespace spinloom::frames
