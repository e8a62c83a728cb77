// Blobs: round trips, sharing, and everything that validation must refuse.
#include "memory/layout/blob.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "memory/layout/cursor.hpp"
#include "memory/layout/plain_list.hpp"
#include "memory/layout/reciprocal.hpp"
#include "memory/layout/segment.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

std::vector<std::byte> copy_of(const Blob& blob) { return {blob.bytes().begin(), blob.bytes().end()}; }

TEST(Blob, RandomTypesRoundTrip) {
  test::for_seeds(2000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 400);
    SCOPED_TRACE(print(type));
    for (const Width width : {Width::narrow, Width::wide}) {
      const auto blob = Blob::build(type, {width, 1});
      ASSERT_TRUE(blob) << blob.error().message;
      EXPECT_EQ(blob->size(), type.size());
      EXPECT_EQ(blob->extent(), type.extent());
      EXPECT_EQ(blob->true_lb(), type.true_lb());
      EXPECT_EQ(blob->true_extent(), type.true_extent());
      const auto bytes = copy_of(*blob);
      const auto again = Blob::validate(bytes);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(copy_of(*again), bytes);
      const auto rebuilt = Blob::build(*parse(print(type)), {width, 1});
      ASSERT_TRUE(rebuilt);
      EXPECT_EQ(copy_of(*rebuilt), bytes);
    }
  });
}

struct Bounds {
  int64_t true_extent;
  int64_t outside = 0;
  int64_t bytes = 0;
};

void emit_narrow(void* context, int32_t offset, uint32_t, uint32_t bytes) {
  auto& bounds = *static_cast<Bounds*>(context);
  bounds.outside += offset < 0 || int64_t{offset} + bytes > bounds.true_extent ? 1 : 0;
  bounds.bytes += bytes;
}
void emit_wide(void* context, int64_t offset, uint64_t, uint64_t bytes) {
  auto& bounds = *static_cast<Bounds*>(context);
  bounds.outside += offset < 0 || offset + static_cast<int64_t>(bytes) > bounds.true_extent ? 1 : 0;
  bounds.bytes += static_cast<int64_t>(bytes);
}

// Runs every walker over one element.
void exercise(const Blob& blob) {
  constexpr int64_t bytes_max = 1 << 16;  // a mutated count may claim much
  const int64_t bytes = std::min(blob.size(), bytes_max);
  if (bytes == 0) return;
  const int64_t first = blob.size() - bytes;
  Bounds walked{blob.true_extent()};
  Bounds processed{blob.true_extent()};
  if (blob.is_narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &walked);
    spl_segment_narrow segment;
    spl_segment_init_narrow(&segment, blob.data());
    spl_segment_manipulate_narrow(&segment, blob.data(), 0, static_cast<uint32_t>(bytes), emit_narrow, &processed);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &walked);
    spl_segment_wide segment;
    spl_segment_init_wide(&segment, blob.data());
    spl_segment_manipulate_wide(&segment, blob.data(), 0, static_cast<uint64_t>(bytes), emit_wide, &processed);
  }
  EXPECT_EQ(walked.bytes, bytes);
  EXPECT_EQ(walked.outside, 0);
  EXPECT_EQ(processed.bytes, bytes);
  EXPECT_EQ(processed.outside, 0);
}

TEST(Blob, MutatedBlobsAreRefusedOrSafe) {
  int64_t refused = 0;
  int64_t accepted = 0;
  test::for_seeds(3000, [&](Random& random) {
    const Type type = test::random_type(random, random.between(1, 4), 200);
    const auto blob = Blob::build(type, {random.chance(1, 2) ? Width::narrow : Width::wide, 1});
    ASSERT_TRUE(blob);
    SCOPED_TRACE(print(type));
    for (int round = 0; round < 8; ++round) {
      auto bytes = copy_of(*blob);
      const uint64_t changes = 1 + random.below(3);
      for (uint64_t change = 0; change < changes; ++change) {
        const uint64_t at = random.below(bytes.size());
        switch (random.below(4)) {
          case 0: bytes[at] ^= static_cast<std::byte>(1u << random.below(8)); break;
          case 1: bytes[at] = static_cast<std::byte>(random.below(256)); break;
          case 2: bytes[at / 4 * 4] = static_cast<std::byte>(std::to_integer<int>(bytes[at / 4 * 4]) + 1); break;
          default: {  // a word from elsewhere in the blob: plausible values in wrong places
            const uint64_t from = random.below(bytes.size() / 4) * 4;
            std::memmove(&bytes[at / 4 * 4], &bytes[from], 4);
          }
        }
      }
      if (random.chance(1, 10)) bytes.resize(random.below(bytes.size() + 1));
      const auto read = Blob::validate(bytes);
      if (read) {
        ++accepted;
        exercise(*read);
      } else {
        ++refused;
        EXPECT_EQ(read.error().code, Code::invalid);
      }
    }
  });
  EXPECT_GT(refused, 0);
  if (std::getenv("SPINLOOM_TEST_SEED") == nullptr) {
    EXPECT_GT(accepted, 100);  // fewer would mean that the walkers were never tried on a foreign blob
  }
}

// Each single field that a walker relies on, changed by hand.
class BadField : public ::testing::Test {
 protected:
  static std::vector<std::byte> members() {
    auto blob = Blob::build(test::must_parse(
        "struct([(0B, vector(5, 1, 3, int)), (512B, idxblock(1, [0, 7, 3, 9], double)),"
        " (1024B, hindexed([0B x 1, 8B x 2, 40B x 5], int)), (4096B, hvector(3, 1, 400B, vector(5, 1, 3, int)))])"));
    EXPECT_TRUE(blob);
    return copy_of(*blob);
  }
  template <class T>
  static void put(std::vector<std::byte>& bytes, size_t at, T value) {
    std::memcpy(&bytes[at], &value, sizeof(value));
  }
  template <class T>
  static T get(const std::vector<std::byte>& bytes, size_t at) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof(value));
    return value;
  }
  static void refused(const std::vector<std::byte>& bytes, const char* because) {
    const auto read = Blob::validate(bytes);
    ASSERT_FALSE(read) << because;
    EXPECT_NE(read.error().message.find(because), std::string::npos) << read.error().message;
  }
  static constexpr size_t root = sizeof(spl_layout_header);
};

TEST_F(BadField, OfTheHeader) {
  const auto good = members();
  ASSERT_TRUE(Blob::validate(good));
  auto bytes = good;
  put<uint32_t>(bytes, offsetof(spl_layout_header, magic), 7);
  refused(bytes, "magic");
  bytes = good;
  put<uint16_t>(bytes, offsetof(spl_layout_header, version), 2);
  refused(bytes, "version 2");
  bytes = good;
  put<uint8_t>(bytes, offsetof(spl_layout_header, width), 16);
  refused(bytes, "width 16");
  bytes = good;
  put<uint8_t>(bytes, offsetof(spl_layout_header, depth), 1);
  refused(bytes, "depth");
  bytes = good;
  put<uint64_t>(bytes, offsetof(spl_layout_header, size), 4);
  refused(bytes, "reciprocal");
  bytes = good;
  put<uint64_t>(bytes, offsetof(spl_layout_header, true_extent), 100);
  refused(bytes, "true extent");
  bytes = good;
  put<int64_t>(bytes, offsetof(spl_layout_header, true_lb), INT64_MAX);
  refused(bytes, "true upper bound");
  bytes = good;
  put<uint32_t>(bytes, offsetof(spl_layout_header, nodes), 9);
  refused(bytes, "nodes");
  bytes = good;
  bytes.resize(bytes.size() - 8);
  refused(bytes, "length");
  bytes = good;
  bytes.resize(10);
  refused(bytes, "header");
}

TEST_F(BadField, OfMembers) {
  const auto good = members();
  const size_t table = root + sizeof(spl_node_narrow);
  auto bytes = good;
  put<uint32_t>(bytes, table + offsetof(spl_member_narrow, child), root);  // a cycle
  refused(bytes, "not a later node");
  bytes = good;
  put<uint32_t>(bytes, table + offsetof(spl_member_narrow, child), get<uint32_t>(good, table + 8) + 4);
  refused(bytes, "not a later node");
  bytes = good;
  put<uint32_t>(bytes, table + sizeof(spl_member_narrow) + offsetof(spl_member_narrow, start), 1);
  refused(bytes, "prefix sum");
  bytes = good;
  put<int32_t>(bytes, table + sizeof(spl_member_narrow), 1 << 20);
  refused(bytes, "true extent");
  bytes = good;
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, count), 3);
  refused(bytes, "table entries");
  bytes = good;
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, size), 3);
  refused(bytes, "size");
}

TEST_F(BadField, OfALoopWhoseBlocksAreNotItsChildren) {
  // A consistent but wrong blob: blocks of 16 B, 48 B in all, over a child of 20 B.
  const auto blob = Blob::build(test::must_parse("hvector(3, 1, 400B, vector(5, 1, 3, int))"));
  ASSERT_TRUE(blob);
  ASSERT_EQ(blob->root_kind(), SPL_NODE_LOOP);
  auto bytes = copy_of(*blob);
  const Reciprocal sixteen = Reciprocal::of(16, 32);
  const Reciprocal all = Reciprocal::of(48, 32);
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, block), 16);
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, reciprocal), static_cast<uint32_t>(sixteen.multiplier));
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, shift), sixteen.shift);
  put<uint32_t>(bytes, root + offsetof(spl_node_narrow, size), 48);
  put<uint64_t>(bytes, offsetof(spl_layout_header, size), 48);
  put<uint64_t>(bytes, offsetof(spl_layout_header, size_reciprocal), all.multiplier);
  put<uint32_t>(bytes, offsetof(spl_layout_header, size_shift), all.shift);
  refused(bytes, "not its child's size");
}

TEST(Blob, PlainListsAreWrittenAsTheNestIs) {
  // A struct of one member has the combiner of a list, but the normal form of its member.
  int64_t lists = 0;
  test::for_seeds(20000, [&](Random& random) {
    const Type type = test::random_type(random, random.between(1, 2), 400);
    if (!plain_list(type)) return;
    ++lists;
    const auto general = structure(std::vector<int64_t>{0}, {1}, {type});
    ASSERT_TRUE(general);
    for (const Width width : {Width::narrow, Width::wide}) {
      const auto straight = Blob::build(type, {width, 1});
      const auto normalised = Blob::build(*general, {width, 1});
      ASSERT_TRUE(straight && normalised);
      ASSERT_EQ(copy_of(*straight), copy_of(*normalised)) << print(type);
    }
  });
  EXPECT_GT(lists, std::getenv("SPINLOOM_TEST_SEED") == nullptr ? 2000 : -1);
}

TEST(Blob, LongListsOfWhichFewBlocksTouchStayLists) {
  std::vector<int64_t> few;  // every 32nd block touches the one before
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 40000; ++i) {
    few.push_back(i % 32 == 1 ? few.back() + 1 : 3 * i);
    many.push_back(i % 8 == 1 ? many.back() + 1 : 3 * i);
  }
  const Type item = *primitive("double");
  const auto as_list = indexed_block(1, few, item);
  const auto as_indexed = indexed(few, std::vector<int64_t>(few.size(), 1), item);
  const auto merging = indexed_block(1, many, item);
  ASSERT_TRUE(as_list && as_indexed && merging);
  const auto general = structure(std::vector<int64_t>{0}, {1}, {*as_list});
  ASSERT_TRUE(general);
  const auto straight = Blob::build(*as_list);
  const auto normalised = Blob::build(*general);
  const auto of_lengths = Blob::build(*as_indexed);
  const auto merged = Blob::build(*merging);
  ASSERT_TRUE(straight && normalised && of_lengths && merged);
  EXPECT_EQ(straight->root_kind(), SPL_LEAF_LIST);
  EXPECT_EQ(copy_of(*straight), copy_of(*normalised));
  EXPECT_EQ(copy_of(*straight), copy_of(*of_lengths));
  EXPECT_EQ(merged->root_kind(), SPL_LEAF_RUNS);
}

TEST(Blob, EqualSubtreesAreWrittenOnce) {
  const auto shared = Blob::build(test::must_parse(
      "struct([(0B, idxblock(1, rand(1, 1000, 500), double)), (8000B, idxblock(1, rand(1, 1000, 500), double)),"
      " (16000B, contig(4, double))])"));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->header().nodes, 3u);
  EXPECT_EQ(shared->root_kind(), SPL_NODE_MEMBERS);
  EXPECT_LT(shared->bytes().size(), 2500u);
}

TEST(Blob, EmptyTypesHaveABlob) {
  for (const char* source : {"contig(0, int)", "struct([])", "resized(-8B, 64B, vector(3, 0, 4, double))"}) {
    const auto blob = Blob::build(test::must_parse(source));
    ASSERT_TRUE(blob);
    EXPECT_EQ(blob->size(), 0);
    ASSERT_TRUE(Blob::validate(blob->bytes()));
    auto cursor = Cursor::open(*blob, 5);
    ASSERT_TRUE(cursor);
    EXPECT_EQ(cursor->next(10).bytes, 0);
    auto segment = Segment::open(*blob, 5);
    ASSERT_TRUE(segment);
    EXPECT_EQ(*segment->advance(0), 0);
  }
}

TEST(Blob, TheWorkedExampleOfTheFormatPage) {
  // docs/formats/layout.md shows these bytes.
  const auto blob = Blob::build(test::must_parse("vector(3, 2, 5, int)"));
  ASSERT_TRUE(blob);
  const std::vector<uint32_t> expected = {
      0x424c5053, 0x01200001, 112,
      1,                    // magic; version, width, depth; bytes; nodes
      24,         0,          0xaaaaaaab & 0xffffffff,
      0,                 // size, its reciprocal
      48,         0,          0,
      0,          48,         0,
      0,          0,                          // extent, true_lb, true_extent, origin
      5,          0,                                              // size_shift, reserved
      0,          3,          0,
      0,          3,          24,
      8,          0x80000000, 20,
      0,           // root: kind, shift, child, table, count, size, block, ...
  };
  ASSERT_EQ(blob->bytes().size(), expected.size() * 4);
  for (size_t i = 0; i < expected.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, blob->data() + 4 * i, 4);
    EXPECT_EQ(word, expected[i]) << "word " << i;
  }
}

TEST(Blob, TooDeepIsAnErrorThatNamesTheLimit) {
  Type type = *primitive("int");
  for (int level = 0; level < 20; ++level) type = *hvector(2, 1, int64_t{3} << (2 * level + 2), type);
  const auto blob = Blob::build(type);
  ASSERT_FALSE(blob);
  EXPECT_EQ(blob.error().code, Code::overflow);
  EXPECT_NE(blob.error().message.find("blob_depth_max"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::layout
