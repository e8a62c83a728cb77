#include "layout/transfer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/checked.hpp"
#include "layout/copy.hpp"
#include "layout/kernel.hpp"
#include "layout/struct_moves.hpp"
#include "layout/width.hpp"

namespace spinloom::layout {
namespace {

// The size of the buffer between two sides that have no loop in common: it stays in the first-level cache.
constexpr int64_t stage_bytes = 16 << 10;

// Walks two blobs side by side as long as their nodes agree: equal grids, lists of equal blocks, members of equal
// sizes.
template <class W>
class Pair {
 public:
  using Node = typename W::Node;
  using Offset = typename W::Signed;
  using Member = typename W::Member;
  using Run = typename W::Run;

  Pair(const Blob& to, const Blob& from, const KernelSet& set) : to_(to.data()), from_(from.data()), set_(set) {}

  [[nodiscard]] static const Node& root(const Blob& blob) {
    return *reinterpret_cast<const Node*>(blob.data() + sizeof(spl_layout_header));
  }

  // Whether copy() can handle these two nodes.
  [[nodiscard]] bool agree(const Node& to, const Node& from) const {
    if (to.size != from.size) return false;
    Grid grid;
    if (common_grid(to, from, grid)) return true;
    if (is_table(to) && is_table(from)) {
      return (common_length(to) != 0 && common_length(to) == common_length(from)) || (coarse(to) && coarse(from));
    }
    if (to.kind != from.kind || to.count != from.count) return false;
    switch (to.kind) {
      case SPL_NODE_LOOP: return agree_repeated(child(to_, to), to.stride, child(from_, from));
      case SPL_NODE_LIST: return agree(child(to_, to), child(from_, from));
      case SPL_NODE_MEMBERS: {
        const Member* const a = members(to);
        const Member* const b = members(from);
        for (int64_t i = 0; i < static_cast<int64_t>(to.count); ++i) {
          if (a[i].start != b[i].start || !agree(at(to_, a[i].child), at(from_, b[i].child))) return false;
        }
        return true;
      }
      default: return false;
    }
  }

  // Whether copy_repeated() can handle these two nodes. Short tables that differ are copied faster through a buffer.
  [[nodiscard]] bool agree_repeated(const Node& to, int64_t to_stride, const Node& from) const {
    if (!is_few(to) || !is_few(from)) return agree(to, from);
    StructMoves written;
    StructMoves read;
    return written.make<W>(set_, to, to_stride) && written.is_apart() && read.make<W>(set_, from, 0) &&
           written.alike(read);
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
    if (is_few(to) && is_few(from)) return copy_structs(to, target, to_stride, from, source, from_stride, rows);
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
    const Offset* const to_places = reinterpret_cast<const Offset*>(&to + 1);
    const Offset* const from_places = reinterpret_cast<const Offset*>(&from + 1);
    switch (to.kind) {
      case SPL_NODE_LOOP:
        return copy_repeated(child(to_, to), target, to.stride, child(from_, from), source, from.stride, count);
      case SPL_NODE_LIST:
        for (int64_t i = 0; i < count; ++i) {
          copy(child(to_, to), target + to_places[i], child(from_, from), source + from_places[i]);
        }
        return;
      default:
        for (int64_t i = 0; i < count; ++i) {
          const Member& a = members(to)[i];
          const Member& b = members(from)[i];
          copy(at(to_, a.child), target + a.offset, at(from_, b.child), source + b.offset);
        }
    }
  }

 private:
  // A vector, or a loop over one: rows x blocks of `block` bytes.
  struct Shape {
    int64_t rows = 0, blocks = 0, block = 0;
    Grid::Side step;
  };

  static bool is_table(const Node& node) { return node.kind == SPL_LEAF_LIST || node.kind == SPL_LEAF_RUNS; }

  // A struct, as in arrays of structs: a few short runs.
  static bool is_few(const Node& node) { return is_table(node) && is_struct(node); }

  void copy_structs(const Node& to, std::byte* target, int64_t to_stride, const Node& from, const std::byte* source,
                    int64_t from_stride, int64_t rows) const {
    if (rows > 1 && to.kind == SPL_LEAF_RUNS && from.kind == SPL_LEAF_RUNS &&
        kernels().copy_structs(target, reinterpret_cast<const Run*>(&to + 1), to_stride, source,
                               reinterpret_cast<const Run*>(&from + 1), from_stride, static_cast<int64_t>(to.count),
                               rows)) {
      return;
    }
    StructMoves written;
    StructMoves read;
    if (written.make<W>(set_, to, to_stride) && read.make<W>(set_, from, from_stride)) {
      written.copy(target, read, source, rows);
    }
  }

  // The length of nearly all entries, or 0. Tables of the same length are copied in stretches; others faster through a
  // buffer, because walking them together takes one decision a piece.
  static int64_t common_length(const Node& node) {
    if (node.kind == SPL_LEAF_LIST) return static_cast<int64_t>(node.block);
    const auto length = static_cast<int64_t>(reinterpret_cast<const Run*>(&node + 1)[1].start);
    const int64_t wanted = static_cast<int64_t>(node.count) * length;
    return std::abs(static_cast<int64_t>(node.size) - wanted) <= wanted / 16 ? length : 0;
  }

  // Whether the entries are too long to be copied faster through a buffer.
  static bool coarse(const Node& node) {
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
      return kernels().copy[block_class(block)](target, reinterpret_cast<const Offset*>(&to + 1), source,
                                                reinterpret_cast<const Offset*>(&from + 1),
                                                static_cast<int64_t>(to.count), block);
    }
    kernels().copy_tables(target, table_of(to), source, table_of(from), static_cast<int64_t>(to.size));
  }

  static const Node& at(const std::byte* blob, typename W::Unsigned place) {
    return *reinterpret_cast<const Node*>(blob + place);
  }
  static const Node& child(const std::byte* blob, const Node& node) { return at(blob, node.child); }
  static const Member* members(const Node& node) { return reinterpret_cast<const Member*>(&node + 1); }

  static bool shape_of(const std::byte* blob, const Node& node, Shape& shape) {
    if (node.kind == SPL_LEAF_VECTOR) {
      shape = {1, static_cast<int64_t>(node.count), static_cast<int64_t>(node.block), {0, node.stride}};
      return true;
    }
    if (node.kind != SPL_NODE_LOOP || child(blob, node).kind != SPL_LEAF_VECTOR) return false;
    const Node& leaf = child(blob, node);
    shape = {static_cast<int64_t>(node.count),
             static_cast<int64_t>(leaf.count),
             static_cast<int64_t>(leaf.block),
             {node.stride, leaf.stride}};
    return true;
  }

  // Splits the blocks of `large`, which has one row, into blocks as long as those of `small`.
  static bool split(Shape& large, Shape& small) {
    if (large.rows != 1 || large.block % small.block != 0) return false;
    const int64_t times = large.block / small.block;
    if (small.rows == 1 && small.blocks == large.blocks * times) {
      small.rows = large.blocks;
      small.blocks = times;
      small.step.row = times * small.step.block;
    } else if (small.rows != large.blocks || small.blocks != times) {
      return false;
    }
    large.rows = large.blocks;
    large.blocks = times;
    large.block = small.block;
    large.step = {large.step.block, small.block};
    return true;
  }

  bool common_grid(const Node& to, const Node& from, Grid& grid) const {
    if (to.kind == SPL_LEAF_VECTOR && from.kind == SPL_LEAF_VECTOR && to.block == from.block && to.size == from.size) {
      grid.rows = 1;
      grid.blocks = static_cast<int64_t>(to.count);
      grid.block = static_cast<int64_t>(to.block);
      grid.to.block = to.stride;
      grid.from.block = from.stride;
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

// Copies element by element in one walk, where the nodes of both sides agree.
template <class W>
bool copy_together(const KernelSet& set, const Source& from, const Target& to) {
  using P = Pair<W>;
  if (to.count != from.count) return false;
  const P pair(to.blob, from.blob, set);
  const typename W::Node& a = P::root(to.blob);
  const typename W::Node& b = P::root(from.blob);
  std::byte* target = to.base + to.blob.true_lb() + to.blob.header().origin;
  const std::byte* source = from.base + from.blob.true_lb() + from.blob.header().origin;
  if (to.count == 1 && pair.copy_grids(a, target, b, source)) return true;
  if (to.count == 1) {
    if (!pair.agree(a, b)) return false;
    pair.copy(a, target, b, source);
    return true;
  }
  if (!pair.agree_repeated(a, to.blob.extent(), b)) return false;
  pair.copy_repeated(a, target, to.blob.extent(), b, source, from.blob.extent(), to.count);
  return true;
}

// The commonest cases, tried first: one run to another, or one vector to another of the same blocks.
template <class W>
bool copy_single(const KernelSet& set, const Source& from, const Target& to) {
  const auto& a = Pair<W>::root(to.blob);
  const auto& b = Pair<W>::root(from.blob);
  if (a.kind != SPL_LEAF_VECTOR || b.kind != SPL_LEAF_VECTOR || a.block != b.block) return false;
  const auto block = static_cast<int64_t>(a.block);
  std::byte* const target = to.base + to.blob.true_lb() + to.blob.header().origin;
  const std::byte* const source = from.base + from.blob.true_lb() + from.blob.header().origin;
  const auto count = static_cast<int64_t>(a.count);
  const auto size = static_cast<int64_t>(a.size);
  if (a.count == 1) {
    if (size >= stream_bytes_min) return false;
    std::memcpy(target, source, static_cast<size_t>(size));
  } else if (streams(Mode::copy, target, block, size)) {
    set.stream_grid(target, source, {1, count, block, {0, a.stride}, {0, b.stride}});
  } else if (paces(Mode::copy, block, size, a.stride)) {
    set.paced_row(target, source, count, block, a.stride, b.stride);
  } else {
    set.row[static_cast<size_t>(Mode::copy)][block_class(block)](target, source, count, block, a.stride, b.stride);
  }
  return true;
}

template <class W>
bool one_run(const Blob& blob) {
  const auto& root = Pair<W>::root(blob);
  return root.kind == SPL_LEAF_VECTOR && root.count == 1;
}

bool contiguous(const Blob& blob, int64_t count) {
  return (blob.narrow() ? one_run<Narrow>(blob) : one_run<Wide>(blob)) && (count == 1 || blob.extent() == blob.size());
}

Status copy_staged(const Source& from, const Target& to, int64_t total) {
  std::array<std::byte, stage_bytes> stage;
  for (int64_t first = 0; first < total; first += stage_bytes) {
    const int64_t last = std::min(total, first + stage_bytes);
    const std::span<std::byte> part(stage.data(), static_cast<size_t>(last - first));
    SPL_TRY(pack(from.blob, from.count, from.base, first, last, part));
    SPL_TRY(unpack(to.blob, to.count, to.base, first, last, part));
  }
  return {};
}

[[gnu::cold, gnu::noinline]] Status complaint(const Source& from, const Target& to) {
  if (from.count < 0 || to.count < 0) return fail(Code::invalid, "a copy of a negative count");
  SPL_ASSIGN(const int64_t total, checked::mul(from.count, from.blob.size()));
  SPL_ASSIGN(const int64_t wanted, checked::mul(to.count, to.blob.size()));
  return fail(Code::invalid, "a copy from ", total, " bytes to ", wanted, " bytes");
}

}  // namespace

Status copy(const Source& from, const Target& to) {
  int64_t total = 0;
  int64_t wanted = 0;
  if (from.count < 0 || to.count < 0 || __builtin_mul_overflow(from.count, from.blob.size(), &total) ||
      __builtin_mul_overflow(to.count, to.blob.size(), &wanted) || total != wanted) {
    return complaint(from, to);
  }
  if (total == 0) return {};
  const KernelSet* const set = kernels_if_any();
  const bool single = set != nullptr && from.count == 1 && to.count == 1;
  const bool narrow = from.blob.narrow() && to.blob.narrow();
  if (single && narrow && copy_single<Narrow>(*set, from, to)) return {};
  const auto size = static_cast<size_t>(total);
  if (contiguous(from.blob, from.count)) {
    return unpack(to.blob, to.count, to.base, 0, total, {from.base + from.blob.true_lb(), size});
  }
  if (contiguous(to.blob, to.count)) {
    return pack(from.blob, from.count, from.base, 0, total, {to.base + to.blob.true_lb(), size});
  }
  if (set != nullptr && narrow && copy_together<Narrow>(*set, from, to)) return {};
  if (set != nullptr && !from.blob.narrow() && !to.blob.narrow() && copy_together<Wide>(*set, from, to)) return {};
  return copy_staged(from, to, total);
}

}  // namespace spinloom::layout
