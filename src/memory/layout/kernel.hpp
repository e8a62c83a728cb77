// Kernel - the inner loops that copy: a set of them for each instruction set. A process chooses its set once.
//
// Contract: a kernel is a pure function over a shape: a grid of equal blocks with its strides on both sides, a list
//   of equal blocks, or runs of several lengths. A set holds a kernel for each shape and class of block sizes; every
//   set copies the same bytes. kernels() is the best set that this CPU runs, or the set that SPINLOOM_KERNEL names;
//   the name "walker" means the portable walker of layout_walk.h instead. kernel_name() says what a blob uses.
// Invariants: (1) a kernel writes the blocks' bytes and no others; (2) it may read a gap that is no longer than a block
//   between two blocks, and nothing else beside the blocks.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::layout {

// A grid of rows x blocks, each of `block` bytes. Strides are in bytes, from block to block and from row to row.
struct Grid {
  struct Side {
    int64_t row_stride = 0;
    int64_t block_stride = 0;
  };
  int64_t rows = 1;
  int64_t blocks = 0;
  int64_t block = 0;
  Side to;
  Side from;

  [[nodiscard]] int64_t bytes() const { return rows * blocks * block; }
};

// The side whose blocks touch each other within a row: the destination (pack), the source (unpack) or neither (copy).
enum class Mode : uint8_t { pack, unpack, copy };
inline constexpr size_t mode_count = 3;

// Each block size here has a kernel of its own; other sizes share the kernel of their range.
inline constexpr std::array<int64_t, 15> exact_blocks = {1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 256, 512};
inline constexpr std::array<int64_t, 8> range_ends = {3, 7, 15, 31, 63, 127, 255, INT64_MAX};  // last size of each
inline constexpr size_t block_class_count = exact_blocks.size() + range_ends.size();

using GridKernel = void (*)(std::byte* to, const std::byte* from, const Grid& grid);
// A grid of one row, given in registers: a Grid in memory costs store operations before each short copy.
using RowKernel = void (*)(std::byte* to, const std::byte* from, int64_t blocks, int64_t block, int64_t to_step,
                           int64_t from_step);
// Copies `count` blocks between a dense side and listed places.
template <class Offset>
using ListPack = void (*)(std::byte* to, const std::byte* from, const Offset* places, int64_t count, int64_t block);
template <class Offset>
using ListCopy = void (*)(std::byte* to, const Offset* to_places, const std::byte* from, const Offset* from_places,
                          int64_t count, int64_t block);
// A table of runs as in a blob; entry i is runs[i + 1].start - runs[i].start bytes long.
template <class Run>
using RunsKernel = void (*)(std::byte* to, const std::byte* from, const Run* runs, int64_t count);
// Grids of at least stream_bytes_min bytes are written past the caches, because their end would push their beginning
// out of the caches. That needs blocks of several lines, or a dense destination with blocks that fill lines.
inline constexpr int64_t stream_bytes_min = int64_t{16} << 20;
inline constexpr int64_t stream_block_min = 512;
inline bool is_streamed(Mode mode, const std::byte* to, int64_t block, int64_t bytes) {
  if (bytes < stream_bytes_min) return false;
  if (block >= stream_block_min) return true;
  if (mode != Mode::pack) return false;
  const auto place = reinterpret_cast<uintptr_t>(to);
  if (block == 4 || block == 8 || block == 16 || block == 32) return place % static_cast<uintptr_t>(block) == 0;
  return block % 64 == 0 && place % 64 == 0;
}
// Grids of that size that is_streamed() refuses may be quicker with one library call a block than with a loop, which
// keeps more lines in flight than the memory serves in order: by up to 30 % on Zen 4. On Sapphire Rapids the loop is
// quicker, by up to 40 %.
bool cpu_prefers_paced_rows();
inline bool is_paced(Mode mode, int64_t block, int64_t bytes, int64_t step) {
  return bytes >= stream_bytes_min && mode != Mode::pack && block >= 16 && block < stream_block_min && step > 0 &&
         step <= 2 * stream_block_min && cpu_prefers_paced_rows();
}

// A list of equal blocks (runs is null) or a table of runs, as one side of a copy.
template <class Offset, class Run>
struct Table {
  int64_t count = 0;
  const Offset* places = nullptr;
  int64_t block = 0;
  const Run* runs = nullptr;
};
// Copies `bytes` bytes from the beginning of one table to the beginning of the other.
template <class Offset, class Run>
using TableCopy = void (*)(std::byte* to, const Table<Offset, Run>& to_table, const std::byte* from,
                           const Table<Offset, Run>& from_table, int64_t bytes);
// Transposes `rows` lines that lie `pitch` apart: element (i, j) of `from` becomes element (j, i) of `to`.
using TransposeKernel = void (*)(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch,
                                 int64_t rows, int64_t columns);

// Fixed numbers of bytes that are moved for each struct of an array, in this order: up to three moves of 1, 2, 4, 8, 16
// or 32 bytes, or four of 4, 8 or 16. There is a kernel for each sequence; a length of 0 is no move.
inline constexpr size_t group_moves = 4;
inline constexpr size_t moves_kernel_count = 7 * 7 * 7 + 3 * 3 * 3 * 3;
using MoveLengths = std::array<int64_t, group_moves>;
// True if there is a kernel for four moves of such lengths, each of which is a power of two or 0.
constexpr bool has_four_moves_kernel(const MoveLengths& lengths) {
  return (lengths[0] | lengths[1] | lengths[2] | lengths[3] | 28) == 28 && lengths[3] != 0;
}
constexpr size_t moves_kernel_index(const MoveLengths& lengths) {
  const auto digit = [&](size_t i) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(lengths[i]))); };
  if (lengths[3] == 0) return (digit(0) * 7 + digit(1)) * 7 + digit(2);
  return 7 * 7 * 7 + (((digit(0) - 3) * 3 + digit(1) - 3) * 3 + digit(2) - 3) * 3 + digit(3) - 3;
}
// The places of a struct's moves on one side, and the step to the next struct.
struct MoveSide {
  int32_t step;
  int32_t first;  // place of the first move
  std::array<int32_t, group_moves - 1> next;  // places of the other moves, counted from the first
};
using MovesKernel = void (*)(std::byte* to, const std::byte* from, int64_t structs, const MoveSide& to_side,
                             const MoveSide& from_side);

// Structs are tables of few, short runs (on the average). Many of them are copied at a time.
inline constexpr int64_t struct_runs_max = 16;
inline constexpr int64_t struct_run_bytes_max = 128;
inline constexpr int64_t struct_tile = 64;  // structs of one tile, which stays in the first-level cache
// Copies `structs` structs of `count` runs each, `stride` bytes apart. False: nothing has been done.
template <class Run>
using StructsKernel = bool (*)(std::byte* to, const std::byte* from, const Run* runs, int64_t count, int64_t structs,
                               int64_t stride);

// Copies structs to structs with fields of the same lengths. False: nothing has been done.
template <class Run>
using StructsCopy = bool (*)(std::byte* to, const Run* to_runs, int64_t to_stride, const std::byte* from,
                             const Run* from_runs, int64_t from_stride, int64_t count, int64_t structs);

template <class Offset, class Run>
struct TableKernels {
  std::array<ListPack<Offset>, block_class_count> pack;
  std::array<ListPack<Offset>, block_class_count> unpack;
  std::array<ListCopy<Offset>, block_class_count> copy;
  RunsKernel<Run> pack_runs;
  RunsKernel<Run> unpack_runs;
  StructsKernel<Run> pack_structs;
  StructsKernel<Run> unpack_structs;
  StructsCopy<Run> copy_structs;
  TableCopy<Offset, Run> copy_tables;
};

struct KernelSet {
  const char* name;
  std::array<std::array<GridKernel, block_class_count>, mode_count> grid;
  std::array<std::array<RowKernel, block_class_count>, mode_count> row;
  TableKernels<int32_t, spl_run_narrow> narrow;
  TableKernels<int64_t, spl_run_wide> wide;
  std::array<TransposeKernel, 5> transpose;  // one for each size of elements: 1, 2, 4, 8, 16 bytes
  std::array<MovesKernel, moves_kernel_count> moves;  // the index is moves_kernel_index()
  int64_t struct_moves_max;  // windows (kernel_structs.hpp) are quicker than moves for more structs
  void (*piece)(std::byte* to, const std::byte* from, int64_t bytes);
  RowKernel paced_row;  // rows for which is_paced() is true
  GridKernel stream_grid;  // writes past the caches: for grids for which is_streamed() is true
};

// Returns every set that this CPU runs, the best first.
std::span<const KernelSet* const> kernel_sets();

// Returns the set that copies use; null for the walker. SPINLOOM_KERNEL is read at the first call. If it names nothing
// that runs here, every call returns an Error, until force_kernels().
Result<const KernelSet*> kernels();
// Returns the set that copies use; null for the walker and where kernels() fails.
inline const KernelSet* kernels_if_any();
// Makes copies use the named set from now on, or the best set for "". For tests and comparisons, not while copies run.
Status force_kernels(const std::string& name);

// Returns the set and the shape that most bytes of the blob go through, such as "avx512 vector 8 B"; "walker" for the
// walker; "none" for an empty blob and where kernels() fails.
std::string kernel_name(const Blob& blob);

// Returns the number of the class of a block size: its place in exact_blocks, or behind them in range_ends.
inline size_t block_class(int64_t block);

// The ways in which copy_grid() copies a grid: by a kernel for blocks, by a transpose, or tile by tile.
enum class GridWay : uint8_t { blocks, transpose, tiles };
GridWay grid_way(const Grid& grid);
void copy_grid(const KernelSet& set, std::byte* to, const std::byte* from, const Grid& grid);

// ---- what every copy begins with ----

namespace detail {

extern std::atomic<const KernelSet*> kernels_in_use;  // null for the walker, and until the first call of kernels()
const KernelSet* find_kernels();

inline constexpr int64_t class_table_max = 512;
inline constexpr std::array<uint8_t, class_table_max + 1> class_table = [] {
  std::array<uint8_t, class_table_max + 1> table{};
  for (int64_t block = 0; block <= class_table_max; ++block) {
    size_t number = exact_blocks.size();
    while (range_ends[number - exact_blocks.size()] < block) ++number;
    for (size_t exact = 0; exact < exact_blocks.size(); ++exact) {
      if (exact_blocks[exact] == block) number = exact;
    }
    table[static_cast<size_t>(block)] = static_cast<uint8_t>(number);
  }
  return table;
}();

}  // namespace detail

inline const KernelSet* kernels_if_any() {
  const KernelSet* const set = detail::kernels_in_use.load(std::memory_order_relaxed);
  return set != nullptr ? set : detail::find_kernels();
}

inline size_t block_class(int64_t block) {
  return block <= detail::class_table_max ? detail::class_table[static_cast<size_t>(block)] : block_class_count - 1;
}

}  // namespace spinloom::layout
