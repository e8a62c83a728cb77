// Kernel tables - blocks at listed places: lists of one length, runs of several, and one table into another.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "memory/layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

template <class Block, class Offset>
void pack_list(std::byte* to, const std::byte* from, const Offset* places, int64_t count, int64_t bytes) {
  const Block block{bytes};
  const int64_t size = Block::fixed_bytes != 0 ? Block::fixed_bytes : bytes;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i) block(to + i * size, from + places[i]);
}

template <class Block, class Offset>
void unpack_list(std::byte* to, const std::byte* from, const Offset* places, int64_t count, int64_t bytes) {
  const Block block{bytes};
  const int64_t size = Block::fixed_bytes != 0 ? Block::fixed_bytes : bytes;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i) block(to + places[i], from + i * size);
}

template <class Block, class Offset>
void copy_list(std::byte* to, const Offset* to_places, const std::byte* from, const Offset* from_places, int64_t count,
               int64_t bytes) {
  const Block block{bytes};
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i) block(to + to_places[i], from + from_places[i]);
}

constexpr int64_t short_run_bytes = 32;

// Copies one run. `room` is the number of bytes of the packed side from here on, or 0 if most runs are long. Masks
// replace branches on the length. When packing, a short run may write too many packed bytes, because the runs behind it
// write those bytes again. Any other masked move begins at a line of the memory side, so that it touches no second
// line.
template <Mode mode>
SPL_FORCE_INLINE void copy_run(std::byte* to, const std::byte* from, int64_t bytes, [[maybe_unused]] int64_t room) {
#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__BMI2__)
  if (room >= short_run_bytes && bytes <= short_run_bytes) {
    const __mmask32 mask = _bzhi_u32(~uint32_t{0}, static_cast<unsigned>(bytes));
    if constexpr (mode == Mode::pack) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_maskz_loadu_epi8(mask, from));
    } else {
      _mm256_mask_storeu_epi8(to, mask, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    return;
  }
  const std::byte* const memory = mode == Mode::pack ? from : to;
  const auto shift = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory) & 63);
  if (shift + bytes <= 64) {
    const __mmask64 mask = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(bytes)) << shift;
    _mm512_mask_storeu_epi8(to - shift, mask, _mm512_maskz_loadu_epi8(mask, from - shift));
    return;
  }
#endif
  copy_piece_inline(to, from, bytes);
}

constexpr int64_t stretch_runs = 32;

// Returns the length of the next stretch_runs runs if they all have the same, otherwise 0.
template <class Run>
SPL_FORCE_INLINE int64_t common_length(const Run* runs) {
  const auto length = runs[1].start - runs[0].start;
  auto difference = length - length;
  for (int64_t i = 0; i < stretch_runs; ++i) difference |= (runs[i + 1].start - runs[i].start) ^ length;
  return difference == 0 ? static_cast<int64_t>(length) : 0;
}

template <class Block, Mode mode, class Run>
SPL_FORCE_INLINE void copy_stretch(std::byte* packed, std::byte* memory, const Run* runs) {
  const Block block{Block::fixed_bytes};
#pragma GCC unroll 4
  for (int64_t i = 0; i < stretch_runs; ++i) {
    if (mode == Mode::pack) {
      block(packed + i * Block::fixed_bytes, memory + runs[i].offset);
    } else {
      block(memory + runs[i].offset, packed + i * Block::fixed_bytes);
    }
  }
}

// Tables of runs that are at least twice as long on the average are coarse: their runs of at least this many bytes are
// copied as lines or by memcpy.
constexpr int64_t coarse_bytes = 128;

template <Mode mode, class Run>
SPL_FORCE_INLINE void copy_coarse_runs(std::byte* packed, std::byte* memory, const Run* runs, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bytes = static_cast<int64_t>(runs[i + 1].start - runs[i].start);
    std::byte* const place = memory + runs[i].offset;
    if (bytes < coarse_bytes) {
      copy_piece(mode == Mode::pack ? packed : place, mode == Mode::pack ? place : packed, bytes);
    } else if (mode == Mode::pack) {
      LongBlock{bytes}(packed, place);
    } else {
      LongBlock{bytes}(place, packed);
    }
    packed += bytes;
  }
}

// Copies runs of several lengths that are mostly shorter than a few lines. A stretch of runs of one length, as in a
// list where few entries touch, goes through a loop of that length.
template <Mode mode, class Run>
[[gnu::noinline]] void copy_fine_runs(std::byte* packed, std::byte* memory, const Run* runs, int64_t count) {
  const auto first = runs->start;
  const auto last = runs[count].start;
  const bool are_short = static_cast<int64_t>(last - first) <= count * short_run_bytes;
  int64_t i = 0;
  while (i < count) {
    std::byte* const at = packed + (runs[i].start - first);
    int64_t stretch = count - i;
    if (stretch >= stretch_runs) {
      stretch = stretch_runs;
      const int64_t length = common_length(runs + i);
      if (length == 4 || length == 8 || length == 12 || length == 16 || length == 24) {
        if (length == 4) copy_stretch<ExactBlock<4>, mode>(at, memory, runs + i);
        if (length == 8) copy_stretch<ExactBlock<8>, mode>(at, memory, runs + i);
        if (length == 12) copy_stretch<ExactBlock<12>, mode>(at, memory, runs + i);
        if (length == 16) copy_stretch<ExactBlock<16>, mode>(at, memory, runs + i);
        if (length == 24) copy_stretch<ExactBlock<24>, mode>(at, memory, runs + i);
        i += stretch;
        continue;
      }
    }
    for (const int64_t end = i + stretch; i < end; ++i) {
      std::byte* const here = packed + (runs[i].start - first);
      const auto bytes = static_cast<int64_t>(runs[i + 1].start - runs[i].start);
      const int64_t room = are_short ? static_cast<int64_t>(last - runs[i].start) : 0;
      if (mode == Mode::pack) {
        copy_run<mode>(here, memory + runs[i].offset, bytes, room);
      } else {
        copy_run<mode>(memory + runs[i].offset, here, bytes, room);
      }
    }
  }
}

template <Mode mode, class Run>
SPL_FORCE_INLINE void copy_runs(std::byte* packed, std::byte* memory, const Run* runs, int64_t count) {
  if (static_cast<int64_t>(runs[count].start - runs->start) >= 2 * coarse_bytes * count) {
    copy_coarse_runs<mode>(packed, memory, runs, count);
  } else {
    copy_fine_runs<mode>(packed, memory, runs, count);
  }
}

template <class Run>
void pack_runs(std::byte* to, const std::byte* from, const Run* runs, int64_t count) {
  copy_runs<Mode::pack>(to, const_cast<std::byte*>(from), runs, count);
}

template <class Run>
void unpack_runs(std::byte* to, const std::byte* from, const Run* runs, int64_t count) {
  copy_runs<Mode::unpack>(const_cast<std::byte*>(from), to, runs, count);
}

template <class Offset, class Run>
struct ListSide {
  const Table<Offset, Run>& table;
  SPL_FORCE_INLINE bool has_entries(int64_t entries) const { return entries <= table.count; }
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return table.places[i]; }
  SPL_FORCE_INLINE int64_t length(int64_t) const { return table.block; }
  SPL_FORCE_INLINE int64_t stretch_length(int64_t) const { return table.block; }
  SPL_FORCE_INLINE int64_t equal_entries(int64_t i) const { return table.count - i; }
};

template <class Offset, class Run>
struct RunsSide {
  const Table<Offset, Run>& table;
  SPL_FORCE_INLINE bool has_entries(int64_t entries) const { return entries <= table.count; }
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return table.runs[i].offset; }
  SPL_FORCE_INLINE int64_t length(int64_t i) const {
    return static_cast<int64_t>(table.runs[i + 1].start - table.runs[i].start);
  }
  SPL_FORCE_INLINE int64_t stretch_length(int64_t i) const { return common_length(table.runs + i); }
  // Returns the number of entries from i on that are as long as entry i: at most stretch_runs.
  SPL_FORCE_INLINE int64_t equal_entries(int64_t i) const {
    const int64_t wanted = length(i);
    const int64_t entries_max = table.count - i < stretch_runs ? table.count - i : stretch_runs;
    int64_t n = 1;
    while (n < entries_max && length(i + n) == wanted) ++n;
    return n;
  }
};

template <class Block, class To, class From>
SPL_FORCE_INLINE void copy_entries(std::byte* to, const To& to_side, int64_t i, const std::byte* from,
                                   const From& from_side, int64_t j, int64_t count) {
  const Block block{Block::fixed_bytes};
#pragma GCC unroll 4
  for (int64_t k = 0; k < count; ++k) block(to + to_side.place(i + k), from + from_side.place(j + k));
}

template <class To, class From>
void copy_sides(std::byte* to, const To& to_side, const std::byte* from, const From& from_side, int64_t bytes) {
  int64_t i = 0;
  int64_t j = 0;
  int64_t to_done = 0;  // bytes of entry i that are done
  int64_t from_done = 0;
  int64_t to_length = to_side.length(0);
  int64_t from_length = from_side.length(0);
  while (bytes > 0) {
    if (to_done == 0 && from_done == 0 && to_length == from_length &&
        (to_length == 4 || to_length == 8 || to_length == 12 || to_length == 16 || to_length == 24)) {
      int64_t count = stretch_runs;
      if (!to_side.has_entries(i + count) || !from_side.has_entries(j + count) || to_side.stretch_length(i) == 0 ||
          from_side.stretch_length(j) == 0) {
        const int64_t to_equal = to_side.equal_entries(i);
        const int64_t from_equal = from_side.equal_entries(j);
        count = to_equal < from_equal ? to_equal : from_equal;
      }
      if (to_length == 4) copy_entries<ExactBlock<4>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 8) copy_entries<ExactBlock<8>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 12) copy_entries<ExactBlock<12>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 16) copy_entries<ExactBlock<16>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 24) copy_entries<ExactBlock<24>>(to, to_side, i, from, from_side, j, count);
      i += count;
      j += count;
      bytes -= count * to_length;
      if (bytes == 0) return;
      to_length = to_side.length(i);
      from_length = from_side.length(j);
      continue;
    }
    const int64_t to_left = to_length - to_done;
    const int64_t from_left = from_length - from_done;
    const int64_t piece = to_left < from_left ? to_left : from_left;
    copy_piece_inline(to + to_side.place(i) + to_done, from + from_side.place(j) + from_done, piece);
    bytes -= piece;
    if (bytes == 0) return;
    // Without branches, because nobody can predict which side ends first.
    const bool to_ends = piece == to_left;
    const bool from_ends = piece == from_left;
    i += to_ends;
    j += from_ends;
    to_done = to_ends ? 0 : to_done + piece;
    from_done = from_ends ? 0 : from_done + piece;
    to_length = to_side.length(i);
    from_length = from_side.length(j);
  }
}

template <class Offset, class Run>
void copy_tables(std::byte* to, const Table<Offset, Run>& to_table, const std::byte* from,
                 const Table<Offset, Run>& from_table, int64_t bytes) {
  using List = ListSide<Offset, Run>;
  using Runs = RunsSide<Offset, Run>;
  if (to_table.runs == nullptr && from_table.runs == nullptr) {
    copy_sides(to, List{to_table}, from, List{from_table}, bytes);
  } else if (to_table.runs == nullptr) {
    copy_sides(to, List{to_table}, from, Runs{from_table}, bytes);
  } else if (from_table.runs == nullptr) {
    copy_sides(to, Runs{to_table}, from, List{from_table}, bytes);
  } else {
    copy_sides(to, Runs{to_table}, from, Runs{from_table}, bytes);
  }
}

}  // namespace
}  // namespace spinloom::layout
