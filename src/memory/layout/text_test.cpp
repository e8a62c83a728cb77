// The notation: round trips, positions of errors, limits.
#include <gtest/gtest.h>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

// Rules: LAY-58, LAY-65.
TEST(Text, PrintsWhatItParsed) {
  for (const char* source :
       {"int",
        "double_complex",
        "contig(6, float)",
        "vector(33, 1, 35, contig(5, double))",
        "hvector(2, 1, -6144B, byte)",
        "indexed([4 x 1, 0 x 2], double)",
        "hindexed([0B x 32, 17952B x 32], double)",
        "idxblock(3, [9, 0, -3], float)",
        "idxblock(1, rand(7, 3697, 493), float)",
        "hidxblock(1, range(0B, 16B, 10), float)",
        "hidxblock(2, [8B, 0B], int)",
        "struct([(0B, int), (8B, 3, contig(2, double))])",
        "struct([])",
        "resized(0B, 1024B, vector(4, 4, 16, byte))",
        "subarray([18, 18, 34], [16, 16, 1], [1, 1, 32], C, double)",
        "subarray([4], [2], [1], F, int)",
        "darray(4, 3, [10], [cyclic], [3], [4], C, int)",
        "dup(contig(2, int))",
        "darray(6, 1, [4, 9, 2], [none, block, cyclic], [default, 5, default], [1, 3, 2], F, double)",
        "indexed([], int)",
        "idxblock(1, range(0, 2, 8), int)"}) {
    EXPECT_EQ(print(test::must_parse(source)), source);
  }
}

// Rules: LAY-59.
TEST(Text, SpaceAndCommentsAreFree) {
  const Type type = test::must_parse("# WRF y\n  vector ( 3 ,1,\t-4, # stride\n float)  # end");
  EXPECT_EQ(print(type), "vector(3, 1, -4, float)");
  EXPECT_TRUE(test::must_parse("hindexed([0B x32, 17952 B x 32],double)")
                  .same(test::must_parse("hindexed([0B x 32, 17952B x 32], double)")));
}

// Rules: LAY-14, LAY-65.
TEST(Text, RandomTypesRoundTrip) {
  test::for_seeds(2000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 6), 400);
    const std::string printed = print(type);
    const auto again = parse(printed);
    ASSERT_TRUE(again) << printed << ": " << again.error().message;
    EXPECT_TRUE(again->same(type)) << printed;
    EXPECT_EQ(print(*again), printed);
    EXPECT_EQ(test::byte_map(*again, 2), test::byte_map(type, 2));
  });
}

TEST(Text, SameTellsTypesApart) {
  const char* sources[] = {"int",
                           "float",
                           "contig(2, int)",
                           "contig(3, int)",
                           "vector(2, 1, 2, int)",
                           "hvector(2, 1, 8B, int)",
                           "idxblock(1, [0, 2], int)",
                           "idxblock(1, range(0, 2, 2), int)",
                           "indexed([0 x 1, 2 x 1], int)",
                           "resized(0B, 8B, int)",
                           "resized(0B, 12B, int)",
                           "subarray([4, 4], [2, 2], [0, 0], C, int)",
                           "subarray([4, 4], [2, 2], [0, 0], F, int)",
                           "struct([(0B, int), (4B, int)])",
                           "struct([(0B, int), (4B, float)])"};
  for (const char* a : sources) {
    for (const char* b : sources) EXPECT_EQ(test::must_parse(a).same(test::must_parse(b)), a == b) << a << " " << b;
  }
}

struct Wrong {
  const char* source;
  Code code;
  const char* message;
};

class TextError : public ::testing::TestWithParam<Wrong> {};

// Rules: LAY-58, LAY-63, LAY-66, LAY-68.
TEST_P(TextError, SaysWhereAndWhat) {
  const auto type = parse(GetParam().source);
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, GetParam().code);
  EXPECT_NE(type.error().message.find(GetParam().message), std::string::npos) << type.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Messages, TextError,
    ::testing::Values(
        Wrong{"", Code::invalid, "line 1, column 1: expected a type, found the end of the text"},
        Wrong{"vector(3, 1, 4 float)", Code::invalid, "line 1, column 16: expected ',', found 'float'"},
        Wrong{"vector(3, 1,\n  x, float)", Code::invalid, "line 2, column 3: expected a stride in elements, found 'x'"},
        Wrong{"hvector(3, 1, 4, float)", Code::invalid, "column 16: expected 'B' behind a number of bytes, found ','"},
        Wrong{"contig(3, int) int", Code::invalid, "column 16: expected the end of the text, found 'int'"},
        Wrong{"contig(3, int", Code::invalid, "expected ')', found the end of the text"},
        Wrong{"contig(3, imt)", Code::invalid, "column 11: expected a type, found 'imt'"},
        Wrong{"contig(3, doubel)", Code::invalid, "'doubel' is no primitive type; did you mean 'double'?"},
        Wrong{"float64", Code::invalid, "did you mean 'double'?"},
        Wrong{"MPI_DOUBLE", Code::invalid, "did you mean 'double'?"},
        Wrong{"MPI_UNSIGNED_LONG", Code::invalid, "did you mean 'unsigned_long'?"},
        Wrong{"int32", Code::invalid, "did you mean 'int32_t'?"},
        Wrong{"frobnicate", Code::invalid, "known are byte, char, int"},
        Wrong{"vectr(3, 1, 4, int)", Code::invalid,
              "line 1, column 1: expected a type, found 'vectr'; did you mean 'vector'?"},
        Wrong{"contig(2, contiguous(3, int))", Code::invalid,
              "column 11: expected a type, found 'contiguous'; did you"},
        Wrong{"frobnicate (3, int)", Code::invalid, "found 'frobnicate'; there are: contig, vector, hvector, indexed"},
        Wrong{"imt (3)", Code::invalid, "found 'imt'; there are: contig"},
        Wrong{"contig(-3, int)", Code::invalid, "column 1: in contig: count is -3"},
        Wrong{"idxblock(1, rant(1, 2, 3), int)", Code::invalid, "column 13: expected a list"},
        Wrong{"idxblock(1, rand(1, 2, 3), int)", Code::invalid, "in rand: rand(1, 2, 3)"},
        Wrong{"subarray([4], [2], [1], D, int)", Code::invalid, "the order: C or F, found 'D'"},
        Wrong{"contig(99999999999999999999, int)", Code::overflow, "column 8: 99999999999999999999 does not fit"},
        Wrong{"contig(2, contig(9223372036854775807, int))", Code::overflow, "column 11: in contig:"},
        Wrong{"idxblock(1, range(0, 1, 99999999999), int)", Code::overflow, "type_list_max"},
        Wrong{"darray(4, 0, [4], [blok], [1], [4], C, int)", Code::invalid, "column 20: expected a distribution"},
        Wrong{"darray(4, 0, [4], [block], [none], [4], C, int)", Code::invalid, "expected a number or default"},
        Wrong{"darray(4, 0, [4], [block], [0], [4], C, int)", Code::invalid, "at least 1 or default"},
        Wrong{"darray(4, 4, [4], [block], [1], [4], C, int)", Code::invalid, "rank 4 of 4 processes"},
        Wrong{"dup(int, int)", Code::invalid, "expected ')', found ','"},
        Wrong{"contig(2, \x01)", Code::invalid, "found byte 1"}));

TEST(Text, TheBeginningOfAPrintIsThatOfThePrint) {
  test::for_seeds(200, [](Random& random) {
    const Type type = test::random_type(random, 3, 200);
    const std::string whole = print(type);
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{20}, whole.size(), whole.size() + 1}) {
      EXPECT_EQ(print_beginning(type, bytes), whole.substr(0, bytes));
    }
  });
}

// Rules: LAY-67.
TEST(Text, HostileDepthIsAnError) {
  std::string source;
  for (int level = 0; level < 100000; ++level) source += "contig(1, ";
  const auto type = parse(source);
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, Code::overflow);
  EXPECT_NE(type.error().message.find("type_depth_max"), std::string::npos);
}

// Rules: LAY-66.
TEST(Text, MutatedTextsNeverCrash) {
  int64_t accepted = 0;
  int64_t refused = 0;
  test::for_seeds(3000, [&](Random& random) {
    std::string source = print(test::random_type(random, 3, 200));
    for (uint64_t change = 0; change <= random.below(3); ++change) {
      const size_t at = random.below(source.size());
      switch (random.below(3)) {
        case 0: source[at] = "()[],xB0123456789-abc# \n"[random.below(24)]; break;
        case 1: source.erase(at, 1); break;
        default: source.insert(at, source.substr(random.below(source.size()), random.below(6)));
      }
      if (source.empty()) source = "int";
    }
    const auto type = parse(source);
    if (type) {
      ++accepted;
      EXPECT_TRUE(parse(print(*type))->same(*type)) << source;
    } else {
      ++refused;
      EXPECT_FALSE(type.error().message.empty());
    }
  });
  if (std::getenv("SPINLOOM_TEST_SEED") == nullptr) {
    EXPECT_GT(accepted, 50);
    EXPECT_GT(refused, 50);
  }
}

}  // namespace
}  // namespace spinloom::layout
