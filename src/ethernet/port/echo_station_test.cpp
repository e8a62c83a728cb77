// A station answers whoever asks it, and nobody else.
#include "ethernet/port/echo_station.hpp"

#include <gtest/gtest.h>

#include "nic/packet/build.hpp"
#include "nic/packet/describe.hpp"

namespace spinloom::port {
namespace {

const packet::MacAddress station_mac{{2, 0, 0, 0, 0, 2}};
const packet::Endpoints to_station{{{2, 0, 0, 0, 0, 1}}, station_mac, {0x0a000001}, {0x0a000002}};

std::string answer_to(const packet::FrameBytes& frame) {
  const EchoStation station(station_mac, to_station.target);
  packet::FrameBytes out(2000, 0xee);
  out.resize(station.answer(frame, out));
  return out.empty() ? "" : packet::describe(out);
}

TEST(EchoStation, AnswersWhoAsks) {
  const packet::FrameBytes data(100, 7);
  EXPECT_EQ(answer_to(packet::arp_request_frame(to_station.source_mac, to_station.source, to_station.target)),
            "ARP 10.0.0.2 is at 02:00:00:00:00:02, frame of 60 bytes");
  EXPECT_EQ(answer_to(packet::echo_frame(to_station, 5, 6, data)),
            "10.0.0.2 > 10.0.0.1 ICMP echo reply id 5 seq 6 100 bytes, frame of 142 bytes");
  EXPECT_EQ(answer_to(packet::udp_frame(to_station, 4000, 7, data)),
            "10.0.0.2:7 > 10.0.0.1:4000 UDP 100 bytes, frame of 142 bytes");
}

TEST(EchoStation, KeepsTags) {
  packet::Ethernet header{station_mac, to_station.source_mac,   {{{packet::ether_type::vlan, 9}, {}}},
                          1,           packet::ether_type::arp, {}};
  packet::FrameBytes arp(packet::arp_bytes);
  packet::write_arp({packet::arp_operation::request, to_station.source_mac, to_station.source, {}, to_station.target},
                    arp);
  EXPECT_EQ(answer_to(packet::ethernet_frame(header, arp)),
            "VLAN 9 ARP 10.0.0.2 is at 02:00:00:00:00:02, frame of 60 bytes");
}

TEST(EchoStation, AnswersNobodyElse) {
  packet::Endpoints other = to_station;
  other.target.value += 1;
  EXPECT_EQ(answer_to(packet::echo_frame(other, 5, 6, {})), "");
  EXPECT_EQ(answer_to(packet::arp_request_frame(other.source_mac, other.source, other.target)), "");
  other = to_station;
  other.target_mac.bytes[5] = 3;
  EXPECT_EQ(answer_to(packet::echo_frame(other, 5, 6, {})), "");
  packet::FrameBytes wrong = packet::udp_frame(to_station, 4000, 7, packet::FrameBytes(100, 7));
  wrong.back() ^= 1;
  EXPECT_EQ(answer_to(wrong), "");
}

}  // namespace
}  // namespace spinloom::port
