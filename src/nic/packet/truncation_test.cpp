// Whatever the bytes are: nothing is read behind them, and no length reaches beyond them.
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::packet {
namespace {

TEST(Truncation, RandomFramesAreRight) {
  for_seeds(300, [](Random& random) {
    const FrameBytes frame = test::random_frame(random);
    EXPECT_TRUE(test::read_all(test::Guarded(frame).bytes()));
    const auto ethernet = read_ethernet(frame);
    ASSERT_TRUE(ethernet.ok());
    if (ethernet->type != ether_type::ipv4) return;
    const auto ipv4 = read_ipv4(ethernet->payload);
    ASSERT_TRUE(ipv4.ok()) << sentence(ipv4.error);
    if (!ipv4->is_whole()) return;
    if (ipv4->protocol == ip_protocol::udp) {
      const auto udp = read_udp(*ipv4);
      ASSERT_TRUE(udp.ok()) << sentence(udp.error);
      EXPECT_EQ(verify_udp(*ipv4, *udp), ReadError::none);
    } else {
      EXPECT_TRUE(read_icmp(*ipv4).ok()) << describe(frame);
    }
  });
}

TEST(Truncation, FramesCutAtEachByte) {
  for_seeds(30, [](Random& random) {
    const FrameBytes frame = test::random_frame(random);
    for (size_t length = 0; length < std::min<size_t>(frame.size(), 120); ++length) {
      const test::Guarded cut(Bytes(frame).first(length));
      (void)test::read_all(cut.bytes());
      if (length < ethernet_header_bytes) {
        EXPECT_EQ(read_ethernet(cut.bytes()).error, ReadError::short_ethernet);
      }
    }
  });
}

TEST(Truncation, ChangedFramesAndNoise) {
  for_seeds(2000, [](Random& random) {
    FrameBytes bytes = random.chance(1, 4) ? test::random_bytes(random, random.below(100)) : test::random_frame(random);
    for (uint64_t changes = random.below(6); changes > 0 && !bytes.empty(); --changes) {
      bytes[random.below(std::min<size_t>(bytes.size(), 64))] = static_cast<uint8_t>(random.next());
    }
    bytes.resize(random.below(bytes.size() + 1));
    (void)test::read_all(test::Guarded(bytes).bytes());
  });
}

}  // namespace
}  // namespace spinloom::packet
