#include "memory/layout/copy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/checked.hpp"
#include "memory/layout/copy_walker.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/struct_moves.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {
namespace {

// Walks the nodes of a blob and hands whole shapes to the kernels. At each level, a range of packed bytes is cut into
// a partial block, whole blocks and a partial block, so that the whole blocks still go through one loop.
template <class W, Mode mode>
class NodeCopier {
 public:
  using Node = typename W::Node;
  using Offset = typename W::Signed;
  using Run = typename W::Run;

  NodeCopier(const Blob& blob, const KernelSet& set) : blob_(blob.data()), set_(set) {}

  // Moves the packed bytes [first, last) of a row of elements, `extent` apart. `memory` is the place of element 0,
  // `packed` the place of byte `first`.
  void move_range(std::byte* memory, int64_t extent, std::byte* packed, int64_t first, int64_t last) const {
    move_row_part(node_at(sizeof(spl_layout_header)), memory, extent, packed, first, last);
  }
  // Moves all packed bytes of `count` elements.
  [[gnu::always_inline]] void move_all(std::byte* memory, int64_t extent, std::byte* packed, int64_t count) const {
    const Node& root = node_at(sizeof(spl_layout_header));
    if (count > 1) return move_repeated(root, memory, extent, packed, count);
    if (root.kind > SPL_LEAF_LAST) return move_node(root, memory, packed);
    move_leaf(root, memory, packed);
  }

 private:
  const Node& node_at(int64_t place) const { return *reinterpret_cast<const Node*>(blob_ + place); }
  const Node& child_of(const Node& node) const { return node_at(static_cast<int64_t>(node.child)); }

  static const Run* runs_of(const Node& leaf) { return reinterpret_cast<const Run*>(&leaf + 1); }

  void move_grid(std::byte* memory, std::byte* packed, int64_t rows, int64_t row, const Node& leaf) const {
    const auto block = static_cast<int64_t>(leaf.block);
    const auto size = static_cast<int64_t>(leaf.size);
    if (leaf.count == 1) {  // rows of one run each: one row of runs
      move_vector(memory, packed, rows, row, block);
    } else if (mode == Mode::pack) {
      copy_grid(set_, packed, memory,
                {rows, static_cast<int64_t>(leaf.count), block, {size, block}, {row, leaf.stride}});
    } else {
      copy_grid(set_, memory, packed,
                {rows, static_cast<int64_t>(leaf.count), block, {row, leaf.stride}, {size, block}});
    }
  }

  void move_vector(std::byte* memory, std::byte* packed, int64_t count, int64_t stride, int64_t block) const {
    const bool past_caches = is_streamed(mode, mode == Mode::pack ? packed : memory, block, count * block);
    const bool is_paced_row = is_paced(mode, block, count * block, stride);
    const RowKernel kernel = is_paced_row ? set_.paced_row : set_.row[static_cast<size_t>(mode)][block_class(block)];
    if (mode == Mode::pack) {
      if (past_caches) return set_.stream_grid(packed, memory, {1, count, block, {0, block}, {0, stride}});
      kernel(packed, memory, count, block, block, stride);
    } else {
      if (past_caches) return set_.stream_grid(memory, packed, {1, count, block, {0, stride}, {0, block}});
      kernel(memory, packed, count, block, stride, block);
    }
  }

  [[nodiscard]] const auto& tables() const {
    if constexpr (W::bits == 32) {
      return set_.narrow;
    } else {
      return set_.wide;
    }
  }

  void move_list(std::byte* memory, std::byte* packed, const Offset* places, int64_t count, int64_t block) const {
    if (mode == Mode::pack) {
      tables().pack[block_class(block)](packed, memory, places, count, block);
    } else {
      tables().unpack[block_class(block)](memory, packed, places, count, block);
    }
  }

  void move_runs(std::byte* memory, std::byte* packed, const Run* run, int64_t count) const {
    if (mode == Mode::pack) {
      tables().pack_runs(packed, memory, run, count);
    } else {
      tables().unpack_runs(memory, packed, run, count);
    }
  }

  // Copies up to four runs one by one: for a single struct, starting a kernel's loop costs more than the loop saves.
  void move_few_runs(std::byte* memory, std::byte* packed, const Run* run, int64_t count) const {
    if (count > 4) return move_runs(memory, packed, run, count);
    for (int64_t i = 0; i < count; ++i) {
      move_piece(memory + run[i].offset, packed + run[i].start, static_cast<int64_t>(run[i + 1].start - run[i].start));
    }
  }

  // Moves an array of `rows` structs, each of a few short runs, `stride` apart. False: nothing has been done.
  bool move_structs(std::byte* memory, int64_t stride, std::byte* packed, int64_t rows, const Node& leaf) const {
    if (!is_struct(leaf) || rows < 2) return false;
    if (move_windows(memory, stride, packed, rows, leaf)) return true;
    StructMoves moves;
    if (!moves.prepare<W>(set_, leaf, stride) || (mode != Mode::pack && !moves.is_disjoint())) return false;
    if (mode == Mode::pack) {
      moves.pack(packed, memory, rows);
    } else {
      moves.unpack(memory, packed, rows);
    }
    return true;
  }

  bool move_windows(std::byte* memory, int64_t stride, std::byte* packed, int64_t rows, const Node& leaf) const {
    const auto count = static_cast<int64_t>(leaf.count);
    const Run* run = runs_of(leaf);
    std::array<Run, struct_runs_max + 1> list_runs;
    if (leaf.kind == SPL_LEAF_LIST) {
      const auto* const places = reinterpret_cast<const Offset*>(&leaf + 1);
      for (int64_t i = 0; i < count; ++i) list_runs[i].offset = places[i];
      for (int64_t i = 0; i <= count; ++i) list_runs[i].start = static_cast<typename W::Unsigned>(i) * leaf.block;
      run = list_runs.data();
    }
    if (mode == Mode::pack) return tables().pack_structs(packed, memory, run, count, rows, stride);
    return tables().unpack_structs(memory, packed, run, count, rows, stride);
  }

  void move_piece(std::byte* memory, std::byte* packed, int64_t bytes) const {
    if (bytes == 0) return;
    if (mode == Mode::pack) {
      set_.piece(packed, memory, bytes);
    } else {
      set_.piece(memory, packed, bytes);
    }
  }

  [[gnu::always_inline]] void move_leaf(const Node& node, std::byte* memory, std::byte* packed) const {
    const auto count = static_cast<int64_t>(node.count);
    const auto block = static_cast<int64_t>(node.block);
    if (node.kind == SPL_LEAF_VECTOR) return move_vector(memory, packed, count, node.stride, block);
    if (node.kind == SPL_LEAF_RUNS) return move_few_runs(memory, packed, runs_of(node), count);
    move_list(memory, packed, reinterpret_cast<const Offset*>(&node + 1), count, block);
  }

  void move_node(const Node& node, std::byte* memory, std::byte* packed) const {
    const auto count = static_cast<int64_t>(node.count);
    const auto block = static_cast<int64_t>(node.block);
    switch (node.kind) {
      case SPL_LEAF_VECTOR:
      case SPL_LEAF_LIST:
      case SPL_LEAF_RUNS: return move_leaf(node, memory, packed);
      case SPL_NODE_LOOP: return move_repeated(child_of(node), memory, node.stride, packed, count);
      case SPL_NODE_LIST: {
        const auto* const places = reinterpret_cast<const Offset*>(&node + 1);
        for (int64_t i = 0; i < count; ++i) move_node(child_of(node), memory + places[i], packed + i * block);
        return;
      }
      default: {
        const auto* const member = reinterpret_cast<const typename W::Member*>(&node + 1);
        for (int64_t i = 0; i < count; ++i) {
          move_node(node_at(static_cast<int64_t>(member[i].child)), memory + member[i].offset,
                    packed + member[i].start);
        }
      }
    }
  }

  void move_repeated(const Node& child, std::byte* memory, int64_t stride, std::byte* packed, int64_t count) const {
    if (child.kind == SPL_LEAF_VECTOR) return move_grid(memory, packed, count, stride, child);
    if (child.kind <= SPL_LEAF_LAST && move_structs(memory, stride, packed, count, child)) return;
    for (int64_t i = 0; i < count; ++i) {
      move_node(child, memory + i * stride, packed + i * static_cast<int64_t>(child.size));
    }
  }

  // Moves a part of a row of equal children: part of the first child, whole children, part of the last.
  void move_row_part(const Node& child, std::byte* memory, int64_t stride, std::byte* packed, int64_t first,
                     int64_t last) const {
    const auto size = static_cast<int64_t>(child.size);
    const int64_t index = first / size;
    memory += index * stride;
    first -= index * size;
    last -= index * size;
    if (first > 0) {
      const int64_t stop = last < size ? last : size;
      move_part(child, memory, packed, first, stop);
      packed += stop - first;
      last -= size;
      if (last <= 0) return;
      memory += stride;
    }
    const int64_t whole_count = last / size;
    if (whole_count > 0) move_repeated(child, memory, stride, packed, whole_count);
    const int64_t rest = last - whole_count * size;
    if (rest > 0) move_part(child, memory + whole_count * stride, packed + whole_count * size, 0, rest);
  }

  // Moves a part of a node: 0 <= first < last <= size, but not the whole node.
  void move_part(const Node& node, std::byte* memory, std::byte* packed, int64_t first, int64_t last) const {
    const auto block = static_cast<int64_t>(node.block);
    switch (node.kind) {
      case SPL_LEAF_VECTOR: return move_vector_part(memory, node.stride, block, packed, first, last);
      case SPL_LEAF_LIST: {
        const auto* const places = reinterpret_cast<const Offset*>(&node + 1);
        return split_blocks(
            block, first, last,
            [&](int64_t i, int64_t within, int64_t at, int64_t bytes) {
              move_piece(memory + places[i] + within, packed + at, bytes);
            },
            [&](int64_t i, int64_t at, int64_t count) { move_list(memory, packed + at, places + i, count, block); });
      }
      case SPL_NODE_LOOP: return move_row_part(child_of(node), memory, node.stride, packed, first, last);
      case SPL_NODE_LIST: {
        const auto* const places = reinterpret_cast<const Offset*>(&node + 1);
        const Node& child = child_of(node);
        return split_blocks(
            block, first, last,
            [&](int64_t i, int64_t within, int64_t at, int64_t bytes) {
              move_part(child, memory + places[i], packed + at, within, within + bytes);
            },
            [&](int64_t i, int64_t at, int64_t count) {
              for (int64_t k = 0; k < count; ++k) move_node(child, memory + places[i + k], packed + at + k * block);
            });
      }
      case SPL_LEAF_RUNS:
        return split_entries(
            runs_of(node), static_cast<int64_t>(node.count), first, last,
            [&](const Run& run, int64_t within, int64_t at, int64_t bytes) {
              move_piece(memory + run.offset + within, packed + at, bytes);
            },
            [&](const Run* run, int64_t at, int64_t count) { move_runs(memory, packed + at, run, count); });
      default:
        return split_entries(
            reinterpret_cast<const typename W::Member*>(&node + 1), static_cast<int64_t>(node.count), first, last,
            [&](const typename W::Member& member, int64_t within, int64_t at, int64_t bytes) {
              move_part(node_at(static_cast<int64_t>(member.child)), memory + member.offset, packed + at, within,
                        within + bytes);
            },
            [&](const typename W::Member* member, int64_t at, int64_t count) {
              for (int64_t i = 0; i < count; ++i) {
                move_node(node_at(static_cast<int64_t>(member[i].child)), memory + member[i].offset,
                          packed + at + static_cast<int64_t>(member[i].start - member->start));
              }
            });
    }
  }

  void move_vector_part(std::byte* memory, int64_t stride, int64_t block, std::byte* packed, int64_t first,
                        int64_t last) const {
    split_blocks(
        block, first, last,
        [&](int64_t i, int64_t within, int64_t at, int64_t bytes) {
          move_piece(memory + i * stride + within, packed + at, bytes);
        },
        [&](int64_t i, int64_t at, int64_t count) {
          move_vector(memory + i * stride, packed + at, count, stride, block);
        });
  }

  // Calls on_part(i, within, at, bytes) for a part of block i, and on_whole(i, at, count) for whole blocks. `at` counts
  // packed bytes from `first`.
  template <class OnPart, class OnWhole>
  static void split_blocks(int64_t block, int64_t first, int64_t last, OnPart&& on_part, OnWhole&& on_whole) {
    int64_t i = first / block;
    const int64_t within = first - i * block;
    int64_t at = 0;
    if (within > 0) {
      const int64_t bytes = block - within < last - first ? block - within : last - first;
      on_part(i, within, int64_t{0}, bytes);
      at = bytes;
      ++i;
    }
    const int64_t left = last - first - at;
    const int64_t count = left / block;
    if (count > 0) on_whole(i, at, count);
    const int64_t rest = left - count * block;
    if (rest > 0) on_part(i + count, int64_t{0}, at + count * block, rest);
  }

  // Does the same as split_blocks() over a table with prefix sums.
  template <class Entry, class OnPart, class OnWhole>
  static void split_entries(const Entry* table, int64_t count, int64_t first, int64_t last, OnPart&& on_part,
                            OnWhole&& on_whole) {
    const Entry* entry = find_entry(table, count, first);
    int64_t position = first;
    if (const auto start = static_cast<int64_t>(entry->start); start < first) {
      const auto end = static_cast<int64_t>(entry[1].start);
      const int64_t stop = end < last ? end : last;
      on_part(*entry, first - start, int64_t{0}, stop - first);
      position = stop;
      ++entry;
    }
    if (position == last) return;
    const Entry* const stop =
        find_entry(entry, table + count - entry, last);  // holds byte `last`, or is the last entry
    const Entry* const end = static_cast<int64_t>(stop[1].start) <= last ? stop + 1 : stop;
    if (end != entry) {
      on_whole(entry, position - first, end - entry);
      position = static_cast<int64_t>(end->start);
    }
    if (position < last) on_part(*end, int64_t{0}, position - first, last - position);
  }

  // Returns the last entry that starts at or before `position`.
  template <class Entry>
  static const Entry* find_entry(const Entry* table, int64_t count, int64_t position) {
    while (count > 1) {
      const int64_t half = count / 2;
      table += static_cast<int64_t>(table[half].start) <= position ? half : 0;
      count -= half;
    }
    return table;
  }

  const std::byte* blob_;
  const KernelSet& set_;
};

bool is_valid_range(const Blob& blob, int64_t count, int64_t first, int64_t last, size_t packed_bytes) {
  int64_t total = 0;
  return count >= 0 && !__builtin_mul_overflow(count, blob.size(), &total) && first >= 0 && first <= last &&
         last <= total && packed_bytes == static_cast<uint64_t>(last - first);
}

// Returns the Error that says why is_valid_range() is false.
[[gnu::cold, gnu::noinline]] Status range_error(const Blob& blob, int64_t count, int64_t first, int64_t last,
                                                size_t packed_bytes) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_ASSIGN(const int64_t total, checked::mul(count, blob.size()));
  if (first < 0 || first > last || last > total) {
    return fail(Code::invalid, "packed bytes ", first, " to ", last, " of a message of ", total, " bytes");
  }
  return fail(Code::invalid, "a packed buffer of ", packed_bytes, " bytes for ", last - first, " bytes");
}

// Called where there is no kernel set: SPINLOOM_KERNEL names the walker, or nothing that runs here.
[[gnu::cold, gnu::noinline]] Status walk_or_error(const Blob& blob, bool is_pack, std::byte* memory, std::byte* packed,
                                                  int64_t first, int64_t last) {
  SPL_TRY(kernels());
  walk(blob, is_pack, memory, packed, first, last);
  return {};
}

template <Mode mode>
[[gnu::noinline]] Status move_any(const Blob& blob, int64_t count, std::byte* base, int64_t first, int64_t last,
                                  std::byte* packed, size_t packed_bytes) {
  if (!is_valid_range(blob, count, first, last, packed_bytes))
    return range_error(blob, count, first, last, packed_bytes);
  if (first == last) return {};
  const spl_layout_header& header = blob.header();
  std::byte* const memory = base + header.true_lb;
  const KernelSet* const set = kernels_if_any();
  if (set == nullptr) return walk_or_error(blob, mode == Mode::pack, memory, packed, first, last);
  if (header.width == 32) {
    NodeCopier<Narrow, mode>(blob, *set).move_range(memory + header.origin, header.extent, packed, first, last);
  } else {
    NodeCopier<Wide, mode>(blob, *set).move_range(memory + header.origin, header.extent, packed, first, last);
  }
  return {};
}

// Moves a whole message of a narrow blob that stays in the caches. `bytes` is the length of the message, or 0 if the
// caller has room for any length. False: nothing has been done, as before the first call of kernels().
template <Mode mode>
[[gnu::always_inline]] inline bool at_once(const Blob& blob, int64_t count, std::byte* base, std::byte* packed,
                                           int64_t bytes) {
  const spl_layout_header& header = blob.header();
  const KernelSet* const set = detail::kernels_in_use.load(std::memory_order_relaxed);
  const auto size = static_cast<int64_t>(header.size);
  int64_t total = size;
  if (count != 1 && (count < 1 || __builtin_mul_overflow(count, size, &total))) return false;
  if (set == nullptr || header.width != 32 || total == 0 || total >= stream_bytes_min) return false;
  if (bytes != 0 && bytes != total) return false;
  const auto& root = *reinterpret_cast<const spl_node_narrow*>(&header + 1);
  std::byte* const memory = base + header.true_lb + header.origin;
  if (root.kind == SPL_LEAF_VECTOR && root.count == 1 && (count == 1 || header.extent == size)) {
    std::memcpy(mode == Mode::pack ? packed : memory, mode == Mode::pack ? memory : packed, static_cast<size_t>(total));
  } else {
    NodeCopier<Narrow, mode>(blob, *set).move_all(memory, header.extent, packed, count);
  }
  return true;
}

template <Mode mode>
Status move(const Blob& blob, int64_t count, std::byte* base, int64_t first, int64_t last, std::byte* packed,
            size_t packed_bytes) {
  if (first == 0 && last > 0 && packed_bytes == static_cast<size_t>(last) &&
      at_once<mode>(blob, count, base, packed, last)) {
    return {};
  }
  return move_any<mode>(blob, count, base, first, last, packed, packed_bytes);
}

}  // namespace

bool pack_at_once(const Blob& blob, int64_t count, const std::byte* base, std::byte* packed) {
  return at_once<Mode::pack>(blob, count, const_cast<std::byte*>(base), packed, 0);
}

bool unpack_at_once(const Blob& blob, int64_t count, std::byte* base, const std::byte* packed) {
  return at_once<Mode::unpack>(blob, count, base, const_cast<std::byte*>(packed), 0);
}

Status pack(const Blob& blob, int64_t count, const std::byte* base, int64_t first, int64_t last,
            std::span<std::byte> packed) {
  return move<Mode::pack>(blob, count, const_cast<std::byte*>(base), first, last, packed.data(), packed.size());
}

Status unpack(const Blob& blob, int64_t count, std::byte* base, int64_t first, int64_t last,
              std::span<const std::byte> packed) {
  return move<Mode::unpack>(blob, count, base, first, last, const_cast<std::byte*>(packed.data()), packed.size());
}

}  // namespace spinloom::layout
