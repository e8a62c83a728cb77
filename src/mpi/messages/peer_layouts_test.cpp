// Layouts of peers: each sender has its own numbers, and the one that was not asked for longest makes room.
#include "mpi/messages/peer_layouts.hpp"

#include <gtest/gtest.h>

#include "memory/layout/blob.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::mpi {
namespace {

layout::Blob blob_of(int64_t count) {
  return *layout::Blob::build(*layout::vector(count, 1, 3, *layout::primitive("int32_t")));
}

TEST(PeerLayouts, EachSenderNumbersItsOwn) {
  PeerLayouts layouts;
  const layout::Blob small = blob_of(3);
  const layout::Blob large = blob_of(5);
  ASSERT_TRUE(layouts.learn(0, 7, small.bytes()));
  EXPECT_FALSE(layouts.find(1, 7));
  EXPECT_FALSE(layouts.find(0, 8));
  ASSERT_TRUE(layouts.learn(1, 7, large.bytes()));
  EXPECT_EQ(layouts.find(0, 7)->size(), small.size());
  EXPECT_EQ(layouts.find(1, 7)->size(), large.size());
  EXPECT_EQ(layouts.size(), 2U);
}

TEST(PeerLayouts, TheOneThatWasNotAskedForLongestGoes) {
  PeerLayouts layouts;
  const layout::Blob blob = blob_of(3);
  for (uint64_t number = 0; number < PeerLayouts::most; ++number) ASSERT_TRUE(layouts.learn(0, number, blob.bytes()));
  EXPECT_TRUE(layouts.find(0, 0));
  ASSERT_TRUE(layouts.learn(0, PeerLayouts::most, blob.bytes()));
  EXPECT_EQ(layouts.size(), PeerLayouts::most);
  EXPECT_TRUE(layouts.find(0, 0));
  EXPECT_FALSE(layouts.find(0, 1));
  EXPECT_TRUE(layouts.find(0, PeerLayouts::most));
}

}  // namespace
}  // namespace spinloom::mpi
