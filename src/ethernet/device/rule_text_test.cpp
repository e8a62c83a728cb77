// Rule sets by name: the frames that each takes, and the names that are refused.
#include "ethernet/device/rule_text.hpp"

#include "ethernet/device/testing/card_rig.hpp"

namespace spinloom::ethernet::test {
namespace {

bool takes(const std::string& name, const FrameBytes& frame, bool* last = nullptr) {
  frames::Matcher matcher{frames::MatcherLimits{}};
  EXPECT_TRUE(matcher.configure({rule_set_named(name).value()}).ok());
  const auto match = matcher.match(frame);
  if (last != nullptr) *last = match && match->last;
  return match.has_value();
}

TEST(RuleText, NamesTakeTheirFramesOnly) {
  const FrameBytes arp = arp_request_frame(ends.source_mac, ends.source, ends.target);
  const FrameBytes ping = echo_frame(ends, 1, 2, FrameBytes(10));
  const FrameBytes datagram = udp_frame(ends, 9330, 0x1234, FrameBytes(10));
  struct Row {
    const char* name;
    bool arp, ping, datagram;
  };
  for (const Row& row : {Row{"arp", true, false, false}, Row{"icmp", false, true, false}, Row{"ip", false, true, true},
                         Row{"udp:4660", false, false, true}, Row{"udp:9330", false, false, false},
                         Row{"all", true, true, true}, Row{"slmp", false, false, false}}) {
    EXPECT_EQ(takes(row.name, arp), row.arp) << row.name;
    EXPECT_EQ(takes(row.name, ping), row.ping) << row.name;
    EXPECT_EQ(takes(row.name, datagram), row.datagram) << row.name;
  }
}

TEST(RuleText, SlmpHasItsEnd) {
  FrameBytes header(10, 0);
  bool last = true;
  EXPECT_TRUE(takes("slmp", udp_frame(ends, 5, 9330, header), &last));
  EXPECT_FALSE(last);
  header[0] = 0x40;
  EXPECT_TRUE(takes("slmp", udp_frame(ends, 5, 9330, header), &last));
  EXPECT_FALSE(last);
  header[0] = 0xc0;
  EXPECT_TRUE(takes("slmp", udp_frame(ends, 5, 9330, header), &last));
  EXPECT_TRUE(last);
}

// A later fragment has no UDP header where the rules look, and neither has a packet with options.
TEST(RuleText, FragmentsAndOptionsAreLeft) {
  const FrameBytes plain = udp_frame(ends, 1, 7, FrameBytes(10));
  ASSERT_TRUE(takes("udp:7", plain));
  for (const auto& [at, value] : {std::pair<size_t, int>{20, 0x20}, {20, 0x01}, {21, 0x01}, {14, 0x46}}) {
    FrameBytes changed = plain;
    changed[at] = static_cast<uint8_t>(value);
    EXPECT_FALSE(takes("udp:7", changed)) << at;
  }
  FrameBytes free_to_fragment = plain;
  free_to_fragment[20] = 0;
  EXPECT_TRUE(takes("udp:7", free_to_fragment));
}

TEST(RuleText, OtherNamesAreRefused) {
  for (const char* name : {"", "tcp", "udp", "udp:", "udp:0", "udp:65536", "udp:7x", "udp:-1", "ICMP"}) {
    const auto made = rule_set_named(name);
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_NE(made.error().message.find("udp:"), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace spinloom::ethernet::test
