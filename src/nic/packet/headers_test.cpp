// Each header: fields where the standards have them, and one wrong field a time.
#include <gtest/gtest.h>

#include "base/byte_order.hpp"
#include "base/testing/seeds.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::packet {
namespace {

const MacAddress here{{2, 0, 0, 0, 0, 1}};
const MacAddress there{{2, 0, 0, 0, 0, 2}};
const Endpoints ends{here, there, {0x0a000001}, {0x0a000002}};
const FrameBytes payload{'s', 'p', 'i', 'n', '!'};

TEST(Address, IsReadAsItIsPrinted) {
  EXPECT_EQ(to_text(here), "02:00:00:00:00:01");
  EXPECT_EQ(to_text(Ipv4Address{0xc0a80afe}), "192.168.10.254");
  for_seeds(50, [](Random& random) {
    const MacAddress mac = test::random_mac(random);
    const Ipv4Address ipv4{static_cast<uint32_t>(random.next())};
    EXPECT_EQ(*parse_mac(to_text(mac)), mac);
    EXPECT_EQ(*parse_ipv4(to_text(ipv4)), ipv4);
  });
  for (const char* wrong :
       {"", "10.0.0", "10.0.0.256", "10.0.0.1.", "10.0.0.1.2", "10.0.0.-1", "0010.0.0.1", " 10.0.0.1"}) {
    const auto parsed = parse_ipv4(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_NE(parsed.error().message.find("10.0.0.1"), std::string::npos);
  }
  for (const char* wrong : {"", "02:00:00:00:00", "02:00:00:00:00:01:02", "02-00-00-00-00-01", "02:00:00:00:00:001"}) {
    EXPECT_FALSE(parse_mac(wrong).ok()) << wrong;
  }
}

TEST(Ethernet, HasItsFieldsWhereTheStandardHasThem) {
  const FrameBytes frame = udp_frame(ends, 4000, 9330, payload);
  // 14 + 20 + 8 + 5 = 47 bytes, padded to 60.
  ASSERT_EQ(frame.size(), ethernet_frame_bytes_min);
  const FrameBytes head(frame.begin(), frame.begin() + 14);
  EXPECT_EQ(head, (FrameBytes{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00}));
}

TEST(Ethernet, UnwrapsUpToTwoTags) {
  for (uint8_t tags = 0; tags <= 2; ++tags) {
    Ethernet header{there, here, {{{ether_type::service_vlan, 0x2007}, {ether_type::vlan, 0xe00a}}}, tags, 0x88b5, {}};
    const FrameBytes frame = ethernet_frame(header, payload);
    const auto read = read_ethernet(frame);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->tag_count, tags);
    EXPECT_EQ(read->type, 0x88b5);
    EXPECT_EQ(read->payload.size(), 60U - 14 - 4 * tags);
    if (tags == 2) {
      EXPECT_EQ(read->tags, header.tags);
      EXPECT_EQ(read->tags[0].vlan(), 7);
      EXPECT_EQ(read->tags[1].priority(), 7);
    }
  }
  FrameBytes three(60);
  for (size_t at : {12, 16, 20}) store_be(&three[at], ether_type::vlan);
  EXPECT_EQ(read_ethernet(three).error, ReadError::many_tags);
}

TEST(Ethernet, OfLengthHasJustThatPayload) {
  // Spanning tree: 39 bytes behind a length, 60 - 14 = 46 in the frame.
  FrameBytes frame = ethernet_frame({there, here, {}, 0, 39, {}}, FrameBytes(39, 7));
  ASSERT_TRUE(read_ethernet(frame).ok());
  EXPECT_EQ(read_ethernet(frame)->payload.size(), 39U);
  store_be(&frame[12], uint16_t{47});
  EXPECT_EQ(read_ethernet(frame).error, ReadError::long_llc);
}

TEST(Arp, AsksAndAnswers) {
  const FrameBytes frame = arp_request_frame(here, ends.source, ends.target);
  const auto request = read_arp(read_ethernet(frame)->payload);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(*request, (Arp{arp_operation::request, here, ends.source, {}, ends.target}));
  EXPECT_EQ(answer_arp(*request, there), (Arp{arp_operation::reply, there, ends.target, here, ends.source}));
  EXPECT_EQ(read_ethernet(frame)->target, broadcast);
  for (size_t at : {0, 1, 2, 3, 4, 5}) {
    FrameBytes wrong = frame;
    wrong[14 + at] ^= 1;
    EXPECT_EQ(read_arp(Bytes(wrong).subspan(14)).error, ReadError::foreign_arp) << "byte " << at;
  }
}

TEST(Ipv4, EndsWithItsTotalLength) {
  const FrameBytes frame = udp_frame(ends, 4000, 9330, payload);
  const auto packet = read_ipv4(read_ethernet(frame)->payload);
  ASSERT_TRUE(packet.ok()) << sentence(packet.error);
  EXPECT_EQ(packet->payload.size(), 8 + payload.size());  // the padding is no part of it
  EXPECT_EQ(packet->source, ends.source);
  EXPECT_EQ(packet->target, ends.target);
}

// A header of 20 bytes for 16 of payload, changed, with its checksum made right again.
ReadError changed(const std::function<void(uint8_t*)>& change) {
  FrameBytes packet(36);
  write_ipv4({.protocol = ip_protocol::udp, .source = ends.source, .target = ends.target, .options = {}, .payload = {}},
             16, packet);
  change(packet.data());
  const size_t header_bytes = std::clamp<size_t>((packet[0] & 15U) * 4, 20, 36);
  store_be(&packet[10], uint16_t{0});
  store_be(&packet[10], checksum(Bytes(packet).first(header_bytes)));
  return read_ipv4(packet).error;
}

TEST(Ipv4, OneWrongFieldAtATime) {
  EXPECT_EQ(changed([](uint8_t*) {}), ReadError::none);
  EXPECT_EQ(changed([](uint8_t* at) { at[0] = 0x65; }), ReadError::ipv4_version);
  EXPECT_EQ(changed([](uint8_t* at) { at[0] = 0x44; }), ReadError::ipv4_header_length);
  EXPECT_EQ(changed([](uint8_t* at) { at[0] = 0x4a; }), ReadError::short_ipv4);         // 40 bytes of header in 36
  EXPECT_EQ(changed([](uint8_t* at) { at[3] = 19; }), ReadError::ipv4_total_length);    // less than the header
  EXPECT_EQ(changed([](uint8_t* at) { at[3] = 37; }), ReadError::ipv4_total_length);    // more than there is
  EXPECT_EQ(changed([](uint8_t* at) { at[6] = 0x20; }), ReadError::none);               // 16 bytes, others follow
  EXPECT_EQ(changed([](uint8_t* at) { at[6] = 0x20, at[3] = 35; }), ReadError::ipv4_fragment_size);  // 15 bytes
  // The last fragment of the longest datagram: 8 * 8187 + 36 = 65532 bytes; 8 more are too many.
  EXPECT_EQ(changed([](uint8_t* at) { store_be(at + 6, uint16_t{8187}); }), ReadError::none);
  EXPECT_EQ(changed([](uint8_t* at) { store_be(at + 6, uint16_t{8188}); }), ReadError::ipv4_fragment_end);
  FrameBytes packet(20);
  write_ipv4({}, 0, packet);
  packet[8] ^= 1;
  EXPECT_EQ(read_ipv4(packet).error, ReadError::ipv4_checksum);
}

TEST(Ipv4, KeepsOptionsAndFragments) {
  const FrameBytes options{7, 7, 4, 0, 0, 0, 0, 0};  // record route, no room left
  Ipv4 header;
  header.options = options;
  header.more_fragments = true;
  header.fragment_offset = 1480;
  header.protocol = ip_protocol::udp;
  const FrameBytes frame = ipv4_frame({there, here, {}, 0, ether_type::ipv4, {}}, header, FrameBytes(64, 1));
  const auto read = read_ipv4(read_ethernet(frame)->payload);
  ASSERT_TRUE(read.ok()) << sentence(read.error);
  EXPECT_TRUE(std::equal(options.begin(), options.end(), read->options.begin(), read->options.end()));
  EXPECT_EQ(read->fragment_offset, 1480);
  EXPECT_FALSE(read->is_whole());
  EXPECT_EQ(read_udp(*read).error, ReadError::fragment_of_datagram);
  EXPECT_EQ(read_icmp(*read).error, ReadError::other_protocol);
}

TEST(Udp, LengthAndChecksum) {
  FrameBytes frame = udp_frame(ends, 4000, 9330, payload);
  constexpr size_t at = 34;
  const auto read = [&frame] { return read_udp(*read_ipv4(Bytes(frame).subspan(14))); };
  const auto verified = [&] { return verify_udp(*read_ipv4(Bytes(frame).subspan(14)), *read()); };
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(read()->source_port, 4000);
  EXPECT_EQ(read()->target_port, 9330);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), read()->payload.begin(), read()->payload.end()));
  EXPECT_EQ(verified(), ReadError::none);
  frame[at + 9] ^= 1;
  EXPECT_EQ(verified(), ReadError::udp_checksum);
  store_be(&frame[at + 6], uint16_t{0});  // no checksum: nothing to compare with
  EXPECT_EQ(verified(), ReadError::none);
  store_be(&frame[at + 4], uint16_t{7});
  EXPECT_EQ(read().error, ReadError::udp_length);
  store_be(&frame[at + 4], uint16_t{14});  // 13 are there; the padding of the frame is not ours
  EXPECT_EQ(read().error, ReadError::udp_length);
}

TEST(Udp, SumOfZeroIsSentAsOnes) {
  // The field is the complement of S, the sum of all words. A payload word p = ~S makes the sum ffff and the field 0,
  // which would mean "no checksum": ffff is sent (RFC 768).
  const Ipv4 ipv4{
      .protocol = ip_protocol::udp, .source = ends.source, .target = ends.target, .options = {}, .payload = {}};
  FrameBytes datagram(10);
  write_udp(ipv4, {1, 2, true, {}}, datagram);
  store_be(&datagram[8], load_be<uint16_t>(&datagram[6]));
  write_udp(ipv4, {1, 2, true, {}}, datagram);
  EXPECT_EQ(load_be<uint16_t>(&datagram[6]), 0xffff);
  Ipv4 packet = ipv4;
  packet.payload = datagram;
  EXPECT_TRUE(read_udp(packet)->has_checksum);
  EXPECT_EQ(verify_udp(packet, *read_udp(packet)), ReadError::none);
}

TEST(Icmp, AnAnswerIsTheRequestWithAnotherType) {
  for_seeds(100, [](Random& random) {
    const FrameBytes data = test::random_bytes(random, random.below(200));
    const auto identifier = static_cast<uint16_t>(random.next());
    FrameBytes frame = echo_frame(ends, identifier, 3, data);
    auto packet = read_ipv4(Bytes(frame).subspan(14));
    auto echo = read_icmp(*packet);
    ASSERT_TRUE(echo.ok() && echo->is_echo_request()) << sentence(echo.error);
    answer_echo(std::span(frame).subspan(34, packet->payload.size()));
    echo = read_icmp(*packet);
    ASSERT_TRUE(echo.ok() && echo->is_echo_reply()) << sentence(echo.error);
    EXPECT_EQ(echo->identifier, identifier);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), echo->payload.begin(), echo->payload.end()));
    frame[34 + random.below(packet->payload.size())] ^= 0x10;
    EXPECT_EQ(read_icmp(*packet).error, ReadError::icmp_checksum);
  });
}

}  // namespace
}  // namespace spinloom::packet
