// Every entry of every kernel set, called by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "memory/layout/kernel.hpp"
#include "memory/layout/kernel_test.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

// Compares a kernel, called by itself, with naive copies of single blocks into a buffer of noise.
class Bench {
 public:
  explicit Bench(Random& random) : from_(noise(random, bytes)), to_(noise(random, bytes)), wanted_(to_) {}

  [[nodiscard]] const std::byte* from() const { return from_.data() + middle; }
  [[nodiscard]] std::byte* to() { return to_.data() + middle; }
  void want(int64_t to, int64_t from, int64_t block) {
    for (int64_t i = 0; i < block; ++i) {
      wanted_[static_cast<size_t>(middle + to + i)] = from_[static_cast<size_t>(middle + from + i)];
    }
  }
  [[nodiscard]] bool right() const { return to_ == wanted_; }

 private:
  static constexpr int64_t bytes = 1 << 18;  // the largest grid reaches 83 KiB either way
  static constexpr int64_t middle = bytes / 2;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  std::vector<std::byte> wanted_;
};

void check_grids(Random& random, const KernelSet& set, int64_t block) {
  for (size_t mode = 0; mode < mode_count; ++mode) {
    Bench bench(random);
    Grid grid;
    grid.rows = random.between(1, 3);
    grid.blocks = random.between(1, 20);
    grid.block = block;
    const int64_t sign = random.chance(1, 2) ? 1 : -1;
    grid.to.block_stride = mode == 0 ? block : sign * (block + random.between(0, 70));
    grid.from.block_stride = mode == 1 ? block : -sign * (block + random.between(0, 70));
    grid.to.row_stride = grid.to.block_stride * grid.blocks;
    grid.from.row_stride = grid.from.block_stride * grid.blocks + 1;
    set.grid[mode][block_class(block)](bench.to(), bench.from(), grid);
    for (int64_t row = 0; row < grid.rows; ++row) {
      for (int64_t i = 0; i < grid.blocks; ++i) {
        bench.want(row * grid.to.row_stride + i * grid.to.block_stride,
                   row * grid.from.row_stride + i * grid.from.block_stride, block);
      }
    }
    ASSERT_TRUE(bench.right()) << set.name << ", grid of mode " << mode << ", block " << block;

    Bench one(random);
    set.row[mode][block_class(block)](one.to(), one.from(), grid.blocks, block, grid.to.block_stride,
                                      grid.from.block_stride);
    for (int64_t i = 0; i < grid.blocks; ++i) one.want(i * grid.to.block_stride, i * grid.from.block_stride, block);
    ASSERT_TRUE(one.right()) << set.name << ", row of mode " << mode << ", block " << block;
  }
}

template <class Tables, class Offset>
void check_lists(Random& random, const Tables& tables, int64_t block, Offset) {
  const int64_t count = random.between(1, 20);
  std::vector<Offset> to(static_cast<size_t>(count));
  std::vector<Offset> from(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] =
        static_cast<Offset>(static_cast<int64_t>(i % 2 == 0 ? i : to.size() + i) * (block + 3) * (i % 4 == 0 ? -1 : 1));
    from[i] = static_cast<Offset>(random.between(-30000, 30000));
  }
  const size_t number = block_class(block);
  Bench packing(random);
  Bench unpacking(random);
  Bench copying(random);
  tables.pack[number](packing.to(), packing.from(), from.data(), count, block);
  tables.unpack[number](unpacking.to(), unpacking.from(), to.data(), count, block);
  tables.copy[number](copying.to(), to.data(), copying.from(), from.data(), count, block);
  for (size_t i = 0; i < to.size(); ++i) {
    packing.want(static_cast<int64_t>(i) * block, from[i], block);
    unpacking.want(to[i], static_cast<int64_t>(i) * block, block);
    copying.want(to[i], from[i], block);
  }
  ASSERT_TRUE(packing.right() && unpacking.right() && copying.right()) << "list, block " << block;
}

template <class Tables, class Run>
void check_runs(Random& random, const Tables& tables, Run) {
  // Stretches of one length, and of many.
  const int64_t length = random.chance(1, 2) ? 4 * random.between(1, 6) : 0;
  const int64_t longest = random.chance(1, 2) ? 200 : 600;
  std::vector<Run> runs(static_cast<size_t>(random.between(1, 150) + 1));
  Bench packing(random);
  Bench unpacking(random);
  int64_t start = 16;
  int64_t place = -100;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool last = i + 1 == runs.size();
    const int64_t bytes = last ? 0 : length != 0 && !random.chance(1, 60) ? length : random.between(1, longest);
    runs[i].offset = static_cast<decltype(runs[i].offset)>(place);
    runs[i].start = static_cast<decltype(runs[i].start)>(start);
    packing.want(start - 16, place, bytes);
    unpacking.want(place, start - 16, bytes);
    start += bytes;
    place += bytes + random.between(0, 50);
  }
  tables.pack_runs(packing.to(), packing.from(), runs.data(), static_cast<int64_t>(runs.size()) - 1);
  tables.unpack_runs(unpacking.to(), unpacking.from(), runs.data(), static_cast<int64_t>(runs.size()) - 1);
  ASSERT_TRUE(packing.right() && unpacking.right()) << "runs";
}

void check_transpose(Random& random, TransposeKernel kernel, int64_t element) {
  Bench bench(random);
  const int64_t rows = random.between(1, 70);
  const int64_t columns = random.between(1, 70);
  const int64_t to_pitch = rows * element + random.between(0, 40);
  const int64_t from_pitch = columns * element + random.between(0, 40);
  kernel(bench.to(), to_pitch, bench.from(), from_pitch, rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) bench.want(j * to_pitch + i * element, i * from_pitch + j * element, element);
  }
  ASSERT_TRUE(bench.right()) << "transpose of " << rows << " x " << columns << ", element " << element;
}

// Blocks that fill lines, packed to a place where streams() takes them.
void check_dense_stream(Random& random, const KernelSet& set, int64_t block) {
  Bench bench(random);
  const int64_t unit = std::min<int64_t>(block, 64);
  const auto shift = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(bench.to()) % static_cast<uintptr_t>(unit));
  std::byte* const to = bench.to() + shift;
  Grid grid;
  grid.rows = random.between(1, 3);
  grid.blocks = random.between(1, 70);
  grid.block = block;
  grid.to = {block * grid.blocks, block};
  grid.from = {-1500 * random.between(0, 2), random.between(-200, 200)};
  EXPECT_TRUE(is_streamed(Mode::pack, to, block, stream_bytes_min));
  EXPECT_FALSE(is_streamed(Mode::pack, to, block, stream_bytes_min - 1));
  EXPECT_FALSE(is_streamed(Mode::pack, to + 1, block, stream_bytes_min));
  set.stream_grid(to, bench.from(), grid);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      bench.want(shift + row * grid.to.row_stride + i * block, row * grid.from.row_stride + i * grid.from.block_stride,
                 block);
    }
  }
  ASSERT_TRUE(bench.right()) << "streamed blocks of " << block;
  Bench paced(random);
  set.paced_row(paced.to(), paced.from(), grid.blocks, block, block + 3, grid.from.block_stride);
  for (int64_t i = 0; i < grid.blocks; ++i) paced.want(i * (block + 3), i * grid.from.block_stride, block);
  ASSERT_TRUE(paced.right()) << "paced blocks of " << block;
}

// Every sequence of moves that has a kernel: up to three of any length, or four of 4 to 16 bytes.
void check_moves(Random& random, const KernelSet& set) {
  constexpr std::array<int64_t, 7> any = {0, 1, 2, 4, 8, 16, 32};
  std::vector<MoveLengths> all;
  for (const int64_t a : any) {
    for (const int64_t b : any) {
      for (const int64_t c : any) {
        if (a != 0 && (b != 0 || c == 0)) all.push_back({a, b, c, 0});
        for (const int64_t d : {4, 8, 16}) {
          if (has_four_moves_kernel({a, b, c, d}) && a * b * c != 0) all.push_back({a, b, c, d});
        }
      }
    }
  }
  ASSERT_EQ(all.size(), 6u + 36 + 216 + 81);
  std::vector<MovesKernel> seen;
  for (const MoveLengths& lengths : all) {
    const MovesKernel kernel = set.moves[moves_kernel_index(lengths)];
    ASSERT_NE(kernel, nullptr);
    seen.push_back(kernel);
    Bench bench(random);
    MoveSide to{static_cast<int32_t>(random.between(128, 150)), static_cast<int32_t>(random.between(-20, 20)), {}};
    MoveSide from{static_cast<int32_t>(random.between(-150, 150)), static_cast<int32_t>(random.between(-20, 20)), {}};
    int32_t place = 0;
    for (size_t i = 0; i + 1 < group_moves; ++i) {
      place += static_cast<int32_t>(lengths[i] + random.between(0, 3));
      to.next[i] = place;
      from.next[i] = static_cast<int32_t>(random.between(-60, 60));
    }
    const int64_t structs = random.between(1, 20);
    kernel(bench.to(), bench.from(), structs, to, from);
    for (int64_t one = 0; one < structs; ++one) {
      for (size_t i = 0; i < group_moves; ++i) {
        bench.want(one * to.step + to.first + (i == 0 ? 0 : to.next[i - 1]),
                   one * from.step + from.first + (i == 0 ? 0 : from.next[i - 1]), lengths[i]);
      }
    }
    ASSERT_TRUE(bench.right()) << "moves of " << lengths[0] << ", " << lengths[1] << ", " << lengths[2] << ", "
                               << lengths[3];
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << "two sequences share a kernel";
}

void check_stream(Random& random, const KernelSet& set) {
  Bench bench(random);
  Grid grid;
  grid.rows = random.between(1, 3);
  grid.blocks = random.between(1, 6);
  grid.block = random.between(stream_block_min, 1500);
  grid.to.block_stride = grid.block + random.between(0, 100);
  grid.from.block_stride = grid.block + random.between(0, 100);
  grid.to.row_stride = grid.to.block_stride * grid.blocks;
  grid.from.row_stride = grid.from.block_stride * grid.blocks + 1;
  set.stream_grid(bench.to(), bench.from(), grid);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      bench.want(row * grid.to.row_stride + i * grid.to.block_stride,
                 row * grid.from.row_stride + i * grid.from.block_stride, grid.block);
    }
  }
  ASSERT_TRUE(bench.right()) << "streamed blocks of " << grid.block;
}

template <class Tables, class Offset, class Run>
void check_tables(Random& random, const Tables& tables, Offset, Run) {
  // Lists and runs on either side, whose entries end at different places.
  const int64_t unit = random.chance(1, 2) ? 8 : random.between(1, 30);
  const int64_t count = 2 * random.between(1, 80);
  std::vector<Offset> places;
  std::vector<Run> runs;
  int64_t at = -3000;
  for (int64_t i = 0; i < count; ++i, at += unit + random.between(0, 9)) places.push_back(static_cast<Offset>(at));
  int64_t start = 0;
  for (at = 1000; start < count * unit;) {
    const int64_t bytes = random.chance(1, 6) ? std::min(count * unit - start, random.between(1, 70))
                                              : std::min(count * unit - start, unit);
    Run run{};
    run.offset = static_cast<decltype(run.offset)>(at);
    run.start = static_cast<decltype(run.start)>(start);
    runs.push_back(run);
    start += bytes;
    at += bytes + random.between(0, 9);
  }
  Run end{};
  end.start = static_cast<decltype(end.start)>(start);
  runs.push_back(end);
  const Table<Offset, Run> list{count, places.data(), unit, nullptr};
  const Table<Offset, Run> table{static_cast<int64_t>(runs.size()) - 1, nullptr, 0, runs.data()};
  const auto place_of = [&](const Table<Offset, Run>& side, int64_t byte) {
    if (side.runs == nullptr) return static_cast<int64_t>(places[static_cast<size_t>(byte / unit)]) + byte % unit;
    size_t i = 0;
    while (static_cast<int64_t>(runs[i + 1].start) <= byte) ++i;
    return static_cast<int64_t>(runs[i].offset) + byte - static_cast<int64_t>(runs[i].start);
  };
  for (const auto& [to, from] : {std::pair{list, list}, {list, table}, {table, list}, {table, table}}) {
    Bench bench(random);
    tables.copy_tables(bench.to(), to, bench.from(), from, start);
    for (int64_t byte = 0; byte < start; ++byte) bench.want(place_of(to, byte), place_of(from, byte), 1);
    ASSERT_TRUE(bench.right()) << "tables of " << unit;
  }
}

TEST(Kernels, EveryEntryOfEverySetCopiesItsBlocks) {
  const auto sets = kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_STREQ(sets.back()->name, "portable");
  for (const KernelSet* set : sets) {
    SCOPED_TRACE(set->name);
    test::for_seeds(3, [&](Random& random) {
      for (const int64_t block : blocks()) {
        ASSERT_NO_FATAL_FAILURE(check_grids(random, *set, block));
        ASSERT_NO_FATAL_FAILURE(check_lists(random, set->narrow, block, int32_t{}));
        ASSERT_NO_FATAL_FAILURE(check_lists(random, set->wide, block, int64_t{}));
      }
      ASSERT_NO_FATAL_FAILURE(check_moves(random, *set));
      for (int64_t number = 0; number < 5; ++number) {
        ASSERT_NO_FATAL_FAILURE(check_transpose(random, set->transpose[static_cast<size_t>(number)], 1 << number));
      }
      for (int64_t bytes = 0; bytes < 300; ++bytes) {
        Bench bench(random);
        set->piece(bench.to(), bench.from(), bytes);
        bench.want(0, 0, bytes);
        ASSERT_TRUE(bench.right()) << "piece of " << bytes;
        if (bytes > 20) continue;
        ASSERT_NO_FATAL_FAILURE(check_stream(random, *set));
        for (const int64_t block : {4, 8, 16, 32, 64, 128, 448}) {
          ASSERT_NO_FATAL_FAILURE(check_dense_stream(random, *set, block));
        }
        ASSERT_NO_FATAL_FAILURE(check_tables(random, set->narrow, int32_t{}, spl_run_narrow{}));
        ASSERT_NO_FATAL_FAILURE(check_tables(random, set->wide, int64_t{}, spl_run_wide{}));
        ASSERT_NO_FATAL_FAILURE(check_runs(random, set->narrow, spl_run_narrow{}));
        ASSERT_NO_FATAL_FAILURE(check_runs(random, set->wide, spl_run_wide{}));
      }
    });
  }
}

}  // namespace
}  // namespace spinloom::layout
