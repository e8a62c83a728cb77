// Hashes of sequences of basic types, which do not depend on how a type is built.
#include "predict/trace/sequence.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"

namespace spinloom::trace {
namespace {

const Sequence integer = Sequence::basic("MPI_INT", 4);
const Sequence real = Sequence::basic("MPI_DOUBLE", 8);

TEST(Sequence, IsThatOfTheBasicTypesInTheirOrder) {
  // 2 x (3 x int) = 6 x int; (int, double) differs from (double, int), and from ints of the same bytes.
  EXPECT_EQ(integer.repeated(3).repeated(2).hash(), integer.repeated(6).hash());
  EXPECT_EQ((integer + integer).hash(), integer.repeated(2).hash());
  EXPECT_NE((integer + real).hash(), (real + integer).hash());
  EXPECT_NE((integer + real).hash(), integer.repeated(3).hash());
  EXPECT_NE(integer.hash(), Sequence::basic("MPI_FLOAT", 4).hash());
  EXPECT_NE(integer.repeated(2).hash(), integer.repeated(3).hash());
  EXPECT_EQ((integer + Sequence()).hash(), integer.hash());
  EXPECT_EQ((Sequence() + integer).hash(), integer.hash());
}

TEST(Sequence, OfAnUnknownTypeIsUnknown) {
  EXPECT_EQ((integer + Sequence::unknown()).hash(), 0U);
  EXPECT_EQ(Sequence::unknown().repeated(7).hash(), 0U);
  EXPECT_EQ(hash_of({"", 8, 8, {}, 0}, 3), 0U);
  EXPECT_EQ(hash_of({"", 12, 12, {}, integer.repeated(3).hash()}, 5), integer.repeated(15).hash());
}

// Random sequences, built in random groups: the same hash where the same sequence.
TEST(Sequence, DoesNotDependOnHowItIsBuilt) {
  Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Sequence> parts;
    Sequence flat;
    for (uint64_t i = random.below(12) + 1; i > 0; --i) {
      const Sequence& basic = random.chance(1, 2) ? integer : real;
      const auto times = static_cast<int64_t>(random.below(5));
      parts.push_back(basic.repeated(times));
      for (int64_t k = 0; k < times; ++k) flat = flat + basic;
    }
    while (parts.size() > 1) {
      const size_t at = random.below(parts.size() - 1);
      parts[at] = parts[at] + parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    EXPECT_EQ(parts[0].hash(), flat.hash());
  }
}

}  // namespace
}  // namespace spinloom::trace
