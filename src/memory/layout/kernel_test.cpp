// Forcing a kernel set by name, and copies that the suite over all layouts does not make: within one array, and where
// packed order must be kept. Every set over all layouts is in copy_layouts_test.cpp and committed_layouts_test.cpp.
#include "memory/layout/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "memory/layout/committed.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/kernel_test.hpp"
#include "memory/layout/testing/forced_kernels.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::layout {
namespace {

constexpr int64_t guard = 128;

// A type in memory with guards around it.
struct Place {
  Place(Random& random, Type of, int64_t elements)
      : type(std::move(of)),
        count(elements),
        reach(oracle::reach(type, count)),
        base(guard - reach.first),
        bytes(noise(random, reach.last - reach.first + 2 * guard)) {}

  Type type;
  int64_t count;
  oracle::Reach reach;
  int64_t base;
  std::vector<std::byte> bytes;
};

TEST(Kernels, StructsWithinOneArrayAreAllReadBeforeAnyIsWritten) {
  const auto one =
      Committed::commit(test::must_parse("resized(0B, 32B, struct([(0B, int), (8B, contig(3, double))]))"));
  ASSERT_TRUE(one);
  Random random(7, "structs");
  std::vector<std::byte> memory = noise(random, 640);
  std::vector<std::byte> packed(280);
  ASSERT_TRUE(oracle::pack(one->type(), 10, memory.data(), packed));
  ASSERT_TRUE(copy({&*one, 10, memory.data()}, {&*one, 10, memory.data() + 32}));
  std::vector<std::byte> again(280);
  ASSERT_TRUE(oracle::pack(one->type(), 10, memory.data() + 32, again));
  EXPECT_EQ(again, packed);
}

TEST(Kernels, ACommittedTypeFollowsAForcedSet) {
  const auto one =
      Committed::commit(test::must_parse("resized(0B, 32B, struct([(0B, int), (8B, contig(3, double))]))"));
  ASSERT_TRUE(one);
  const test::ForcedKernels forced("walker");
  EXPECT_EQ(one->struct_array(1), nullptr);
}

TEST(Kernels, ForcingIsSeenInTheName) {
  const auto vector = Blob::build(test::must_parse("vector(100, 1, 2, double)"));
  const auto transpose = Blob::build(test::must_parse("contig(64, resized(0B, 4B, vector(64, 1, 64, float)))"));
  const auto list = Blob::build(test::must_parse("idxblock(1, [5, 0, 3], double)"));
  const auto runs = Blob::build(test::must_parse("indexed([0x1, 3x2, 9x1], double)"));
  const auto structs = Blob::build(test::must_parse("contig(9, resized(0B, 40B, struct([(0B, int), (8B, double)])))"));
  ASSERT_TRUE(vector && transpose && list && runs && structs);
  for (const KernelSet* set : kernel_sets()) {
    const test::ForcedKernels forced(set->name);
    EXPECT_EQ(kernel_name(*vector), text(set->name, " vector 8 B"));
    EXPECT_EQ(kernel_name(*transpose), text(set->name, " transpose 4 B"));
    EXPECT_EQ(kernel_name(*list), text(set->name, " list 8 B"));
    EXPECT_EQ(kernel_name(*structs), text(set->name, " structs 12 B"));
    EXPECT_EQ(kernel_name(*runs), text(set->name, " runs"));
  }
  const test::ForcedKernels forced("walker");
  EXPECT_EQ(kernel_name(*vector), "walker");
  EXPECT_EQ(kernels_if_any(), nullptr);
}

TEST(Kernels, AnUnknownNameIsAnErrorThatListsWhatRuns) {
  const auto wrong = force_kernels("sse9");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::invalid);
  EXPECT_NE(wrong.error().message.find("'sse9'"), std::string::npos) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("walker"), std::string::npos) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("portable"), std::string::npos) << wrong.error().message;
}

TEST(Kernels, OverlappingTargetsKeepPackedOrder) {
  // Rows that step over each other: the last writer in packed order wins, so nothing may be tiled or transposed.
  for (const char* source :
       {"hvector(8, 1, 8B, hvector(200, 1, 16B, double))", "hvector(9, 1, 4B, hvector(300, 1, 20B, float))"}) {
    const Type type = test::must_parse(source);
    const auto blob = Blob::build(type);
    ASSERT_TRUE(blob);
    Random random(7, "overlap");
    Place place(random, type, 1);
    const std::vector<std::byte> before = place.bytes;
    const std::vector<std::byte> packed = noise(random, type.size());
    ASSERT_TRUE(unpack(*blob, 1, place.bytes.data() + place.base, 0, type.size(), packed));
    const auto same = oracle::compare(type, 1, packed, place.bytes, place.base, before);
    EXPECT_TRUE(same) << same.error().message;
  }
}

}  // namespace
}  // namespace spinloom::layout
