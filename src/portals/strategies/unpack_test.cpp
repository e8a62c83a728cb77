// The host's unpack compared with the copy path, for types of every kind of node, word and alignment.
#include "portals/strategies/unpack.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::strategies {
namespace {

constexpr uint8_t untouched = 0xA5;

struct Case {
  const char* text;
  int64_t count;
  uint64_t in_vectors;
  uint64_t listed;
};

void expect_same_bytes(const Message& message, size_t shift) {
  std::vector<uint8_t> packed(static_cast<size_t>(message.bytes) + shift);
  Random random(7);
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(random.next());
  const auto span = static_cast<size_t>(message.reach.last - message.reach.first);
  std::vector<uint8_t> ours(span + shift, untouched);
  std::vector<uint8_t> theirs(span + shift, untouched);
  unpack(message, packed.data() + shift, ours.data() + shift);
  auto* const base = reinterpret_cast<std::byte*>(theirs.data() + shift) - message.blob.true_lb();
  const auto bytes = std::as_bytes(std::span(packed)).subspan(shift);
  ASSERT_TRUE(layout::unpack(message.blob, 1, base, 0, message.bytes, bytes));
  EXPECT_EQ(ours, theirs);
}

TEST(Unpack, EqualsTheCopyPathAndCountsItsBlocks) {
  const Case cases[] = {
      {"contig(100, double)", 1, 1, 0},
      {"vector(64, 1, 2, double)", 1, 64, 0},
      {"vector(64, 3, 5, float)", 2, 128, 0},
      {"hvector(50, 6, 11B, byte)", 1, 50, 0},
      {"hvector(50, 100, 300B, byte)", 1, 50, 0},
      {"hvector(9, 2, -30B, short)", 1, 9, 0},
      {"idxblock(2, [9, 1, 5], double)", 1, 0, 3},
      {"indexed([7 x 1, 0 x 2, 20 x 3], int)", 1, 0, 3},
      {"hvector(4, 1, 1000B, idxblock(1, [9, 1, 5], double))", 1, 0, 12},
      {"hvector(4, 1, 1000B, vector(5, 1, 3, double))", 1, 20, 0},
      {"hidxblock(1, [0B, 500B, 90B], vector(5, 1, 3, byte))", 1, 15, 0},
      {"struct([(0B, vector(5, 1, 3, double)), (400B, idxblock(1, [9, 1, 5], int))])", 1, 5, 3},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.text);
    const auto type = layout::parse(each.text);
    ASSERT_TRUE(type) << type.error().message;
    const auto message = make_message(*type, each.count);
    ASSERT_TRUE(message) << message.error().message;
    const portals::HostWork::Blocks blocks = count_blocks(message->blob);
    EXPECT_EQ(blocks.in_vectors, each.in_vectors);
    EXPECT_EQ(blocks.listed, each.listed);
    for (const size_t shift : {0, 1, 2, 4}) expect_same_bytes(*message, shift);
  }
}

TEST(Unpack, AnEmptyMessageHasNoBlocks) {
  const auto message = make_message(layout::parse("contig(0, double)").value(), 3);
  ASSERT_TRUE(message);
  const portals::HostWork::Blocks blocks = count_blocks(message->blob);
  EXPECT_EQ(blocks.in_vectors + blocks.listed, 0u);
  unpack(*message, nullptr, nullptr);
}

}  // namespace
}  // namespace spinloom::strategies
