// Kernel loops - the source of every kernel set: included once by each kernel_SET.cpp, which is compiled for its
// instruction set.
//
// Contract: defines `set_of(name)` in an anonymous namespace. Vectors are the compiler's own; what an instruction set
//   lacks becomes several narrower moves. Nothing here may call an inline function of another header: the linker could
//   pick this file's copy of it for a CPU that cannot run it.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "layout/kernel.hpp"

namespace spinloom::layout {
namespace {

#define SPL_FORCE_INLINE inline __attribute__((always_inline))

template <int64_t bytes>
struct VectorOf {
  typedef unsigned char Type __attribute__((vector_size(bytes), aligned(1), may_alias));
};

template <int64_t bytes>
SPL_FORCE_INLINE void move(std::byte* to, const std::byte* from) {
  __builtin_memcpy(to, from, bytes);
}

template <>
SPL_FORCE_INLINE void move<64>(std::byte* to, const std::byte* from) {
  using V = VectorOf<64>::Type;
  *reinterpret_cast<V*>(to) = *reinterpret_cast<const V*>(from);
}

// ---- blocks: one functor a class, with the size at compile time where the class is one size ----

template <int64_t size>
struct Exactly {
  static constexpr int64_t dense = size;
  explicit Exactly(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const { move<size>(to, from); }
};

template <>
struct Exactly<256> {
  static constexpr int64_t dense = 256;
  explicit Exactly(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    using V = VectorOf<64>::Type;
    const V a = *reinterpret_cast<const V*>(from);
    const V b = *reinterpret_cast<const V*>(from + 64);
    const V c = *reinterpret_cast<const V*>(from + 128);
    const V d = *reinterpret_cast<const V*>(from + 192);
    *reinterpret_cast<V*>(to) = a;
    *reinterpret_cast<V*>(to + 64) = b;
    *reinterpret_cast<V*>(to + 128) = c;
    *reinterpret_cast<V*>(to + 192) = d;
  }
};

template <>
struct Exactly<512> {
  static constexpr int64_t dense = 512;
  explicit Exactly(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    const Exactly<256> half(256);
    half(to, from);
    half(to + 256, from + 256);
  }
};

struct Bytes {  // 1 to 3
  static constexpr int64_t dense = 0;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    const std::byte first = from[0];
    const std::byte middle = from[block >> 1];
    const std::byte last = from[block - 1];
    to[0] = first;
    to[block >> 1] = middle;
    to[block - 1] = last;
  }
};

// Two words that may overlap cover every length between one word and two.
template <int64_t word>
struct TwoWords {
  static constexpr int64_t dense = 0;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    typename VectorOf<word>::Type head;
    typename VectorOf<word>::Type tail;
    __builtin_memcpy(&head, from, word);
    __builtin_memcpy(&tail, from + block - word, word);
    __builtin_memcpy(to, &head, word);
    __builtin_memcpy(to + block - word, &tail, word);
  }
};

// From 128 bytes on: lines, then a last one that may overlap. Long blocks begin with one that may overlap, too, so that
// the lines written are whole ones.
struct Lines {
  static constexpr int64_t dense = 0;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    using V = VectorOf<64>::Type;
    const auto load = [&](int64_t at) -> const V& { return *reinterpret_cast<const V*>(from + at); };
    const auto store = [&](int64_t at, const V& line) { *reinterpret_cast<V*>(to + at) = line; };
    int64_t at = 0;
    if (block >= 512) {
      at = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
      if (at != 0) store(0, load(0));
    }
    for (; at + 256 <= block; at += 256) {
      const V a = load(at);
      const V b = load(at + 64);
      const V c = load(at + 128);
      const V d = load(at + 192);
      store(at, a);
      store(at + 64, b);
      store(at + 128, c);
      store(at + 192, d);
    }
    for (; at + 64 <= block; at += 64) store(at, load(at));
    if (at < block) store(block - 64, load(block - 64));
  }
};

constexpr int64_t long_bytes = 16 << 10;  // from here on the library's copy is worth its start

struct Long {
  static constexpr int64_t dense = 0;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    if (block >= long_bytes) {
      __builtin_memcpy(to, from, static_cast<size_t>(block));
    } else {
      Lines{block}(to, from);
    }
  }
};

// The functor of a class, in the order of exact_blocks and range_ends.
template <size_t number>
struct ClassOf {
  using Type = Exactly<exact_blocks[number]>;
};
template <>
struct ClassOf<exact_blocks.size()> {
  using Type = Bytes;
};
template <>
struct ClassOf<exact_blocks.size() + 1> {
  using Type = TwoWords<4>;
};
template <>
struct ClassOf<exact_blocks.size() + 2> {
  using Type = TwoWords<8>;
};
template <>
struct ClassOf<exact_blocks.size() + 3> {
  using Type = TwoWords<16>;
};
template <>
struct ClassOf<exact_blocks.size() + 4> {
  using Type = TwoWords<32>;
};
template <>
struct ClassOf<exact_blocks.size() + 5> {
  using Type = TwoWords<64>;
};
template <>
struct ClassOf<exact_blocks.size() + 6> {
  using Type = Lines;
};
template <>
struct ClassOf<exact_blocks.size() + 7> {
  using Type = Long;
};

// ---- grids ----

// Blocks further apart than this are asked for ahead of time. Not the smallest ones: there the core's own window
// reaches as far, and each request is a load.
constexpr int64_t far_bytes = 256;
constexpr int64_t far_block_min = 24;
constexpr int64_t ahead_blocks = 16;

#if defined(__AVX512F__)
// Blocks of 4 or 8 bytes, every other one: two vectors hold one vector of them. Reads the gaps between them.
template <int64_t size>
SPL_FORCE_INLINE int64_t pack_every_other(std::byte* to, const std::byte* from, int64_t blocks) {
  constexpr int64_t lanes = 64 / size;
  int64_t done = 0;
  for (; done + lanes < blocks; done += lanes) {  // the last one's gap may not be ours to read
    const std::byte* const f = from + done * 2 * size;
    const __m512i a = _mm512_loadu_si512(f);
    const __m512i b = _mm512_loadu_si512(f + 64);
    __m512i both;
    if constexpr (size == 8) {
      both = _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b);
    } else {
      both =
          _mm512_permutex2var_epi32(a, _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), b);
    }
    _mm512_storeu_si512(to + done * size, both);
  }
  return done;
}
#endif

// Four blocks of 8 bytes, or eight of 4, into one store.
template <int64_t size>
SPL_FORCE_INLINE void gather_into_one(std::byte* to, const std::byte* from, int64_t step) {
  using Lane = std::conditional_t<size == 8, uint64_t, uint32_t>;
  typedef Lane Vector __attribute__((vector_size(32)));
  Lane lane[32 / size];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 32 / size; ++i) __builtin_memcpy(&lane[i], from + i * step, size);
  Vector all;
  if constexpr (size == 8) {
    all = Vector{lane[0], lane[1], lane[2], lane[3]};
  } else {
    all = Vector{lane[0], lane[1], lane[2], lane[3], lane[4], lane[5], lane[6], lane[7]};
  }
  __builtin_memcpy(to, &all, sizeof all);
}

template <class Block, Mode mode, bool far>
SPL_FORCE_INLINE void copy_row(const Block& block, std::byte* t, int64_t to_step, const std::byte* f, int64_t from_step,
                               int64_t left) {
  for (; left >= 4; left -= 4) {
    if constexpr (far && mode != Mode::unpack) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) __builtin_prefetch(f + (ahead_blocks + i) * from_step);
    }
    if constexpr (far && mode != Mode::pack) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) __builtin_prefetch(t + (ahead_blocks + i) * to_step, 1);
    }
    block(t, f);
    block(t + to_step, f + from_step);
    block(t + 2 * to_step, f + 2 * from_step);
    block(t + 3 * to_step, f + 3 * from_step);
    t += 4 * to_step;
    f += 4 * from_step;
  }
  for (; left > 0; --left) {
    block(t, f);
    t += to_step;
    f += from_step;
  }
}

template <class Block, Mode mode>
void copy_rows(std::byte* to, const std::byte* from, const Grid& grid) {
  const Block block{grid.block};
  const int64_t size = Block::dense != 0 ? Block::dense : grid.block;
  const int64_t to_step = mode == Mode::pack ? size : grid.to.block;
  const int64_t from_step = mode == Mode::unpack ? size : grid.from.block;
  const int64_t step = mode == Mode::unpack ? to_step : from_step;
  const bool far = (step > far_bytes || step < -far_bytes) && size >= far_block_min && size <= far_bytes &&
                   grid.blocks >= 2 * ahead_blocks;
  for (int64_t row = 0; row < grid.rows; ++row) {
    std::byte* t = to + row * grid.to.row;
    const std::byte* f = from + row * grid.from.row;
    int64_t left = grid.blocks;
    if constexpr (mode == Mode::pack && (Block::dense == 4 || Block::dense == 8)) {
      constexpr int64_t lanes = 32 / Block::dense;
#if defined(__AVX512F__)
      if (from_step == 2 * size) {
        const int64_t done = pack_every_other<Block::dense>(t, f, left);
        t += done * size;
        f += done * from_step;
        left -= done;
      }
#endif
      for (; left >= lanes; left -= lanes) {
        gather_into_one<Block::dense>(t, f, from_step);
        t += lanes * size;
        f += lanes * from_step;
      }
    }
    if (far) {
      copy_row<Block, mode, true>(block, t, to_step, f, from_step, left);
    } else {
      copy_row<Block, mode, false>(block, t, to_step, f, from_step, left);
    }
  }
}

// ---- lists and runs ----

template <class Block, class Offset>
void pack_list(std::byte* to, const std::byte* from, const Offset* places, int64_t count, int64_t bytes) {
  const Block block{bytes};
  const int64_t size = Block::dense != 0 ? Block::dense : bytes;
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i) block(to + i * size, from + places[i]);
}

template <class Block, class Offset>
void unpack_list(std::byte* to, const std::byte* from, const Offset* places, int64_t count, int64_t bytes) {
  const Block block{bytes};
  const int64_t size = Block::dense != 0 ? Block::dense : bytes;
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

void copy_piece(std::byte* to, const std::byte* from, int64_t bytes) {
#if defined(__AVX512BW__) && defined(__BMI2__)
  if (bytes <= 64) {  // a masked move touches its bytes only and needs no branch on the length
    const __mmask64 mask = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(bytes));
    _mm512_mask_storeu_epi8(to, mask, _mm512_maskz_loadu_epi8(mask, from));
    return;
  }
#endif
  if (bytes > 128) {
    Long{bytes}(to, from);
  } else if (bytes >= 64) {
    TwoWords<64>{bytes}(to, from);
  } else if (bytes >= 32) {
    TwoWords<32>{bytes}(to, from);
  } else if (bytes >= 16) {
    TwoWords<16>{bytes}(to, from);
  } else if (bytes >= 8) {
    TwoWords<8>{bytes}(to, from);
  } else if (bytes >= 4) {
    TwoWords<4>{bytes}(to, from);
  } else if (bytes > 0) {
    Bytes{bytes}(to, from);
  }
}

constexpr int64_t brief_bytes = 32;

// One run of several lengths; `pack`: the packed side is written, which has `room` bytes from here on where most runs
// are brief, or 0. With masks there is no branch on the length. What a short run writes too far on the packed side its
// successors write again; otherwise the window starts with the line of the side in memory, so that no line is touched
// in vain.
template <Mode mode>
SPL_FORCE_INLINE void copy_run(std::byte* to, const std::byte* from, int64_t bytes, [[maybe_unused]] int64_t room) {
#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__BMI2__)
  if (room >= brief_bytes && bytes <= brief_bytes) {
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
  copy_piece(to, from, bytes);
}

constexpr int64_t stretch_runs = 32;

// The length that a stretch of runs shares, or 0.
template <class Run>
SPL_FORCE_INLINE int64_t shared_length(const Run* runs) {
  const auto length = runs[1].start - runs[0].start;
  auto other = length - length;
  for (int64_t i = 0; i < stretch_runs; ++i) other |= (runs[i + 1].start - runs[i].start) ^ length;
  return other == 0 ? static_cast<int64_t>(length) : 0;
}

template <class Block, Mode mode, class Run>
SPL_FORCE_INLINE void copy_stretch(std::byte* packed, std::byte* memory, const Run* runs) {
  const Block block{Block::dense};
#pragma GCC unroll 4
  for (int64_t i = 0; i < stretch_runs; ++i) {
    if (mode == Mode::pack) {
      block(packed + i * Block::dense, memory + runs[i].offset);
    } else {
      block(memory + runs[i].offset, packed + i * Block::dense);
    }
  }
}

// Stretches of one length, as in a list where few entries touch, go through a loop of that length.
template <Mode mode, class Run>
SPL_FORCE_INLINE void copy_runs(std::byte* packed, std::byte* memory, const Run* runs, int64_t count) {
  const auto first = runs->start;
  const auto last = runs[count].start;
  const bool brief = static_cast<int64_t>(last - first) <= count * brief_bytes;
  int64_t i = 0;
  while (i < count) {
    std::byte* const at = packed + (runs[i].start - first);
    int64_t stretch = count - i;
    if (stretch >= stretch_runs) {
      stretch = stretch_runs;
      const int64_t length = shared_length(runs + i);
      if (length == 4 || length == 8 || length == 12 || length == 16 || length == 24) {
        if (length == 4) copy_stretch<Exactly<4>, mode>(at, memory, runs + i);
        if (length == 8) copy_stretch<Exactly<8>, mode>(at, memory, runs + i);
        if (length == 12) copy_stretch<Exactly<12>, mode>(at, memory, runs + i);
        if (length == 16) copy_stretch<Exactly<16>, mode>(at, memory, runs + i);
        if (length == 24) copy_stretch<Exactly<24>, mode>(at, memory, runs + i);
        i += stretch;
        continue;
      }
    }
    for (const int64_t end = i + stretch; i < end; ++i) {
      std::byte* const here = packed + (runs[i].start - first);
      const auto bytes = static_cast<int64_t>(runs[i + 1].start - runs[i].start);
      const int64_t room = brief ? static_cast<int64_t>(last - runs[i].start) : 0;
      if (mode == Mode::pack) {
        copy_run<mode>(here, memory + runs[i].offset, bytes, room);
      } else {
        copy_run<mode>(memory + runs[i].offset, here, bytes, room);
      }
    }
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
  SPL_FORCE_INLINE bool has(int64_t entries) const { return entries <= table.count; }
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return table.places[i]; }
  SPL_FORCE_INLINE int64_t length(int64_t) const { return table.block; }
  SPL_FORCE_INLINE int64_t shared(int64_t) const { return table.block; }
  SPL_FORCE_INLINE int64_t alike(int64_t i) const { return table.count - i; }
};

template <class Offset, class Run>
struct RunsSide {
  const Table<Offset, Run>& table;
  SPL_FORCE_INLINE bool has(int64_t entries) const { return entries <= table.count; }
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return table.runs[i].offset; }
  SPL_FORCE_INLINE int64_t length(int64_t i) const {
    return static_cast<int64_t>(table.runs[i + 1].start - table.runs[i].start);
  }
  SPL_FORCE_INLINE int64_t shared(int64_t i) const { return shared_length(table.runs + i); }
  // Entries from i on of the length of entry i: a stretch of them at most.
  SPL_FORCE_INLINE int64_t alike(int64_t i) const {
    const int64_t wanted = length(i);
    const int64_t most = table.count - i < stretch_runs ? table.count - i : stretch_runs;
    int64_t n = 1;
    while (n < most && length(i + n) == wanted) ++n;
    return n;
  }
};

template <class Block, class To, class From>
SPL_FORCE_INLINE void copy_entries(std::byte* to, const To& to_side, int64_t i, const std::byte* from,
                                   const From& from_side, int64_t j, int64_t count) {
  const Block block{Block::dense};
#pragma GCC unroll 4
  for (int64_t k = 0; k < count; ++k) block(to + to_side.place(i + k), from + from_side.place(j + k));
}

template <class To, class From>
void copy_sides(std::byte* to, const To& to_side, const std::byte* from, const From& from_side, int64_t bytes) {
  int64_t i = 0;
  int64_t j = 0;
  int64_t to_done = 0;  // bytes of entry i
  int64_t from_done = 0;
  int64_t to_length = to_side.length(0);
  int64_t from_length = from_side.length(0);
  while (bytes > 0) {
    if (to_done == 0 && from_done == 0 && to_length == from_length &&
        (to_length == 4 || to_length == 8 || to_length == 12 || to_length == 16 || to_length == 24)) {
      int64_t count = stretch_runs;
      if (!to_side.has(i + count) || !from_side.has(j + count) || to_side.shared(i) == 0 || from_side.shared(j) == 0) {
        const int64_t to_alike = to_side.alike(i);
        const int64_t from_alike = from_side.alike(j);
        count = to_alike < from_alike ? to_alike : from_alike;
      }
      if (to_length == 4) copy_entries<Exactly<4>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 8) copy_entries<Exactly<8>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 12) copy_entries<Exactly<12>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 16) copy_entries<Exactly<16>>(to, to_side, i, from, from_side, j, count);
      if (to_length == 24) copy_entries<Exactly<24>>(to, to_side, i, from, from_side, j, count);
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
    copy_piece(to + to_side.place(i) + to_done, from + from_side.place(j) + from_done, piece);
    bytes -= piece;
    if (bytes == 0) return;
    // No branches: which side ends first cannot be guessed.
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

// ---- whole lines past the caches ----

SPL_FORCE_INLINE void stream_line(std::byte* to, const std::byte* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__x86_64__)
#pragma GCC unroll 4
  for (int64_t at = 0; at < 64; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#else
  move<64>(to, from);
#endif
}

SPL_FORCE_INLINE void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Blocks of several lines; the lines that a block fills only in part are written as usual. What will be read a little
// later is asked for across the gaps, which the core's own prefetcher does not see.
void stream_rows(std::byte* to, const std::byte* from, const Grid& grid) {
  constexpr int64_t ahead = 1024;
  const int64_t skip = grid.block < ahead ? ahead / grid.block : 1;  // blocks
  const int64_t early = grid.block < ahead ? 0 : ahead;
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      std::byte* const t = to + row * grid.to.row + i * grid.to.block;
      const std::byte* const f = from + row * grid.from.row + i * grid.from.block;
      const std::byte* const later = f + skip * grid.from.block - grid.block + early;
      int64_t at = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(t) & 63);
      copy_piece(t, f, at);
      for (; at + 64 <= grid.block; at += 64) {
        const bool here = early != 0 && at + early < grid.block;
        __builtin_prefetch(here ? f + at + early : later + (early != 0 ? at : at + grid.block));
        stream_line(t + at, f + at);
      }
      copy_piece(t + at, f + at, grid.block - at);
    }
  }
  stream_fence();
}

// ---- transposes: squares of whole vectors, in registers ----

#if defined(__AVX512F__)
constexpr int64_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int64_t vector_bytes = 32;
#else
constexpr int64_t vector_bytes = 16;
#endif

template <int64_t bytes>
struct LaneOf {
  using Type = uint64_t;  // elements of 16 bytes: pairs of lanes
};
template <>
struct LaneOf<1> {
  using Type = uint8_t;
};
template <>
struct LaneOf<2> {
  using Type = uint16_t;
};
template <>
struct LaneOf<4> {
  using Type = uint32_t;
};

template <int64_t element>
struct Square {
  using Lane = typename LaneOf<element>::Type;
  static constexpr int64_t bytes = element <= 2 ? 16 : vector_bytes;  // of a row; more rows than that do not fit
  static constexpr int64_t lanes = bytes / static_cast<int64_t>(sizeof(Lane));
  static constexpr int64_t side = bytes / element;
  typedef Lane Vector __attribute__((vector_size(bytes)));
};

// Lane i of the low (high) halves of a and b, element by element in turns.
template <int64_t element>
constexpr int zip_lane(int64_t lane, bool high) {
  using S = Square<element>;
  const int64_t width = S::lanes / S::side;  // lanes of an element
  const int64_t place = lane / width;
  const int64_t source = (high ? S::side / 2 : 0) + place / 2;
  return static_cast<int>((place % 2) * S::lanes + source * width + lane % width);
}

template <int64_t element, bool high, size_t... lane>
SPL_FORCE_INLINE typename Square<element>::Vector zip(typename Square<element>::Vector a,
                                                      typename Square<element>::Vector b,
                                                      std::index_sequence<lane...>) {
  return __builtin_shufflevector(a, b, zip_lane<element>(static_cast<int64_t>(lane), high)...);
}

// Zipping row i with row i + side / 2, log2(side) times, transposes.
template <int64_t element>
SPL_FORCE_INLINE void transpose_square(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch) {
  using S = Square<element>;
  using V = typename S::Vector;
  constexpr auto all = std::make_index_sequence<static_cast<size_t>(S::lanes)>();
  V rows[S::side];
#pragma GCC unroll 64
  for (int64_t i = 0; i < S::side; ++i) __builtin_memcpy(&rows[i], from + i * from_pitch, S::bytes);
#pragma GCC unroll 6
  for (int64_t stage = 1; stage < S::side; stage *= 2) {
    V next[S::side];
#pragma GCC unroll 32
    for (int64_t i = 0; i < S::side / 2; ++i) {
      next[2 * i] = zip<element, false>(rows[i], rows[i + S::side / 2], all);
      next[2 * i + 1] = zip<element, true>(rows[i], rows[i + S::side / 2], all);
    }
#pragma GCC unroll 64
    for (int64_t i = 0; i < S::side; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 64
  for (int64_t i = 0; i < S::side; ++i) __builtin_memcpy(to + i * to_pitch, &rows[i], S::bytes);
}

template <int64_t element>
void transpose_small(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch, int64_t rows,
                     int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i)
      move<element>(to + j * to_pitch + i * element, from + i * from_pitch + j * element);
  }
}

// Elements of 16 bytes whose rows do not begin at lines: each line to be written is put together from four rows, so
// that only its two ends, and nothing that is read, may cross a line. Only while all of it stays near: it reads and
// writes further apart than squares do.
constexpr int64_t pairs_bytes_max = 2 << 20;

[[gnu::noinline]] void transpose_pairs(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch,
                                       int64_t rows, int64_t columns) {
  constexpr int64_t element = 16;
  constexpr int64_t line = 64 / element;
  constexpr int64_t strip = 16;
  constexpr int64_t tile = 32;  // rows whose part of a strip stays in the first-level cache
  typedef uint64_t Pair __attribute__((vector_size(element), aligned(1), may_alias));
  const auto load = [](const std::byte* at) { return *reinterpret_cast<const Pair*>(at); };
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t last = first + strip < columns ? first + strip : columns;
    for (int64_t row = 0; row < rows; row += tile) {
      for (int64_t j = first; j < last; ++j) {
        std::byte* const t = to + j * to_pitch;
        const std::byte* const f = from + j * element;
        const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(t) & 63) / element;
        int64_t i = row == 0 ? 0 : row + head;
        int64_t end = row + tile + head;
        if (row + tile >= rows || end > rows) end = rows;
        for (; i < head && i < end; ++i) move<element>(t + i * element, f + i * from_pitch);
        for (; i + line <= end; i += line) {
          const std::byte* const g = f + i * from_pitch;
          const auto low = __builtin_shufflevector(load(g), load(g + from_pitch), 0, 1, 2, 3);
          const auto high = __builtin_shufflevector(load(g + 2 * from_pitch), load(g + 3 * from_pitch), 0, 1, 2, 3);
          const auto whole = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
          __builtin_memcpy(t + i * element, &whole, sizeof whole);
        }
        for (; i < end; ++i) move<element>(t + i * element, f + i * from_pitch);
      }
    }
  }
}

// Squares that do not fit at an edge move back over their neighbours: copying a byte twice does no harm.
template <int64_t element>
void transpose(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch, int64_t rows,
               int64_t columns) {
  constexpr int64_t side = Square<element>::side;
  constexpr int64_t strip = 256 / element;  // columns at a time: a few lines of each row
  if constexpr (element == 16) {
    const bool crosses = ((to_pitch | from_pitch) & 63) != 0;
    if (crosses && rows * columns <= pairs_bytes_max / element) {
      return transpose_pairs(to, to_pitch, from, from_pitch, rows, columns);
    }
  }
  if (rows < side || columns < side) {
    return transpose_small<element>(to, to_pitch, from, from_pitch, rows, columns);
  }
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t last = first + strip < columns ? first + strip : columns;
    for (int64_t row = 0; row < rows; row += side) {
      const int64_t i = row + side <= rows ? row : rows - side;
      for (int64_t column = first; column < last; column += side) {
        const int64_t j = column + side <= columns ? column : columns - side;
        transpose_square<element>(to + j * to_pitch + i * element, to_pitch, from + i * from_pitch + j * element,
                                  from_pitch);
      }
    }
  }
}

// ---- the set ----

template <class Offset, class Run, size_t... number>
constexpr TableKernels<Offset, Run> tables_of(std::index_sequence<number...>) {
  return {{{&pack_list<typename ClassOf<number>::Type, Offset>...}},
          {{&unpack_list<typename ClassOf<number>::Type, Offset>...}},
          {{&copy_list<typename ClassOf<number>::Type, Offset>...}},
          &pack_runs<Run>,
          &unpack_runs<Run>,
          &copy_tables<Offset, Run>};
}

template <size_t... number>
constexpr KernelSet make_set(const char* name, std::index_sequence<number...> all) {
  return {name,
          {{{{&copy_rows<typename ClassOf<number>::Type, Mode::pack>...}},
            {{&copy_rows<typename ClassOf<number>::Type, Mode::unpack>...}},
            {{&copy_rows<typename ClassOf<number>::Type, Mode::copy>...}}}},
          tables_of<int32_t, spl_run_narrow>(all),
          tables_of<int64_t, spl_run_wide>(all),
          {{&transpose<1>, &transpose<2>, &transpose<4>, &transpose<8>, &transpose<16>}},
          &copy_piece,
          &stream_rows};
}

constexpr KernelSet set_of(const char* name) { return make_set(name, std::make_index_sequence<block_classes>()); }

}  // namespace
}  // namespace spinloom::layout
