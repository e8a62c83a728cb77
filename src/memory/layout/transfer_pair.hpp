// Pair - two blobs walked side by side, as long as their nodes agree: equal grids, lists of equal blocks, members of
// equal sizes.
//
// Contract: can_copy() says whether copy() and copy_part() can handle two nodes, can_copy_repeated() whether
//   copy_repeated() and copy_rows() can handle a row of them. `target` and `source` are the places of the nodes in
//   memory.
// Threads: pure over disjoint memory. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "memory/layout/blob.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/struct_moves.hpp"

namespace spinloom::layout {

template <class W>
class BlobPair {
 public:
  using Node = typename W::Node;
  using Offset = typename W::Signed;
  using Member = typename W::Member;
  using Run = typename W::Run;

  BlobPair(const Blob& to, const Blob& from, const KernelSet& set) : to_(to.data()), from_(from.data()), set_(set) {}

  [[nodiscard]] static const Node& root(const Blob& blob) {
    return *reinterpret_cast<const Node*>(blob.data() + sizeof(spl_layout_header));
  }

  // True if copy() can handle these two nodes.
  [[nodiscard]] bool can_copy(const Node& to, const Node& from) const {
    if (to.size != from.size) return false;
    Grid grid;
    if (common_grid(to, from, grid)) return true;
    if (is_table(to) && is_table(from)) {
      return (common_length(to) != 0 && common_length(to) == common_length(from)) ||
             (has_long_entries(to) && has_long_entries(from));
    }
    if (to.kind != from.kind || to.count != from.count) return false;
    switch (to.kind) {
      case SPL_NODE_LOOP: return can_copy_repeated(child_of(to_, to), to.stride, child_of(from_, from));
      case SPL_NODE_LIST: return can_copy(child_of(to_, to), child_of(from_, from));
      case SPL_NODE_MEMBERS: {
        const Member* const a = members(to);
        const Member* const b = members(from);
        for (int64_t i = 0; i < static_cast<int64_t>(to.count); ++i) {
          if (a[i].start != b[i].start || !can_copy(node_at(to_, a[i].child), node_at(from_, b[i].child))) return false;
        }
        return true;
      }
      default: return false;
    }
  }

  // True if copy_repeated() can handle these two nodes. Structs of few short runs must be alike as moves, because
  // others are copied faster through a buffer.
  [[nodiscard]] bool can_copy_repeated(const Node& to, int64_t to_stride, const Node& from) const {
    if (!is_struct_table(to) || !is_struct_table(from)) return can_copy(to, from);
    StructMoves written;
    StructMoves read;
    return written.prepare<W>(set_, to, to_stride) && written.is_disjoint() && read.prepare<W>(set_, from, 0) &&
           written.matches(read);
  }

  void copy_repeated(const Node& to, std::byte* target, int64_t to_stride, const Node& from, const std::byte* source,
                     int64_t from_stride, int64_t rows) const {
    const auto count = static_cast<int64_t>(to.count);
    if (to.kind == SPL_LEAF_VECTOR && from.kind == SPL_LEAF_VECTOR && to.block == from.block &&
        to.count == from.count) {
      const Grid::Side to_side{to_stride, to.stride};
      return copy_grid(set_, target, source,
                       {rows, count, static_cast<int64_t>(to.block), to_side, {from_stride, from.stride}});
    }
    if (is_struct_table(to) && is_struct_table(from))
      return copy_structs(to, target, to_stride, from, source, from_stride, rows);
    for (int64_t i = 0; i < rows; ++i) copy(to, target + i * to_stride, from, source + i * from_stride);
  }

  // Copies everything where both nodes are grids. False: they are not, and nothing has been done.
  [[nodiscard]] bool copy_grids(const Node& to, std::byte* target, const Node& from, const std::byte* source) const {
    Grid grid;
    if (!common_grid(to, from, grid)) return false;
    copy_grid(set_, target, source, grid);
    return true;
  }

  void copy(const Node& to, std::byte* target, const Node& from, const std::byte* source) const {
    if (copy_grids(to, target, from, source)) return;
    if (is_table(to)) return copy_table(to, target, from, source);
    const auto count = static_cast<int64_t>(to.count);
    switch (to.kind) {
      case SPL_NODE_LOOP:
        return copy_repeated(child_of(to_, to), target, to.stride, child_of(from_, from), source, from.stride, count);
      case SPL_NODE_LIST:
        for (int64_t i = 0; i < count; ++i) {
          copy(child_of(to_, to), target + places(to)[i], child_of(from_, from), source + places(from)[i]);
        }
        return;
      default:
        for (int64_t i = 0; i < count; ++i) {
          const Member& a = members(to)[i];
          const Member& b = members(from)[i];
          copy(node_at(to_, a.child), target + a.offset, node_at(from_, b.child), source + b.offset);
        }
    }
  }

  // Copies the packed bytes [first, last) of two nodes that agree, in whole blocks. What lies before, between and
  // behind these is left to rest(first, last). All positions count from `start`, the position of the nodes.
  template <class Rest>
  void copy_part(const Node& to, std::byte* target, const Node& from, const std::byte* source, int64_t start,
                 int64_t first, int64_t last, const Rest& rest) const {
    if (first >= last) return;
    if (first == 0 && last == static_cast<int64_t>(to.size)) return copy(to, target, from, source);
    Grid grid;
    const auto copy_rest = [&](int64_t begin, int64_t end) {
      if (begin < end) rest(start + begin, start + end);
    };
    if (common_grid(to, from, grid)) {
      const int64_t begin = (first + grid.block - 1) / grid.block;
      const int64_t end = last / grid.block;
      if (begin >= end) return copy_rest(first, last);
      copy_rest(first, begin * grid.block);
      copy_blocks(target, source, grid, begin, end);
      return copy_rest(end * grid.block, last);
    }
    if (to.kind == SPL_LEAF_LIST && from.kind == SPL_LEAF_LIST && to.block == from.block) {
      const auto block = static_cast<int64_t>(to.block);
      const int64_t begin = (first + block - 1) / block;
      const int64_t end = last / block;
      if (begin >= end) return copy_rest(first, last);
      copy_rest(first, begin * block);
      kernels().copy[block_class(block)](target, places(to) + begin, source, places(from) + begin, end - begin, block);
      return copy_rest(end * block, last);
    }
    if (to.kind == SPL_NODE_LOOP && from.kind == SPL_NODE_LOOP) {
      return copy_rows(child_of(to_, to), target, to.stride, child_of(from_, from), source, from.stride, start, first,
                       last, rest);
    }
    if (to.kind != from.kind || (to.kind != SPL_NODE_LIST && to.kind != SPL_NODE_MEMBERS))
      return copy_rest(first, last);
    const bool is_list = to.kind == SPL_NODE_LIST;
    int64_t at_byte = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(to.count) && at_byte < last; ++i) {
      const Node& a = is_list ? child_of(to_, to) : node_at(to_, members(to)[i].child);
      const Node& b = is_list ? child_of(from_, from) : node_at(from_, members(from)[i].child);
      const auto size = static_cast<int64_t>(a.size);
      copy_part(a, target + (is_list ? places(to)[i] : members(to)[i].offset), b,
                source + (is_list ? places(from)[i] : members(from)[i].offset), start + at_byte,
                std::max<int64_t>(first - at_byte, 0), std::min(last - at_byte, size), rest);
      at_byte += size;
    }
  }

  // Like copy_part(), for a row of nodes for which can_copy_repeated() is true.
  template <class Rest>
  void copy_rows(const Node& to, std::byte* target, int64_t to_stride, const Node& from, const std::byte* source,
                 int64_t from_stride, int64_t start, int64_t first, int64_t last, const Rest& rest) const {
    const auto size = static_cast<int64_t>(to.size);
    const int64_t begin = (first + size - 1) / size;
    const int64_t end = last / size;
    const bool are_structs = is_struct_table(to) && is_struct_table(from);
    const auto part = [&](int64_t row, int64_t from_byte, int64_t to_byte) {
      if (from_byte >= to_byte) return;
      const int64_t row_start = start + row * size;
      if (are_structs) return rest(row_start + from_byte, row_start + to_byte);
      copy_part(to, target + row * to_stride, from, source + row * from_stride, row_start, from_byte, to_byte, rest);
    };
    if (begin > end) return part(end, first - end * size, last - end * size);
    part(begin - 1, first - (begin - 1) * size, begin * size > first ? size : 0);
    if (begin < end) {
      copy_repeated(to, target + begin * to_stride, to_stride, from, source + begin * from_stride, from_stride,
                    end - begin);
    }
    part(end, 0, last - end * size);
  }

 private:
  // Copies the blocks [begin, end) of a grid: a part of a row, whole rows, a part of a row. They are written past the
  // caches where the whole grid would be.
  void copy_blocks(std::byte* target, const std::byte* source, const Grid& grid, int64_t begin, int64_t end) const {
    const auto part = [&](int64_t row, int64_t first, int64_t rows, int64_t blocks) {
      if (rows <= 0 || blocks <= 0) return;
      Grid piece = grid;
      piece.rows = rows;
      piece.blocks = blocks;
      std::byte* const to = target + row * grid.to.row_stride + first * grid.to.block_stride;
      const std::byte* const from = source + row * grid.from.row_stride + first * grid.from.block_stride;
      if (is_streamed(Mode::copy, to, grid.block, grid.bytes())) return set_.stream_grid(to, from, piece);
      copy_grid(set_, to, from, piece);
    };
    const int64_t row = begin / grid.blocks;
    const int64_t first = begin % grid.blocks;
    const int64_t last_row = end / grid.blocks;
    if (row == last_row) return part(row, first, 1, end - begin);
    if (first > 0) part(row, first, 1, grid.blocks - first);
    const int64_t whole_begin = first > 0 ? row + 1 : row;
    part(whole_begin, 0, last_row - whole_begin, grid.blocks);
    part(last_row, 0, 1, end % grid.blocks);
  }

  // A vector, or a loop over one: rows x blocks of `block` bytes.
  struct Shape {
    int64_t rows = 0, blocks = 0, block = 0;
    Grid::Side step;
  };

  static bool is_table(const Node& node) { return node.kind == SPL_LEAF_LIST || node.kind == SPL_LEAF_RUNS; }

  // True for a struct, as in arrays of structs: a few short runs.
  static bool is_struct_table(const Node& node) { return is_table(node) && is_struct(node); }

  void copy_structs(const Node& to, std::byte* target, int64_t to_stride, const Node& from, const std::byte* source,
                    int64_t from_stride, int64_t rows) const {
    if (rows > 1 && to.kind == SPL_LEAF_RUNS && from.kind == SPL_LEAF_RUNS && have_same_lengths(to, from) &&
        kernels().copy_structs(target, reinterpret_cast<const Run*>(&to + 1), to_stride, source,
                               reinterpret_cast<const Run*>(&from + 1), from_stride, static_cast<int64_t>(to.count),
                               rows)) {
      return;
    }
    StructMoves written;
    StructMoves read;
    if (written.prepare<W>(set_, to, to_stride) && read.prepare<W>(set_, from, from_stride)) {
      written.copy(target, read, source, rows);
    }
  }

  // True if two tables have runs of the same lengths. Tables that are matches() as moves may be cut at other places.
  static bool have_same_lengths(const Node& to, const Node& from) {
    if (to.count != from.count) return false;
    const Run* const a = reinterpret_cast<const Run*>(&to + 1);
    const Run* const b = reinterpret_cast<const Run*>(&from + 1);
    for (int64_t i = 0; i <= static_cast<int64_t>(to.count); ++i) {
      if (a[i].start != b[i].start) return false;
    }
    return true;
  }

  // Returns the length of the first entry if the mean differs from it by no more than a sixteenth, or 0. Tables of the
  // same length are copied in stretches; others faster through a buffer, because walking them together takes one
  // decision a piece.
  static int64_t common_length(const Node& node) {
    if (node.kind == SPL_LEAF_LIST) return static_cast<int64_t>(node.block);
    const auto length = static_cast<int64_t>(reinterpret_cast<const Run*>(&node + 1)[1].start);
    const int64_t wanted = static_cast<int64_t>(node.count) * length;
    return std::abs(static_cast<int64_t>(node.size) - wanted) <= wanted / 16 ? length : 0;
  }

  // True if the entries are, on the average, too long to be copied faster through a buffer.
  static bool has_long_entries(const Node& node) {
    constexpr int64_t coarse_bytes = 64;
    return static_cast<int64_t>(node.size) >= static_cast<int64_t>(node.count) * coarse_bytes;
  }

  static Table<Offset, Run> table_of(const Node& node) {
    const auto count = static_cast<int64_t>(node.count);
    if (node.kind == SPL_LEAF_RUNS) return {count, nullptr, 0, reinterpret_cast<const Run*>(&node + 1)};
    return {count, reinterpret_cast<const Offset*>(&node + 1), static_cast<int64_t>(node.block), nullptr};
  }

  [[nodiscard]] const auto& kernels() const {
    if constexpr (W::bits == 32) {
      return set_.narrow;
    } else {
      return set_.wide;
    }
  }

  void copy_table(const Node& to, std::byte* target, const Node& from, const std::byte* source) const {
    const auto block = static_cast<int64_t>(to.block);
    if (to.kind == SPL_LEAF_LIST && from.kind == SPL_LEAF_LIST && to.block == from.block) {
      return kernels().copy[block_class(block)](target, places(to), source, places(from),
                                                static_cast<int64_t>(to.count), block);
    }
    kernels().copy_tables(target, table_of(to), source, table_of(from), static_cast<int64_t>(to.size));
  }

  static const Node& node_at(const std::byte* blob, typename W::Unsigned place) {
    return *reinterpret_cast<const Node*>(blob + place);
  }
  static const Node& child_of(const std::byte* blob, const Node& node) { return node_at(blob, node.child); }
  static const Offset* places(const Node& node) { return reinterpret_cast<const Offset*>(&node + 1); }
  static const Member* members(const Node& node) { return reinterpret_cast<const Member*>(&node + 1); }

  static bool shape_of(const std::byte* blob, const Node& node, Shape& shape) {
    if (node.kind == SPL_LEAF_VECTOR) {
      shape = {1, static_cast<int64_t>(node.count), static_cast<int64_t>(node.block), {0, node.stride}};
      return true;
    }
    if (node.kind != SPL_NODE_LOOP || child_of(blob, node).kind != SPL_LEAF_VECTOR) return false;
    const Node& leaf = child_of(blob, node);
    shape = {static_cast<int64_t>(node.count),
             static_cast<int64_t>(leaf.count),
             static_cast<int64_t>(leaf.block),
             {node.stride, leaf.stride}};
    return true;
  }

  // Splits the blocks of `large` into blocks as long as those of `small`, so that both are the same grid. False:
  // `large` has several rows, or the lengths do not fit.
  static bool split(Shape& large, Shape& small) {
    if (large.rows != 1 || large.block % small.block != 0) return false;
    const int64_t times = large.block / small.block;
    if (small.rows == 1 && small.blocks == large.blocks * times) {
      small.rows = large.blocks;
      small.blocks = times;
      small.step.row_stride = times * small.step.block_stride;
    } else if (small.rows != large.blocks || small.blocks != times) {
      return false;
    }
    large.rows = large.blocks;
    large.blocks = times;
    large.block = small.block;
    large.step = {large.step.block_stride, small.block};
    return true;
  }

  bool common_grid(const Node& to, const Node& from, Grid& grid) const {
    if (to.kind == SPL_LEAF_VECTOR && from.kind == SPL_LEAF_VECTOR && to.block == from.block && to.size == from.size) {
      grid.rows = 1;
      grid.blocks = static_cast<int64_t>(to.count);
      grid.block = static_cast<int64_t>(to.block);
      grid.to.block_stride = to.stride;
      grid.from.block_stride = from.stride;
      return true;
    }
    Shape a;
    Shape b;
    if (!shape_of(to_, to, a) || !shape_of(from_, from, b)) return false;
    if (a.block > b.block && !split(a, b)) return false;
    if (b.block > a.block && !split(b, a)) return false;
    if (a.rows != b.rows || a.blocks != b.blocks || a.block != b.block) return false;
    grid = {a.rows, a.blocks, a.block, a.step, b.step};
    return true;
  }

  const std::byte* to_;
  const std::byte* from_;
  const KernelSet& set_;
};

}  // namespace spinloom::layout
