// Kernel places - words, quotients, and where a packed byte of a part lies.
//
// Contract: places_of() turns packed bytes of a part into offsets on both sides, by its levels and, in_pieces, its
//   table; walked_place() does it by a seek in a blob. The file compiles as CUDA, as NVRTC's text, and as C++.
// Invariants: (1) no division; (2) no memory is written but through put() and word_at().
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_PLACES_H
#define SPINLOOM_GPU_KERNEL_PLACES_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_parts.h"
#endif

#ifdef __CUDACC__
#define SPL_GPU __device__ __forceinline__
#define SPL_ALIAS
#define SPL_ALIAS_16 __align__(16)
#define SPL_UNROLL _Pragma("unroll")
#define SPL_BARRIER() __syncthreads()
#else
#define SPL_GPU static inline
#define SPL_ALIAS __attribute__((may_alias))
#define SPL_ALIAS_16 __attribute__((may_alias, aligned(16)))
#define SPL_UNROLL
#define SPL_BARRIER() static_cast<void>(0)
#endif

namespace spinloom::gpu::kernel {

// Returns the bytes of the widest word at which both sides of a Part or a Brief can be read and written.
template <class Moved>
SPL_GPU u32 width_of(const Moved& moved, const Ends& ends) {
  const u32 low =
      static_cast<u32>(reinterpret_cast<u64>(ends.from + moved.from) | reinterpret_cast<u64>(ends.to + moved.to)) |
      moved.width;
  return low & (0 - low);
}

template <u32 width>
struct Word;
template <>
struct SPL_ALIAS Word<1> {
  u8 value;
};
template <>
struct SPL_ALIAS Word<2> {
  u16 value;
};
template <>
struct SPL_ALIAS Word<4> {
  u32 value;
};
template <>
struct SPL_ALIAS Word<8> {
  u64 value;
};
template <>
struct SPL_ALIAS_16 Word<16> {
  u32 value[4];
};

template <u32 width>
SPL_GPU const Word<width>& word_at(const u8* place) {
  return *reinterpret_cast<const Word<width>*>(place);
}
template <u32 width>
SPL_GPU Word<width>& word_at(u8* place) {
  return *reinterpret_cast<Word<width>*>(place);
}

// Writes a word. If `streaming`, it leaves the cache before what others read.
template <u32 width, bool streaming>
SPL_GPU void put(u8* place, const Word<width>& word) {
#ifdef __CUDA_ARCH__
  if constexpr (streaming && width == 16) {
    __stcs(reinterpret_cast<uint4*>(place), make_uint4(word.value[0], word.value[1], word.value[2], word.value[3]));
    return;
  } else if constexpr (streaming) {
    __stcs(&word_at<width>(place).value, word.value);
    return;
  }
#endif
  word_at<width>(place) = word;
}

template <class T>
SPL_GPU const T* pointer_at(const u8* arena, u64 place) {
  return reinterpret_cast<const T*>(arena + place);
}

SPL_GPU u32 lesser(u32 a, u32 b) { return a < b ? a : b; }

SPL_GPU u32 divide(u32 n, const FastDivisor& by) {
#ifdef __CUDA_ARCH__
  return __umulhi(n << 1, by.reciprocal) >> by.shift;
#else
  return static_cast<u32>((static_cast<u64>(n << 1) * by.reciprocal) >> 32) >> by.shift;
#endif
}

SPL_GPU u64 divide_wide(u64 n, u64 reciprocal, u32 shift) {
#ifdef __CUDA_ARCH__
  return __umul64hi(n << 1, reciprocal) >> shift;
#else
  return static_cast<u64>((static_cast<unsigned __int128>(n << 1) * reciprocal) >> 64) >> shift;
#endif
}

SPL_GPU i64 entry_of(const u8* arena, u64 table, u32 wide, u32 index) {
  return wide != 0 ? pointer_at<i64>(arena, table)[index] : static_cast<i64>(pointer_at<i32>(arena, table)[index]);
}

// Returns the number of the piece that holds byte r of a block.
SPL_GPU u32 piece_of(const Part& part, const u8* arena, u32 r) {
  const u32* const starts = pointer_at<u32>(arena, part.starts);
  const u32* const hints = pointer_at<u32>(arena, part.hints);
  const u32 bucket = r >> part.hint_shift;
  u32 low = hints[bucket];
  u32 high = hints[bucket + 1];
  while (low < high) {
    const u32 middle = (low + high + 1) >> 1;
    if (starts[middle] <= r) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Finds the places of `batch` packed bytes `at` of the part. `form` is 1 where `from` is contiguous, 2 where `to` is,
// and 0 for any part.
template <int form, bool in_pieces, int batch>
SPL_GPU void places_of(const Part& part, const u8* arena, const u32 (&at)[batch], i64 (&from)[batch],
                       i64 (&to)[batch]) {
  u32 rest[batch];
  SPL_UNROLL
  for (int k = 0; k < batch; ++k) {
    rest[k] = divide(at[k], part.block);
    const u32 within = at[k] - rest[k] * part.block.divisor;
    from[k] = part.from + (form == 1 ? at[k] : within);
    to[k] = part.to + (form == 2 ? at[k] : within);
    if (in_pieces) {
      const u32 piece = piece_of(part, arena, within);
      const i64 start = pointer_at<u32>(arena, part.starts)[piece];
      if (form != 1 && part.from_offsets != 0) {
        from[k] += entry_of(arena, part.from_offsets, part.wide_offsets, piece) - start;
      }
      if (form != 2 && part.to_offsets != 0) {
        to[k] += entry_of(arena, part.to_offsets, part.wide_offsets, piece) - start;
      }
    }
  }
  const u32 levels = part.levels;
  for (u32 l = 0; l < levels; ++l) {
    const Level& level = part.level[l];
    const FastDivisor count = level.count;
    const bool last = l + 1 == levels;
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 up = last ? 0 : divide(rest[k], count);
      const u32 digit = rest[k] - up * count.divisor;
      rest[k] = up;
      if (form != 1) {
        from[k] += level.from.table != 0 ? entry_of(arena, level.from.table, level.wide_from, digit)
                                         : static_cast<i64>(digit) * level.from.stride;
      }
      if (form != 2) {
        to[k] += level.to.table != 0 ? entry_of(arena, level.to.table, level.wide_to, digit)
                                     : static_cast<i64>(digit) * level.to.stride;
      }
    }
  }
}

// ---- the blob ----

// Nodes as docs/formats/layout.md lays them down; shim.cpp compares with include/spinloom/layout_walk.h.
template <class U, class S>
struct SPL_ALIAS Node {
  u32 kind, shift, child, table;
  U count, size, block, reciprocal;
  S stride;
  U reserved;
};
template <class U, class S>
struct SPL_ALIAS Run {
  S offset;
  U start;
};
template <class U, class S>
struct SPL_ALIAS Member {
  S offset;
  U start;
  U child;
};
constexpr u32 root_place = 72;

SPL_GPU u32 divide_by(u32 n, u32 reciprocal, u32 shift) { return divide(n, FastDivisor{0, reciprocal, shift}); }
SPL_GPU u64 divide_by(u64 n, u64 reciprocal, u32 shift) { return divide_wide(n, reciprocal, shift); }

// Returns the number of the last entry that starts at or before `position`.
template <class Entry, class U>
SPL_GPU U entry_before(const Entry* table, U count, U position) {
  U index = 0;
  while (count > 1) {
    const U half = count >> 1;
    if (table[index + half].start <= position) index += half;
    count -= half;
  }
  return index;
}

// Returns the place of packed byte `position` of one element, counted from the root's place.
template <class U, class S>
SPL_GPU i64 seek(const u8* blob, U position) {
  using N = Node<U, S>;
  i64 place = 0;
  const N* node = reinterpret_cast<const N*>(blob + root_place);
  for (;;) {
    const u8* const table = reinterpret_cast<const u8*>(node + 1);
    switch (node->kind) {
      case 2: {
        const Run<U, S>* const runs = reinterpret_cast<const Run<U, S>*>(table);
        const Run<U, S>& run = runs[entry_before(runs, node->count, position)];
        return place + run.offset + static_cast<i64>(position - run.start);
      }
      case 5: {
        const Member<U, S>* const members = reinterpret_cast<const Member<U, S>*>(table);
        const Member<U, S>& member = members[entry_before(members, node->count, position)];
        place += member.offset;
        position -= member.start;
        node = reinterpret_cast<const N*>(blob + member.child);
        break;
      }
      default: {
        const U index = divide_by(position, node->reciprocal, node->shift);
        position -= index * node->block;
        const bool listed = node->kind == 1 || node->kind == 4;
        place += listed ? static_cast<i64>(reinterpret_cast<const S*>(table)[index])
                        : static_cast<i64>(index) * static_cast<i64>(node->stride);
        if (node->kind < 3) return place + static_cast<i64>(position);
        node = reinterpret_cast<const N*>(blob + node->child);
      }
    }
  }
}

// Returns the place of packed byte `position` of one side's elements, counted from the buffer address.
SPL_GPU i64 walked_place(const Walk& walk, const u8* arena, u64 position) {
  if (walk.blob == 0) return static_cast<i64>(position);
  const u64 element = divide_wide(position, walk.size_reciprocal, walk.size_shift);
  const u64 within = position - element * walk.size;
  const u8* const blob = arena + walk.blob;
  const i64 place = walk.narrow != 0 ? seek<u32, i32>(blob, static_cast<u32>(within)) : seek<u64, i64>(blob, within);
  return walk.origin + static_cast<i64>(element) * walk.extent + place;
}

}  // namespace spinloom::gpu::kernel

#endif
