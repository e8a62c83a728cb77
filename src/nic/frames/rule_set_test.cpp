// Rule sets by the board's example and by the definition.
#include "nic/frames/rule_set.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "nic/spin/testing/replay.hpp"

namespace spinloom::frames {
namespace {

// A UDP frame to port 9330 (0x2472) as it lies on the wire.
std::vector<uint8_t> udp_frame() {
  std::vector<uint8_t> bytes(60);
  bytes[12] = 0x08;  // IPv4
  bytes[14] = 0x45;
  bytes[23] = 17;
  bytes[36] = 0x24;
  bytes[37] = 0x72;
  bytes[42] = 0xc0;  // SLMP: EOM and SYN
  bytes[44] = 0x01;
  bytes[47] = 0x02;
  return bytes;
}

// The words of FPsPIN's library, in the order in which the hardware slices a frame.
constexpr Rule is_ipv4{3, 0x0000ffff, 0x00000008, 0x00000008};
constexpr Rule is_udp{5, 0xff000000, 0x11000000, 0x11000000};
constexpr Rule to_9330{9, 0x0000ffff, 0x00007224, 0x00007224};
constexpr Rule is_eom{10, 0x00800000, 0x00800000, 0x00800000};

// Rules: FPS-24, FPS-25.
TEST(RuleSet, WordsAreLittleEndianSlices) {
  const std::vector<uint8_t> bytes{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(word_of(bytes, 0), 0x04030201u);
  EXPECT_EQ(word_of(bytes, 1), 0x00000605u);  // missing bytes read as zero
  EXPECT_EQ(word_of(bytes, 2), 0u);
}

// Rules: FPS-28, FPS-30, FPS-34.
TEST(RuleSet, TheBoardsRulesFindSlmp) {
  Matcher matcher({});
  ASSERT_TRUE(matcher.configure({{RuleMode::all, {is_ipv4, is_udp, to_9330}, is_eom}}).ok());
  auto bytes = udp_frame();
  const auto found = matcher.match(bytes);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rule_set, 0u);
  EXPECT_EQ(found->message, 0x02000001u);  // bytes 44 to 47, little-endian
  EXPECT_TRUE(found->last);
  bytes[42] = 0x40;
  EXPECT_FALSE(matcher.match(bytes)->last);
  bytes[37] = 0x73;
  EXPECT_FALSE(matcher.match(bytes).has_value());
}

// Rules: FPS-31.
TEST(RuleSet, TheFirstRuleSetThatHoldsWins) {
  Matcher matcher({});
  const RuleSet always{RuleMode::all, {Rule::always()}, Rule::never()};
  const RuleSet never{RuleMode::all, {Rule::never()}, Rule::always()};
  ASSERT_TRUE(matcher.configure({never, {RuleMode::all, {}, Rule::never()}, always, always}).ok());
  const auto found = matcher.match(udp_frame());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rule_set, 2u);
  EXPECT_FALSE(found->last);
}

// Rules: FPS-29.
TEST(RuleSet, AnyNeedsOneRule) {
  Matcher matcher({});
  ASSERT_TRUE(matcher.configure({{RuleMode::any, {Rule::never(), is_udp}, Rule::never()}}).ok());
  EXPECT_TRUE(matcher.match(udp_frame()).has_value());
  ASSERT_TRUE(matcher.configure({{RuleMode::any, {Rule::never(), Rule::never()}, Rule::never()}}).ok());
  EXPECT_FALSE(matcher.match(udp_frame()).has_value());
}

// Rules: FPS-26.
TEST(RuleSet, AConfigurationThatDoesNotFitChangesNothing) {
  Matcher matcher({});
  const RuleSet always{RuleMode::all, {Rule::always()}, Rule::never()};
  ASSERT_TRUE(matcher.configure({always}).ok());
  EXPECT_FALSE(matcher.configure(std::vector<RuleSet>(5, always)).ok());
  EXPECT_FALSE(matcher.configure({{RuleMode::all, std::vector<Rule>(4, Rule::always()), Rule::never()}}).ok());
  EXPECT_FALSE(matcher.configure({{RuleMode::all, {{32, 0, 0, 0}}, Rule::never()}}).ok());
  EXPECT_FALSE(matcher.configure({{RuleMode::all, {Rule::always()}, {UINT32_MAX, 0, 0, 0}}}).ok());
  EXPECT_EQ(matcher.rule_sets().size(), 1u);
}

// holds(f) = all or any of start <= (word & mask) <= end, with the words taken byte by byte.
// Rules: FPS-23, FPS-24, FPS-25, FPS-28, FPS-29, FPS-30, FPS-31.
TEST(RuleSet, AgreesWithTheDefinition) {
  const uint64_t seed = spin::test_seed();
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(random.below(80));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(3));
    std::vector<RuleSet> sets(1 + random.below(4));
    const auto rule = [&random] {
      const auto start = static_cast<uint32_t>(random.below(4));
      return Rule{static_cast<uint32_t>(random.below(20)), 0x03u << 8 * random.below(4), start,
                  static_cast<uint32_t>(start + random.below(3))};
    };
    for (RuleSet& set : sets) {
      set.mode = random.below(2) == 0 ? RuleMode::all : RuleMode::any;
      for (uint64_t rules = random.below(4); rules > 0; --rules) set.rules.push_back(rule());
      set.last_frame = rule();
    }
    const auto holds = [&bytes](const Rule& one) {
      uint64_t word = 0;
      for (uint64_t byte = 0; byte < 4; ++byte) {
        const uint64_t at = uint64_t{one.index} * 4 + byte;
        word += at < bytes.size() ? uint64_t{bytes[at]} << 8 * byte : 0;
      }
      return (word & one.mask) >= one.start && (word & one.mask) <= one.end;
    };
    std::optional<uint32_t> expected;
    for (uint32_t number = 0; number < sets.size() && !expected; ++number) {
      uint32_t held = 0;
      for (const Rule& one : sets[number].rules) held += holds(one) ? 1 : 0;
      const bool all = held == sets[number].rules.size() && held > 0;
      if (sets[number].mode == RuleMode::all ? all : held > 0) expected = number;
    }
    Matcher matcher({});
    ASSERT_TRUE(matcher.configure(sets).ok());
    const auto found = matcher.match(bytes);
    ASSERT_EQ(found.has_value(), expected.has_value()) << spin::replay(seed, "frame");
    if (!found) continue;
    EXPECT_EQ(found->rule_set, *expected) << spin::replay(seed, "frame");
    EXPECT_EQ(found->last, holds(sets[*expected].last_frame)) << spin::replay(seed, "frame");
  }
}

}  // namespace
}  // namespace spinloom::frames
