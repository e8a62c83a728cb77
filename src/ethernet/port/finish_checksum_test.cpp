// Checksums that senders left to hardware: frames as Linux hands them over a virtual link.
#include "ethernet/port/finish_checksum.hpp"

#include <gtest/gtest.h>

#include "base/byte_order.hpp"
#include "base/testing/seeds.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::port {
namespace {

constexpr size_t udp_at = 34;
constexpr size_t udp_sum_at = udp_at + 6;

// A frame whose UDP field holds the sum of the pseudo-header, and the same frame with its right field.
struct Pair {
  packet::FrameBytes left;
  packet::FrameBytes right;
};

Pair random_pair(Random& random) {
  const packet::Endpoints ends{packet::test::random_mac(random),
                               packet::test::random_mac(random),
                               {static_cast<uint32_t>(random.next())},
                               {static_cast<uint32_t>(random.next())}};
  Pair out;
  out.right = packet::udp_frame(ends, 1, static_cast<uint16_t>(random.next()),
                                packet::test::random_bytes(random, random.below(100)));
  out.left = out.right;
  const auto ipv4 = packet::read_ipv4(packet::Bytes(out.left).subspan(14));
  const auto length = static_cast<uint16_t>(ipv4->payload.size());
  const auto sum = static_cast<uint16_t>(~packet::pseudo_header(*ipv4, packet::ip_protocol::udp, length).finish());
  store_be(&out.left[udp_sum_at], sum);
  return out;
}

TEST(FinishChecksum, FillsInWhatWasLeft) {
  for_seeds(300, [](Random& random) {
    Pair pair = random_pair(random);
    auto again = pair.left;
    finish_if_offloaded(pair.left);
    EXPECT_EQ(pair.left, pair.right);
    const size_t padding = again.size() - udp_at - load_be<uint16_t>(&again[udp_at + 4]);
    finish_checksum(std::span(again).first(again.size() - padding), udp_at, 6);
    EXPECT_EQ(again, pair.right);
  });
}

TEST(FinishChecksum, LeavesRightAndWrongOnesAsTheyAre) {
  for_seeds(300, [](Random& random) {
    const Pair pair = random_pair(random);
    auto frame = pair.right;
    finish_if_offloaded(frame);
    EXPECT_EQ(frame, pair.right);
    // A wrong field is not made right, unless it is just what Linux leaves.
    store_be(&frame[udp_sum_at], static_cast<uint16_t>(load_be<uint16_t>(&pair.left[udp_sum_at]) + 1));
    const auto wrong = frame;
    finish_if_offloaded(frame);
    EXPECT_EQ(frame, wrong);
  });
}

TEST(FinishChecksum, PlacesOutsideOfTheFrameChangeNothing) {
  for_seeds(200, [](Random& random) {
    const packet::test::Guarded frame(packet::test::random_bytes(random, random.below(64)));
    const packet::FrameBytes before(frame.bytes().begin(), frame.bytes().end());
    const size_t start = random.below(80);
    const size_t offset = random.chance(1, 10) ? SIZE_MAX - random.below(4) : random.below(80);
    finish_checksum(frame.bytes(), start, offset);
    if (start + offset + 2 > before.size() || offset > 80) {
      EXPECT_TRUE(std::equal(before.begin(), before.end(), frame.bytes().begin()));
    }
  });
}

}  // namespace
}  // namespace spinloom::port
