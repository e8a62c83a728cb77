// Copies of all lengths, from and to all places.
#include "memory/peer/long_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace spinloom::peer {
namespace {

TEST(LongCopy, CopiesAllLengthsAndPlaces) {
  constexpr uint64_t most = 13 << 20;
  std::vector<uint8_t> from(most + 256), to(most + 256);
  for (uint64_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 131 + (i >> 13));
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{70'000}, most - 1, most}) {
    for (const uint64_t shift : {0u, 1u, 63u, 64u, 100u}) {
      std::fill(to.begin(), to.end(), uint8_t{0});
      copy_long(to.data() + shift, from.data() + 100 - shift, length);
      ASSERT_EQ(std::memcmp(to.data() + shift, from.data() + 100 - shift, length), 0) << length << " at " << shift;
      for (uint64_t i = 0; i < shift; ++i) ASSERT_EQ(to[i], 0);
      for (uint64_t i = shift + length; i < to.size(); i += i < shift + length + 64 ? 1 : 4096) ASSERT_EQ(to[i], 0);
    }
  }
}

}  // namespace
}  // namespace spinloom::peer
