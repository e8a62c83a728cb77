#include "memory/layout/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "memory/layout/kernel_sets.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {
namespace {

constexpr const char* walker_name = "walker";

template <class Kernel, size_t count>
void take_missing(std::array<Kernel, count>& kernels, const std::array<Kernel, count>& below) {
  for (size_t i = 0; i < count; ++i) {
    if (kernels[i] == nullptr) kernels[i] = below[i];
  }
}

template <class Offset, class Run>
void take_missing(TableKernels<Offset, Run>& kernels, const TableKernels<Offset, Run>& below) {
  take_missing(kernels.pack, below.pack);
  take_missing(kernels.unpack, below.unpack);
  take_missing(kernels.copy, below.copy);
}

// Returns the set with the kernels of `below` where it has none of its own (kernel_sets.hpp).
KernelSet completed(KernelSet set, const KernelSet& below) {
  for (size_t mode = 0; mode < mode_count; ++mode) {
    take_missing(set.grid[mode], below.grid[mode]);
    take_missing(set.row[mode], below.row[mode]);
  }
  take_missing(set.narrow, below.narrow);
  take_missing(set.wide, below.wide);
  take_missing(set.moves, below.moves);
  return set;
}

std::vector<const KernelSet*> supported_sets() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__)
  if (avx2_kernels() != nullptr && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
    static const KernelSet avx2 = completed(*avx2_kernels(), *portable_kernels());
    if (avx512_kernels() != nullptr && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vbmi")) {
      static const KernelSet avx512 = completed(*avx512_kernels(), avx2);
      sets.push_back(&avx512);
    }
    sets.push_back(&avx2);
  }
#endif
  sets.push_back(portable_kernels());
  return sets;
}

struct KernelChoice {
  const KernelSet* set = nullptr;  // null: the walker
  Status status;
};

KernelChoice choose_kernels(const std::string& name) {
  if (name.empty()) return {kernel_sets().front(), {}};
  if (name == walker_name) return {};
  std::string names = walker_name;
  for (const KernelSet* set : kernel_sets()) {
    if (name == set->name) return {set, {}};
    names += text(", ", set->name);
  }
  return {nullptr, fail(Code::invalid, "SPINLOOM_KERNEL: there is no kernel '", name, "' here; this CPU runs ", names)};
}

KernelChoice& kernel_choice() {
  static KernelChoice choice = [] {
    const char* const name = std::getenv("SPINLOOM_KERNEL");
    return choose_kernels(name == nullptr ? "" : name);
  }();
  return choice;
}

template <class Node>
const Node* node_at(const Blob& blob, int64_t place) {
  return reinterpret_cast<const Node*>(blob.data() + place);
}

// Returns the shape that most bytes of a blob are taken to go through: the first leaf, with the loop above it.
template <class W>
std::string shape_of(const Blob& blob) {
  using Node = typename W::Node;
  const Node* node = node_at<Node>(blob, sizeof(spl_layout_header));
  const Node* above = nullptr;
  while (node->kind > SPL_LEAF_LAST) {
    above = node;
    const auto child = node->kind == SPL_NODE_MEMBERS
                           ? static_cast<int64_t>(reinterpret_cast<const typename W::Member*>(node + 1)->child)
                           : static_cast<int64_t>(node->child);
    node = node_at<Node>(blob, child);
  }
  const auto block = static_cast<int64_t>(node->block);
  const auto count = static_cast<int64_t>(node->count);
  const auto size = static_cast<int64_t>(node->size);
  if (node->kind != SPL_LEAF_VECTOR && above != nullptr && above->kind == SPL_NODE_LOOP && count <= struct_runs_max &&
      size <= count * struct_run_bytes_max) {
    return text("structs ", size, " B");
  }
  if (node->kind == SPL_LEAF_RUNS) return "runs";
  if (node->kind == SPL_LEAF_LIST) return text("list ", block, " B");
  if (above != nullptr && above->kind == SPL_NODE_LOOP) {
    Grid grid;
    grid.rows = static_cast<int64_t>(above->count);
    grid.blocks = count;
    grid.block = block;
    grid.to = {size, block};
    grid.from = {above->stride, node->stride};
    if (grid_way(grid) == GridWay::transpose) return text("transpose ", block, " B");
    if (grid_way(grid) == GridWay::tiles) return text("tiles ", block, " B");
  }
  return count == 1 ? "run" : text("vector ", block, " B");
}

size_t transpose_index(int64_t block) {
  switch (block) {
    case 1: return 0;
    case 2: return 1;
    case 4: return 2;
    case 8: return 3;
    default: return 4;
  }
}

bool can_transpose(int64_t block) { return block == 1 || block == 2 || block == 4 || block == 8 || block == 16; }

constexpr int64_t tile_bytes = 8 << 10;  // memory of a tile: a fraction of the first-level cache
constexpr int64_t line_bytes = 64;
constexpr int64_t transpose_min = 4;  // rows and columns

// True if rows of a side interleave (the step inside a row is larger than the step between rows) within cache lines,
// and a row has more lines than a tile holds. Walking such rows one by one would read each line again for every row.
bool are_rows_interleaved(const Grid::Side& side, int64_t rows, int64_t blocks) {
  return std::abs(side.row_stride) < line_bytes && std::abs(side.block_stride) > std::abs(side.row_stride) &&
         rows > 1 && blocks * line_bytes > tile_bytes;
}

// True only if no two blocks share a byte, so that they may be written in any order.
bool are_blocks_disjoint(const Grid::Side& side, const Grid& grid) {
  const int64_t small = std::min(std::abs(side.row_stride), std::abs(side.block_stride));
  const int64_t large = std::max(std::abs(side.row_stride), std::abs(side.block_stride));
  const int64_t inner = std::abs(side.row_stride) < std::abs(side.block_stride) ? grid.rows : grid.blocks;
  return small >= grid.block && large >= (inner - 1) * small + grid.block;
}

void copy_tiles(GridKernel kernel, std::byte* to, const std::byte* from, const Grid& grid) {
  const int64_t step = std::max<int64_t>(1, std::min(std::abs(grid.from.row_stride), std::abs(grid.to.row_stride)));
  const int64_t rows = std::max<int64_t>(1, 4 * line_bytes / step);
  const int64_t blocks = std::max<int64_t>(1, tile_bytes / (4 * line_bytes));
  for (int64_t row = 0; row < grid.rows; row += rows) {
    Grid tile = grid;
    tile.rows = std::min(rows, grid.rows - row);
    for (int64_t block = 0; block < grid.blocks; block += blocks) {
      tile.blocks = std::min(blocks, grid.blocks - block);
      kernel(to + row * grid.to.row_stride + block * grid.to.block_stride,
             from + row * grid.from.row_stride + block * grid.from.block_stride, tile);
    }
  }
}

}  // namespace

bool cpu_prefers_paced_rows() {
#if defined(__x86_64__)
  static const bool is_amd = __builtin_cpu_is("amd");
  return is_amd;
#else
  return false;
#endif
}

std::span<const KernelSet* const> kernel_sets() {
  static const std::vector<const KernelSet*> sets = supported_sets();
  return sets;
}

Result<const KernelSet*> kernels() {
  const KernelChoice& choice = kernel_choice();
  if (!choice.status) return choice.status.error();
  detail::kernels_in_use.store(choice.set, std::memory_order_relaxed);
  return choice.set;
}

std::atomic<const KernelSet*> detail::kernels_in_use{nullptr};

const KernelSet* detail::find_kernels() {
  const auto found = kernels();
  return found ? *found : nullptr;
}

Status force_kernels(const std::string& name) {
  KernelChoice new_choice = choose_kernels(name);
  SPL_TRY(new_choice.status);
  kernel_choice() = std::move(new_choice);
  detail::kernels_in_use.store(kernel_choice().set, std::memory_order_relaxed);
  return {};
}

std::string kernel_name(const Blob& blob) {
  const auto set = kernels();
  if (!set) return "none";
  if (*set == nullptr) return walker_name;
  if (blob.size() == 0) return "none";
  return text((*set)->name, " ", blob.is_narrow() ? shape_of<Narrow>(blob) : shape_of<Wide>(blob));
}

GridWay grid_way(const Grid& grid) {
  if (!are_blocks_disjoint(grid.to, grid)) return GridWay::blocks;
  const bool is_transpose = (grid.from.row_stride == grid.block && grid.to.block_stride == grid.block) ||
                            (grid.to.row_stride == grid.block && grid.from.block_stride == grid.block);
  if (is_transpose && can_transpose(grid.block) && grid.rows >= transpose_min && grid.blocks >= transpose_min) {
    return GridWay::transpose;
  }
  if (are_rows_interleaved(grid.from, grid.rows, grid.blocks) ||
      are_rows_interleaved(grid.to, grid.rows, grid.blocks)) {
    return GridWay::tiles;
  }
  return GridWay::blocks;
}

namespace {

// Swaps rows and blocks where that shortens the inner step of both sides; makes one block of each row that is dense on
// both.
Grid reordered(Grid grid) {
  const bool to_turns = std::abs(grid.to.row_stride) < std::abs(grid.to.block_stride);
  const bool from_turns = std::abs(grid.from.row_stride) < std::abs(grid.from.block_stride);
  if (grid.rows > 1 && to_turns && from_turns && are_blocks_disjoint(grid.to, grid)) {
    std::swap(grid.rows, grid.blocks);
    std::swap(grid.to.row_stride, grid.to.block_stride);
    std::swap(grid.from.row_stride, grid.from.block_stride);
  }
  if (grid.to.block_stride == grid.block && grid.from.block_stride == grid.block) {
    return {1, grid.rows, grid.blocks * grid.block, {0, grid.to.row_stride}, {0, grid.from.row_stride}};
  }
  return grid;
}

void copy_reordered(const KernelSet& set, std::byte* to, const std::byte* from, const Grid& grid) {
  const GridWay way = grid.rows == 1 ? GridWay::blocks : grid_way(grid);
  if (way == GridWay::transpose) {
    const TransposeKernel kernel = set.transpose[transpose_index(grid.block)];
    if (grid.from.row_stride == grid.block && grid.to.block_stride == grid.block) {
      return kernel(to, grid.to.row_stride, from, grid.from.block_stride, grid.blocks, grid.rows);
    }
    return kernel(to, grid.to.block_stride, from, grid.from.row_stride, grid.rows, grid.blocks);
  }
  const Mode mode = grid.to.block_stride == grid.block     ? Mode::pack
                    : grid.from.block_stride == grid.block ? Mode::unpack
                                                           : Mode::copy;
  if (is_streamed(mode, to, grid.block, grid.bytes())) return set.stream_grid(to, from, grid);
  const GridKernel kernel = set.grid[static_cast<size_t>(mode)][block_class(grid.block)];
  if (way == GridWay::tiles) return copy_tiles(kernel, to, from, grid);
  kernel(to, from, grid);
}

}  // namespace

void copy_grid(const KernelSet& set, std::byte* to, const std::byte* from, const Grid& grid) {
  // reordered() copies the grid, which costs more than a short row of blocks. A grid of one row never turns.
  if (grid.rows > 1) {
    copy_reordered(set, to, from, reordered(grid));
  } else {
    copy_reordered(set, to, from, grid);
  }
}

}  // namespace spinloom::layout
