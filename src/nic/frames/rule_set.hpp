// RuleSet - which frames a NIC takes for itself: U32 rules, as FPsPIN's matching engine evaluates them.
//
// Contract: a rule compares one 32-bit word of the frame, read in little-endian order as the hardware slices the frame:
//   it holds if start <= (word & mask) <= end, unsigned. A rule set holds if all of its rules do, or any of them. Its
//   last-frame rule says whether the frame is the last of its message. If several rule sets hold, the one with the
//   lowest index wins. Source: FPsPIN, deliverable D4.7, section 4.2.3.1, and its public RTL (pspin_pkt_match).
// Invariants: (1) bytes behind the end of the frame read as zero; (2) a rule set without rules holds for no frame.
// Threads: plain values; match() is pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace spinloom::frames {

struct Rule {
  uint32_t index = 0;  // the word's index: it has bytes 4 * index to 4 * index + 3 of the frame
  uint32_t mask = 0;
  uint32_t start = 1;
  uint32_t end = 0;

  static constexpr Rule never() { return {}; }
  static constexpr Rule always() { return {0, 0, 0, 0}; }
  [[nodiscard]] constexpr bool holds(uint32_t word) const { return start <= (word & mask) && (word & mask) <= end; }
  bool operator==(const Rule&) const = default;
};

enum class RuleMode : uint8_t { all, any };

struct RuleSet {
  RuleMode mode = RuleMode::all;
  std::vector<Rule> rules;
  Rule last_frame = Rule::never();

  bool operator==(const RuleSet&) const = default;
};

// The size of the matching unit. The board's: 4 rule sets of 3 rules and the last-frame rule.
struct MatcherLimits {
  uint32_t rule_sets = 4;
  uint32_t rules = 3;
  uint32_t inspected_bytes = 128;  // two beats of the board's 64 B data path
  uint32_t message_word = 11;  // the word that is the message's identifier: SLMP's, behind Ethernet, IPv4 and UDP
};

// The word at `index` of a frame.
[[nodiscard]] uint32_t word_of(std::span<const uint8_t> frame, uint32_t index);

class Matcher {
 public:
  struct Match {
    uint32_t rule_set = 0;
    uint32_t message = 0;
    bool last = false;
  };

  explicit Matcher(const MatcherLimits& limits) : limits_(limits) {}

  // Replaces all rule sets at once. An Error names the rule set that does not fit this unit; nothing has changed then.
  [[nodiscard]] Status configure(std::vector<RuleSet> rule_sets);
  [[nodiscard]] std::optional<Match> match(std::span<const uint8_t> frame) const;
  [[nodiscard]] const std::vector<RuleSet>& rule_sets() const { return rule_sets_; }

 private:
  MatcherLimits limits_;
  std::vector<RuleSet> rule_sets_;
};

}  // namespace spinloom::frames
