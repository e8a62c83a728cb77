// Tests of types made from blobs: such a type has the same map as the blob, and its blob has the same pieces.
#include "memory/layout/blob_type.hpp"

#include <gtest/gtest.h>

#include "memory/layout/oracle.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::layout {
namespace {

TEST(BlobType, RandomTypesComeBackWithTheirMap) {
  test::for_seeds(2000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 400);
    SCOPED_TRACE(print(type));
    for (const Width width : {Width::narrow, Width::wide}) {
      const auto blob = Blob::build(type, {width, 1});
      ASSERT_TRUE(blob) << blob.error().message;
      const auto found = type_of(*blob);
      ASSERT_TRUE(found) << found.error().message;
      SCOPED_TRACE(print(*found));
      EXPECT_EQ(found->size(), type.size());
      EXPECT_EQ(found->extent(), type.extent());
      EXPECT_EQ(found->true_lb(), type.true_lb());
      EXPECT_EQ(found->true_extent(), type.true_extent());
      std::vector<std::pair<int64_t, int64_t>> expected;
      std::vector<std::pair<int64_t, int64_t>> blocks;
      oracle::for_each_block(type, 2, [&](const oracle::Block& one) { expected.emplace_back(one.offset, one.bytes); });
      oracle::for_each_block(*found, 2, [&](const oracle::Block& one) { blocks.emplace_back(one.offset, one.bytes); });
      EXPECT_EQ(blocks, expected);
    }
  });
}

TEST(BlobType, ItIsShortWhereTheBlobIs) {
  const auto blob = Blob::build(*parse("vector(512, 16, 32, double)"));
  EXPECT_EQ(print(*type_of(*blob)), "hvector(512, 16, 256B, int64_t)");
}

}  // namespace
}  // namespace spinloom::layout
