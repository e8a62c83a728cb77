// Sentences about frames, and about what is wrong with them.
#include "nic/packet/describe.hpp"

#include <gtest/gtest.h>

#include <set>

#include "nic/packet/build.hpp"

namespace spinloom::packet {
namespace {

const Endpoints described{{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, {0x0a000001}, {0x0a000002}};

TEST(Describe, SaysWhoSendsWhatToWhom) {
  const FrameBytes data(100, 1);
  EXPECT_EQ(describe(udp_frame(described, 4000, 9330, data)),
            "10.0.0.1:4000 > 10.0.0.2:9330 UDP 100 bytes, frame of 142 bytes");
  EXPECT_EQ(describe(echo_frame(described, 7, 1, data)),
            "10.0.0.1 > 10.0.0.2 ICMP echo request id 7 seq 1 100 bytes, frame of 142 bytes");
  EXPECT_EQ(describe(arp_request_frame(described.source_mac, described.source, described.target)),
            "ARP who has 10.0.0.2, asks 10.0.0.1, frame of 60 bytes");
  Ethernet tagged{described.target_mac, described.source_mac, {{{ether_type::vlan, 5}, {}}}, 1, 0x88b5, {}};
  EXPECT_EQ(describe(ethernet_frame(tagged, data)),
            "VLAN 5 02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x88b5, frame of 118 bytes");
}

TEST(Describe, SaysWhatIsWrong) {
  FrameBytes frame = udp_frame(described, 4000, 9330, FrameBytes(100, 1));
  frame[60] ^= 1;
  EXPECT_NE(describe(frame).find("a UDP checksum is wrong"), std::string::npos) << describe(frame);
  frame[24] ^= 1;
  EXPECT_NE(describe(frame).find("IPv4 header's checksum is wrong"), std::string::npos) << describe(frame);
  frame.resize(13);
  EXPECT_NE(describe(frame).find("frame of 13 bytes"), std::string::npos) << describe(frame);
}

TEST(Describe, EachReadErrorHasASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (int i = 0; i < read_error_count; ++i) sentences.insert(sentence(static_cast<ReadError>(i)));
  EXPECT_EQ(sentences.size(), static_cast<size_t>(read_error_count));
  EXPECT_FALSE(sentences.contains("unknown"));
}

}  // namespace
}  // namespace spinloom::packet
