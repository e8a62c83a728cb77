// The kernels' source over the host shim: all layouts by every kernel, and which kernel is chosen.
#include "memory/gpu/shim.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/gpu/kernel_bodies.h"
#include "memory/gpu/program_body.hpp"
#include "memory/gpu/testing/moves.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

using layout::Blob;
using layout::Type;
using layout::test::must_parse;

Status on_host(const Program& program, std::span<const Ends> ends, test::Memory&) { return run_on_host(program, ends); }

SPINLOOM_LAYOUT_SUITE(ShimLayouts, test::layout_ways(on_host, 120));

std::string kernel_of(const Message& message) { return Program::make({&message, 1}).value().kernel_name(); }

struct Shape {
  const char* type;
  int64_t count;
  const char* kernel;
};

// The shapes that the kernels are made for: the right kernel is chosen, and moves the right bytes.
TEST(Shim, ChoosesKernelsByShape) {
  const Shape shapes[] = {
      {"vector(1000, 4, 9, double)", 1, "word"},
      {"hvector(64, 64, 128B, byte)", 3, "word"},
      {"hvector(32, 1001, 1200B, byte)", 2, "warp"},
      {"hvector(300, 1, 8B, hvector(300, 1, 2400B, double))", 1, "tile"},
      {"resized(0B, 4B, vector(400, 1, 350, float))", 350, "tile"},
      {"resized(0B, 12B, hvector(220, 12, 2640B, byte))", 220, "tile"},
      {"resized(0B, 1B, hvector(800, 1, 700B, byte))", 700, "tile"},
      // Short ones, which the cache holds.
      {"hvector(100, 1, 8B, hvector(100, 1, 800B, double))", 1, "word"},
      {"resized(0B, 4B, vector(90, 1, 70, float))", 70, "word"},
      {"resized(0B, 12B, hvector(40, 12, 480B, byte))", 40, "word"},
      {"resized(0B, 1B, hvector(150, 1, 333B, byte))", 333, "word"},
      {"idxblock(1, rand(5, 5000, 2000), double)", 1, "word"},
      {"hindexed([0B x 3, 40B x 1, 100B x 7, 180B x 2, 300B x 9, 400B x 1], int)", 40, "word"},  // a list
      {"hindexed([0B x 3, 40B x 1, 100B x 7, 180B x 2, 300B x 9, 400B x 1], int)", 4000, "pieces"},
      {"struct([(0B, int), (8B, double)])", 100, "word"},
      {"struct([(0B, int), (8B, double), (16B, 3, short)])", 100, "pieces"},
      {"subarray([20, 30, 40], [5, 6, 7], [1, 2, 3], C, double)", 2, "word"},
      {"contig(5000, int)", 3, "word"},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.type);
    const Type type = must_parse(shape.type);
    EXPECT_EQ(kernel_of({Side::of(*Blob::build(type), shape.count), Side::packed()}), shape.kernel);
    const layout::test::Side side{type, shape.count};
    EXPECT_EQ(layout::test::hold_move(test::layout_way("", on_host), side, {}), "");
    EXPECT_EQ(layout::test::hold_move(test::layout_way("", on_host), {}, side), "");
  }
}

// Types of the same bytes on both ends: common levels, the same turns, or pieces of both.
TEST(Shim, CopiesBetweenLayouts) {
  const struct {
    const char* from;
    int64_t from_count;
    const char* to;
    int64_t to_count;
    const char* kernel;
  } pairs[] = {
      {"vector(60, 4, 9, double)", 2, "vector(30, 8, 20, double)", 2, "word"},
      {"vector(64, 1, 64, double)", 1, "contig(64, double)", 1, "word"},
      {"hvector(64, 1, 8B, hvector(64, 1, 512B, double))", 1, "vector(64, 64, 70, double)", 1, "word"},
      {"hvector(300, 1, 8B, hvector(300, 1, 2400B, double))", 1, "vector(300, 300, 310, double)", 1, "tile"},
      {"idxblock(2, rand(3, 500, 20), int)", 1,
       "idxblock(2, [0, 9, 4, 30, 15, 21, 40, 50, 33, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160], int)", 1,
       "word"},
      {"idxblock(3, rand(3, 500, 100), int)", 1, "vector(60, 5, 7, int)", 1, "word"},
      {"idxblock(3, rand(3, 90000, 30000), int)", 1, "vector(18000, 5, 7, int)", 1, "pieces"},
      {"struct([(0B, vector(50, 2, 5, double)), (5000B, vector(9, 1, 3, int))])", 1,
       "struct([(8B, vector(50, 2, 7, double)), (9000B, vector(9, 1, 2, int))])", 1, "word"},
      {"struct([(0B, int), (8B, double)])", 24, "hindexed([0B x 5, 40B x 31], double)", 1, "word"},
  };
  for (const auto& pair : pairs) {
    SCOPED_TRACE(text(pair.from, " to ", pair.to));
    const Type from = must_parse(pair.from);
    const Type to = must_parse(pair.to);
    EXPECT_EQ(kernel_of({Side::of(*Blob::build(from), pair.from_count), Side::of(*Blob::build(to), pair.to_count)}),
              pair.kernel);
    for (const std::string_view kernel : {"", "walk"}) {
      EXPECT_EQ(
          layout::test::hold_move(test::layout_way(kernel, on_host), {from, pair.from_count}, {to, pair.to_count}), "");
    }
  }
}

// A set: 26 faces, edges and corners of a cube, packed one behind the other by one program.
TEST(Shim, MovesASetOfMessages) { test::check_halo(10, "", on_host); }

TEST(Shim, MovesASetOfManyPairs) { test::check_pairs(40, on_host); }

TEST(Program, SaysWhatIsWrong) {
  const layout::Blob blob = *layout::Blob::build(must_parse("vector(4, 1, 2, int)"));
  const Message both_packed{Side::packed(), Side::packed()};
  EXPECT_EQ(Program::make({&both_packed, 1}).error().code, Code::invalid);
  const Message unequal{Side::of(blob, 2), Side::of(blob, 3)};
  EXPECT_NE(Program::make({&unequal, 1}).error().message.find("32"), std::string::npos);
  const Message pack{Side::of(blob, 1), Side::packed()};
  ProgramOptions options;
  options.kernel = "fast";
  EXPECT_NE(Program::make({&pack, 1}, options).error().message.find("word, warp, tile"), std::string::npos);
  const Message negative{Side::of(blob, -1), Side::packed()};
  EXPECT_EQ(Program::make({&negative, 1}).error().code, Code::invalid);
  Message far = pack;
  far.ends_index = ends_max;
  EXPECT_EQ(Program::make({&far, 1}).error().code, Code::invalid);
}

TEST(Program, TellsWhatALaunchTouches) {
  const auto touched = [](const char* type, int64_t count) {
    const Message pack{Side::of(*layout::Blob::build(must_parse(type)), count), Side::packed()};
    return *Program::make({&pack, 1});
  };
  // n blocks of 64 B, 128 B apart: each side n * 64.
  EXPECT_EQ(touched("hvector(1024, 64, 128B, byte)", 1).bytes_touched(), 2 * 1024 * 64 + 2 * 0);
  // n blocks of 4 B, 64 B apart: a sector each, and packed n * 4.
  const Program sparse = touched("hvector(1048576, 4, 64B, byte)", 1);
  EXPECT_NEAR(static_cast<double>(sparse.bytes_touched()), 1048576.0 * (32 + 4), 64);
  EXPECT_EQ(sparse.bottleneck(), "sectors");
  EXPECT_EQ(touched("vector(4, 1, 2, int)", 1).bottleneck(), "launch");
  EXPECT_EQ(touched("contig(100000000, int)", 1).bottleneck(), "bandwidth");
  EXPECT_EQ(touched("vector(4, 1, 2, int)", 0).launches(), 0);
}

// The tables have three pieces; where one offset is beyond 32 bits, each takes 28 B instead of 20.
TEST(Program, KeepsATableOfPiecesToItsLimit) {
  const auto kernel_of = [](const char* type, int64_t bytes_max) {
    const Message pack{Side::of(*layout::Blob::build(must_parse(type))), Side::packed()};
    ProgramOptions options;
    options.kernel = "pieces";
    options.pieces_bytes_max = bytes_max;
    return Program::make({&pack, 1}, options)->kernel_name();
  };
  const char* const narrow = "hindexed([0B x 1, 40B x 2, 100B x 3], int)";
  const char* const wide = "hindexed([0B x 1, 40B x 2, 5000000000B x 3], int)";
  EXPECT_EQ(kernel_of(narrow, 3 * 20), "pieces");
  EXPECT_EQ(kernel_of(narrow, 3 * 20 - 1), "walk");
  EXPECT_EQ(kernel_of(wide, 3 * 28), "pieces");
  EXPECT_EQ(kernel_of(wide, 3 * 28 - 1), "walk");
}

// Messages beyond 2^31 bytes are several parts. Without the memory: the place of packed byte p, as a kernel finds it,
// is the cursor's; the parts hold each packed byte once, one behind the other.
TEST(Program, SplitsLongMessages) {
  const struct {
    const char* type;
    int64_t count;
    const char* kernel;
  } messages[] = {
      {"hvector(3000, 1, 40000000B, hvector(1000000, 4, 16B, byte))", 1, ""},
      {"hvector(3000, 1, -40000000B, hvector(1000000, 4, 16B, byte))", 2, ""},
      {"idxblock(3, rand(5, 8000, 4000), double)", 70000, ""},
      {"contig(5000000001, byte)", 1, ""},
      {"hindexed([0B x 3000000000, 4000000000B x 5], byte)", 2, ""},
      {"hvector(3000, 1, 40000000B, hvector(1000000, 4, 16B, byte))", 1, "walk"},
      {"idxblock(3, rand(5, 8000, 4000), double)", 70000, "walk"},
      {"struct([(0B, int), (8B, double)])", 400000000, ""},
  };
  Random random(6, "gpu.long");
  for (const auto& made : messages) {
    SCOPED_TRACE(made.type);
    const layout::Blob blob = *layout::Blob::build(must_parse(made.type));
    const Message pack{Side::of(blob, made.count), Side::packed()};
    ProgramOptions options;
    options.kernel = made.kernel;
    const Program program = *Program::make({&pack, 1}, options);
    EXPECT_EQ(program.bytes(), made.count * blob.size());
    EXPECT_EQ(program.launches(), 1);
    auto cursor = layout::Cursor::open(blob, made.count);
    ASSERT_TRUE(cursor.ok());
    const Program::Body& body = program.body();
    const auto* const arena = reinterpret_cast<const kernel::u8*>(body.arena.data());
    EXPECT_GT(body.parts.size(), 1U);
    int64_t next = 0;
    for (const kernel::Part& part : body.parts) {
      for (int i = 0; i < 200; ++i) {
        const int64_t byte = i < 2 ? i * (int64_t{part.bytes} - 1) : random.between(0, int64_t{part.bytes} - 1);
        const kernel::u32 at[1] = {static_cast<kernel::u32>(byte)};
        kernel::i64 from[1];
        kernel::i64 to[1];
        if (part.kind == kernel::kind_walk) {
          from[0] = part.from + kernel::walked_place(part.from_walk, arena, part.first + at[0]);
          to[0] = part.to + kernel::walked_place(part.to_walk, arena, part.first + at[0]);
        } else if (part.starts != 0) {
          kernel::places_of<0, true>(part, arena, at, from, to);
        } else {
          kernel::places_of<0, false>(part, arena, at, from, to);
        }
        ASSERT_EQ(to[0], next + byte);
        ASSERT_TRUE(cursor->seek(to[0]).ok());
        ASSERT_EQ(from[0], cursor->next(1).offset) << to[0];
      }
      next += part.bytes;
    }
    EXPECT_EQ(next, program.bytes());
  }
}

}  // namespace
}  // namespace spinloom::gpu
