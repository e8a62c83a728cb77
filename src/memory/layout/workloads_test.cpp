// Datatypes of published applications: sizes, blocks, extents and regions per 2 KiB packet, computed
// independently and checked against two MPI libraries; and the normal form that each must reach.
// Sources: DDTBench (Schneider, Gerstenberger, Hoefler, EuroMPI 2012), LLNL Comb 0.3.1, sw4lite, FPsPIN.
#include <gtest/gtest.h>

#include <algorithm>

#include "memory/layout/blob.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

struct Row {
  const char* name;
  std::string source;
  int64_t size, blocks, block_min, block_max, true_extent, extent;
  int64_t regions_hundredths;  // regions per 2 KiB packet
  std::string normal;          // the nest behind its displacement
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

// One DDTBench WRF message: 4 arrays of 2D, 3 of 3D and 2 of 4D, laid end to end; n elements from the fastest.
std::string wrf(int64_t d1, int64_t d2, int64_t d3, int64_t s1, int64_t s2, int64_t s3, int64_t i0, int64_t k0,
                int64_t j0, bool as_subarrays) {
  std::string out = "struct([";
  int64_t array = 0;
  for (int member = 0; member < 9; ++member) {
    const int64_t plane = d1 * d2;
    int64_t at = array;
    std::string type;
    if (member < 4) {
      type = as_subarrays ? text("subarray([", d3, ",", d1, "],[", s3, ",", s1, "],[", j0, ",", i0, "], C, float)")
                          : text("vector(", s3, ",", s1, ",", d1, ", float)");
      if (!as_subarrays) at += 4 * (i0 + d1 * j0);
      array += 4 * d1 * d3;
    } else {
      const int64_t slots = member < 7 ? 1 : 2;  // the 4D arrays hold two slabs, the second one is sent
      type = text("hvector(", s3, ",1,", 4 * plane, "B, vector(", s2, ",", s1, ",", d1, ", float))");
      if (as_subarrays && slots == 1) {
        type = text("subarray([", d3, ",", d2, ",", d1, "],[", s3, ",", s2, ",", s1, "],[", j0, ",", k0, ",", i0,
                    "], C, float)");
      } else if (as_subarrays) {
        type = text("subarray([2,", d3, ",", d2, ",", d1, "],[1,", s3, ",", s2, ",", s1, "],[1,", j0, ",", k0, ",", i0,
                    "], C, float)");
      } else {
        at += 4 * (i0 + d1 * (k0 + d2 * (j0 + d3 * (slots - 1))));
        if (slots == 2) type = text("hvector(1,1,", 4 * plane * d3, "B, ", type, ")");
      }
      array += 4 * plane * d3 * slots;
    }
    out += text(member == 0 ? "" : ", ", "(", at, "B, ", type, ")");
  }
  return out + "])";
}

std::string milc(int64_t d1, int64_t d2, int64_t d3, int64_t d4) {
  return text("hvector(2, 1, ", 12 * d1 * d2 * d3 * d4, "B, vector(", d4, ", ", d1 * d2 / 2, ", ", d1 * d2 * d3 / 2,
              ", contig(6, float)))");
}

std::string fft_receive(int64_t n, int64_t b) {
  return text("contig(", b, ", resized(0B, 16B, vector(", b, ", 1, ", n, ", contig(2, double))))");
}

std::string face(const char* subsizes, const char* starts) {
  return text("subarray([102, 102, 102], ", subsizes, ", ", starts, ", F, double)");
}

std::string lu(int64_t n) { return text("vector(", n, ", 1, ", n + 2, ", contig(5, double))"); }

const std::vector<Row> rows = {
    {"milc 16", milc(16, 16, 16, 16), 98304, 32, 3072, 3072, 1526784, 1526784, 133,
     "vector(32, 3072 B, stride 49152 B)"},
    {"milc 8 16", milc(8, 16, 16, 16), 49152, 32, 1536, 1536, 763392, 763392, 200,
     "vector(32, 1536 B, stride 24576 B)"},
    {"milc 8", milc(8, 8, 8, 8), 12288, 16, 768, 768, 92928, 92928, 333, "vector(16, 768 B, stride 6144 B)"},
    {"milc E", milc(128, 128, 64, 64), 25165824, 128, 196608, 196608, 1598226432, 1598226432, 100,
     "vector(128, 196608 B, stride 12582912 B)"},
    {"lu x", "contig(60, double)", 480, 1, 480, 480, 480, 480, 100, "run(480 B)"},
    {"lu y S", lu(12), 480, 12, 40, 40, 6200, 6200, 1200, "vector(12, 40 B, stride 560 B)"},
    {"lu y C", lu(162), 6480, 162, 40, 40, 1056200, 1056200, 4125, "vector(162, 40 B, stride 6560 B)"},
    {"lu y E", lu(1020), 40800, 1020, 40, 40, 41656760, 41656760, 5180, "vector(1020, 40 B, stride 40880 B)"},
    {"mg x S", "hvector(16, 1, 4896B, vector(16, 1, 34, double))", 2048, 256, 8, 8, 77528, 77528, 25600,
     "loop(16, stride 4896 B, vector(16, 8 B, stride 272 B))"},
    {"mg x W", "hvector(64, 1, 68640B, vector(64, 1, 130, double))", 32768, 4096, 8, 8, 4389848, 4389848, 25600,
     "loop(64, stride 68640 B, vector(64, 8 B, stride 1040 B))"},
    {"mg y S", "vector(16, 32, 612, double)", 4096, 16, 256, 256, 73696, 73696, 800,
     "vector(16, 256 B, stride 4896 B)"},
    {"mg z C", "vector(256, 512, 514, double)", 1048576, 256, 4096, 4096, 1052656, 1052656, 100,
     "vector(256, 4096 B, stride 4112 B)"},
    {"specfem mt", "vector(7600, 1, 2, contig(3, float))", 91200, 7600, 12, 12, 182388, 182388, 16956,
     "vector(7600, 12 B, stride 24 B)"},
    {"fft send", "resized(0B, 2048B, vector(128, 128, 256, contig(2, double)))", 262144, 128, 2048, 2048, 522240, 2048,
     100, "vector(128, 2048 B, stride 4096 B)"},
    {"fft receive", fft_receive(256, 128), 262144, 16384, 16, 16, 522240, 2048, 12800,
     "loop(128, stride 16 B, vector(128, 16 B, stride 4096 B))"},
    {"fft receive 20480", fft_receive(20480, 80), 102400, 6400, 16, 16, 25888000, 1280, 12800,
     "loop(80, stride 16 B, vector(80, 16 B, stride 327680 B))"},
    {"comb x", face("[1, 100, 100]", "[1, 1, 1]"), 80000, 10000, 8, 8, 8320760, 8489664, 25000,
     "loop(100, stride 83232 B, vector(100, 8 B, stride 816 B))"},
    {"comb y", face("[100, 1, 100]", "[1, 1, 1]"), 80000, 100, 800, 800, 8240768, 8489664, 345,
     "vector(100, 800 B, stride 83232 B)"},
    {"comb z", face("[100, 100, 1]", "[1, 1, 1]"), 80000, 100, 800, 800, 81584, 8489664, 345,
     "vector(100, 800 B, stride 816 B)"},
    {"comb edge z", face("[1, 1, 100]", "[1, 1, 1]"), 800, 100, 8, 8, 8239976, 8489664, 10000,
     "vector(100, 8 B, stride 83232 B)"},
    {"comb edge x", face("[100, 1, 1]", "[1, 1, 1]"), 800, 1, 800, 800, 800, 8489664, 100, "run(800 B)"},
    {"comb corner", face("[1, 1, 1]", "[1, 1, 1]"), 8, 1, 8, 8, 8, 8489664, 100, "run(8 B)"},
    {"comb x ghost 2", "subarray([104, 104, 104], [2, 100, 100], [2, 2, 2], F, double)", 160000, 10000, 16, 16, 8648656,
     8998912, 12658, "loop(100, stride 86528 B, vector(100, 16 B, stride 832 B))"},
    {"sw4 x", "vector(35088, 6, 204, double)", 1684224, 35088, 48, 48, 57262032, 57262032, 4330,
     "vector(35088, 48 B, stride 1632 B)"},
    {"sw4 y", "vector(516, 408, 13872, double)", 1684224, 516, 3264, 3264, 57155904, 57155904, 161,
     "vector(516, 3264 B, stride 110976 B)"},
    {"sw4 x slow", "vector(42000, 2, 155, double)", 672000, 42000, 16, 16, 52078776, 52078776, 12766,
     "vector(42000, 16 B, stride 1240 B)"},
    {"falcon vector", "vector(16384, 128, 256, char)", 2097152, 16384, 128, 128, 4194176, 4194176, 1600,
     "vector(16384, 128 B, stride 256 B)"},
    {"fpspin simple", "contig(27648, float)", 110592, 1, 110592, 110592, 110592, 110592, 100, "run(110592 B)"},
    {"fpspin complex",
     "hvector(2,1,18432B, hvector(2,1,12288B, hvector(2,1,6144B, vector(32,6,8, contig(18, float)))))", 110592, 256,
     432, 432, 55152, 55152, 570, "loop(2, stride 18432 B, loop(4, stride 6144 B, vector(32, 432 B, stride 576 B)))"},
    {"milc negative", "hvector(2,1,-6144B, vector(32,2,8, contig(6, float)))", 3072, 64, 48, 48, 12144, 12144, 3250,
     "loop(2, stride -6144 B, vector(32, 48 B, stride 192 B))"},
    {"lu rhs", "hvector(2,1,40B, hvector(64,1,51840B, vector(32,5,180, double)))", 163840, 4096, 40, 40, 3310640,
     3310640, 5200, "loop(2, stride 40 B, loop(64, stride 51840 B, vector(32, 40 B, stride 1440 B)))"},
    {"lu hindexed", "hindexed([0B x32, 17952B x32], double)", 512, 2, 256, 256, 18208, 18208, 200,
     "vector(2, 256 B, stride 17952 B)"},
    {"pencil send", "subarray([64, 64, 256], [64, 64, 64], [0, 0, 0], C, double_complex)", 4194304, 4096, 1024, 1024,
     16774144, 16777216, 200, "vector(4096, 1024 B, stride 4096 B)"},
    {"pencil receive", "subarray([256, 64, 64], [64, 64, 64], [0, 0, 0], C, double_complex)", 4194304, 1, 4194304,
     4194304, 4194304, 16777216, 100, "run(4194304 B)"},
};

class Workload : public ::testing::TestWithParam<Row> {};

void expect_regions(const Type& type, int64_t hundredths) {
  const auto regions = oracle::regions_per_packet(type, 1, 2048);
  EXPECT_EQ((200 * regions.regions + regions.packets) / (2 * regions.packets), hundredths);
}

TEST_P(Workload, HasThePublishedShape) {
  const Row& row = GetParam();
  const Type type = test::must_parse(row.source);
  EXPECT_EQ(type.size(), row.size);
  EXPECT_EQ(type.true_extent(), row.true_extent);
  EXPECT_EQ(type.extent(), row.extent);
  const auto summary = oracle::summarise(type, 1);
  EXPECT_EQ(summary.blocks, row.blocks);
  EXPECT_EQ(summary.bytes_min, row.block_min);
  EXPECT_EQ(summary.bytes_max, row.block_max);
  expect_regions(type, row.regions_hundredths);
  const PlacedNest normal = normalise(type);
  EXPECT_EQ(describe({0, normal.nest}), "0 + " + row.normal);
  const auto blob = Blob::build(type);
  ASSERT_TRUE(blob);
  EXPECT_TRUE(blob->is_narrow());
}

INSTANTIATE_TEST_SUITE_P(Rows, Workload, ::testing::ValuesIn(rows));

struct WrfRow {
  int64_t d1, d2, d3, s1, s2, s3, i0, k0, j0;
  int64_t size, blocks, block, regions_hundredths;
};

TEST(Workload, WrfMembersAreOneLevelVectors) {
  const WrfRow wrf_rows[] = {
      {32, 65, 52, 23, 65, 3, 5, 0, 7, 90804, 987, 92, 2289},
      {27, 65, 41, 19, 65, 3, 4, 0, 7, 75012, 987, 76, 2762},
      {24, 65, 34, 16, 65, 3, 4, 0, 7, 63168, 987, 64, 3184},
      {22, 65, 30, 14, 65, 3, 4, 0, 7, 55272, 987, 56, 3741},
      {19, 65, 24, 11, 65, 3, 4, 0, 7, 43428, 987, 44, 4577},
      {32, 65, 52, 3, 65, 44, 22, 0, 4, 173712, 14476, 12, 17096},
      {24, 65, 34, 3, 65, 26, 14, 0, 4, 102648, 8554, 12, 16839},
      {19, 65, 24, 3, 65, 16, 9, 0, 4, 63168, 5264, 12, 17045},
      {1033, 65, 24, 1025, 65, 3, 4, 0, 7, 4046700, 987, 4100, 150},
  };
  for (const WrfRow& row : wrf_rows) {
    const auto source = [&](bool as_subarrays) {
      return wrf(row.d1, row.d2, row.d3, row.s1, row.s2, row.s3, row.i0, row.k0, row.j0, as_subarrays);
    };
    const Type vectors = test::must_parse(source(false));
    const Type subarrays = test::must_parse(source(true));
    for (const Type& type : {vectors, subarrays}) {
      EXPECT_EQ(type.size(), row.size);
      const auto summary = oracle::summarise(type, 1);
      EXPECT_EQ(summary.blocks, row.blocks);
      EXPECT_EQ(summary.bytes_min, row.block);
      EXPECT_EQ(summary.bytes_max, row.block);
      expect_regions(type, row.regions_hundredths);
      const PlacedNest normal = normalise(type);
      ASSERT_EQ(normal.nest->kind, NestKind::members);
      ASSERT_EQ(normal.nest->count, 9);
      for (const NestPtr& member : normal.nest->children) {
        EXPECT_EQ(member->kind, NestKind::vector);
        EXPECT_EQ(member->block, row.block);
        EXPECT_EQ(member->stride, 4 * row.d1);
      }
    }
    EXPECT_EQ(test::byte_map(vectors, 1), test::byte_map(subarrays, 1));
  }
}

TEST(Workload, LammpsIsAStructOfIndexLists) {
  // 2 processes: n = 3062 of N = 3534 atoms; x, tag, type, mask, charge, molecule share one list.
  const auto send = [](int64_t n, int64_t atoms, int scalars) {
    std::string out = text("struct([(0B, idxblock(1, rand(1, ", atoms, ", ", n, "), contig(3, double)))");
    for (int i = 0; i < scalars; ++i) {
      out += text(", (", (3 + i) * 8 * atoms, "B, idxblock(1, rand(1, ", atoms, ", ", n, "), double))");
    }
    return test::must_parse(out + "])");
  };
  const Type full = send(3062, 3534, 5);
  EXPECT_EQ(full.size(), 195968);
  const auto summary = oracle::summarise(full, 1);
  EXPECT_LE(summary.blocks, 18372);       // pieces before merging
  EXPECT_GT(summary.blocks, 18372 - 60);  // list neighbours are memory neighbours about once a list
  EXPECT_EQ(summary.bytes_min, 8);
  const PlacedNest normal = normalise(full);
  ASSERT_EQ(normal.nest->kind, NestKind::members);
  EXPECT_EQ(normal.nest->count, 6);
  for (const NestPtr& member : normal.nest->children) EXPECT_EQ(member->depth, 1);
  const auto blob = Blob::build(full);
  ASSERT_TRUE(blob);
  EXPECT_EQ(blob->header().nodes, 3u);  // the struct, the list of positions, the list that five share
  EXPECT_EQ(send(243, 4084, 3).size(), 11664);
  EXPECT_FALSE(*oracle::overlaps(full, 1));
}

TEST(Workload, SpecfemIsAnIndexList) {
  const Type oc = test::must_parse("idxblock(1, rand(1, 88881, 3225), float)");
  EXPECT_EQ(oc.size(), 12900);
  const auto summary = oracle::summarise(oc, 1);
  EXPECT_GT(summary.blocks, 3215);
  EXPECT_LE(summary.blocks, 3225);
  const Type cm = test::must_parse(
      "struct([(0B, idxblock(1, rand(1, 834917, 11797), contig(3, float))),"
      " (10019004B, idxblock(1, rand(2, 51153, 3009), contig(3, float)))])");
  EXPECT_EQ(cm.size(), 177672);
  EXPECT_GT(oracle::summarise(cm, 1).blocks, 14796);
  EXPECT_LE(oracle::summarise(cm, 1).blocks, 14806);
}

TEST(Workload, ComplexOverlapsItselfWithinAnElementOnly) {
  // 110,592 packed bytes land on 52,272 distinct ones inside an extent of 55,152.
  const Type type = test::must_parse(rows[28].source);
  ASSERT_STREQ(rows[28].name, "fpspin complex");
  EXPECT_TRUE(*oracle::overlaps(type, 1));
  auto map = test::byte_map(type, 1);
  std::sort(map.begin(), map.end());
  EXPECT_EQ(std::unique(map.begin(), map.end()) - map.begin(), 52272);
}

}  // namespace
}  // namespace spinloom::layout
