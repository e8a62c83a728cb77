// Kernel blocks - copies one block of bytes: a functor for each class of lengths.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "memory/layout/kernel.hpp"

namespace spinloom::layout {
namespace {

#define SPL_FORCE_INLINE inline __attribute__((always_inline))

// Goes on to the next block of a row. Behind the last one a step may lead anywhere, which a sum of pointers must not:
// a row of one block may have any stride.
template <class Byte>
SPL_FORCE_INLINE void advance(Byte*& at, int64_t step) {
  at = reinterpret_cast<Byte*>(reinterpret_cast<uintptr_t>(at) + static_cast<uintptr_t>(step));
}

template <int64_t bytes>
struct VectorOf {
  typedef unsigned char Type __attribute__((vector_size(bytes), aligned(1), may_alias));
};

template <int64_t bytes>
SPL_FORCE_INLINE void move(std::byte* to, const std::byte* from) {
  __builtin_memcpy(to, from, bytes);
}

// A line of 64 bytes is held in as many of the widest registers as it needs. Vectors that are wider than a register go
// through memory.
#if defined(__AVX512F__)
constexpr int64_t register_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t register_bytes = 32;
#else
constexpr int64_t register_bytes = 16;
#endif

struct Line {
  using Register = VectorOf<register_bytes>::Type;
  static constexpr int64_t registers = 64 / register_bytes;
  Register part[registers];

  SPL_FORCE_INLINE static Line load(const std::byte* from) {
    Line line;
    for (int64_t i = 0; i < registers; ++i) line.part[i] = reinterpret_cast<const Register*>(from)[i];
    return line;
  }
  SPL_FORCE_INLINE void store(std::byte* to) const {
    for (int64_t i = 0; i < registers; ++i) reinterpret_cast<Register*>(to)[i] = part[i];
  }
};

template <>
SPL_FORCE_INLINE void move<64>(std::byte* to, const std::byte* from) {
  Line::load(from).store(to);
}

// There is one functor for each class. `fixed_bytes` is the size of a class of one size, which is known at compile
// time, and else 0. Rows of a `is_long` class are not unrolled.

template <int64_t size>
struct ExactBlock {
  static constexpr int64_t fixed_bytes = size;
  static constexpr bool is_long = false;
  explicit ExactBlock(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const { move<size>(to, from); }
};

template <>
struct ExactBlock<256> {
  static constexpr int64_t fixed_bytes = 256;
  static constexpr bool is_long = false;
  explicit ExactBlock(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    const Line a = Line::load(from);
    const Line b = Line::load(from + 64);
    const Line c = Line::load(from + 128);
    const Line d = Line::load(from + 192);
    a.store(to);
    b.store(to + 64);
    c.store(to + 128);
    d.store(to + 192);
  }
};

template <>
struct ExactBlock<512> {
  static constexpr int64_t fixed_bytes = 512;
  static constexpr bool is_long = false;
  explicit ExactBlock(int64_t) {}
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    const ExactBlock<256> half(256);
    half(to, from);
    half(to + 256, from + 256);
  }
};

struct ByteBlock {  // 1 to 3 bytes
  static constexpr int64_t fixed_bytes = 0;
  static constexpr bool is_long = false;
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
struct TwoWordBlock {
  static constexpr int64_t fixed_bytes = 0;
  static constexpr bool is_long = false;
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

// Copies 128 bytes and more as whole lines; the last line may overlap the one before it. Long blocks also begin with
// a line that may overlap, so that the lines written after it are aligned.
struct LineBlock {
  static constexpr int64_t fixed_bytes = 0;
  static constexpr bool is_long = false;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    int64_t at = 0;
    if (block >= 512) {
      at = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
      if (at != 0) move<64>(to, from);
    }
    const ExactBlock<256> four(256);
    for (; at + 256 <= block; at += 256) four(to + at, from + at);
    for (; at + 64 <= block; at += 64) move<64>(to + at, from + at);
    if (at < block) move<64>(to + block - 64, from + block - 64);
  }
};

// From this many bytes on, memcpy is as fast or faster in spite of the cost of its call: by up to 1.7 times on Zen 5,
// whose string instructions it uses for such blocks.
constexpr int64_t long_bytes = 3 << 10;

struct LongBlock {
  static constexpr int64_t fixed_bytes = 0;
  static constexpr bool is_long = true;
  int64_t block;
  SPL_FORCE_INLINE void operator()(std::byte* to, const std::byte* from) const {
    if (block >= long_bytes) {
      __builtin_memcpy(to, from, static_cast<size_t>(block));
    } else {
      LineBlock{block}(to, from);
    }
  }
};

// The functor of a class. Classes are numbered in the order of exact_blocks, then range_ends.
template <size_t number>
struct ClassOf {
  using Type = ExactBlock<exact_blocks[number]>;
};
template <>
struct ClassOf<exact_blocks.size()> {
  using Type = ByteBlock;
};
template <>
struct ClassOf<exact_blocks.size() + 1> {
  using Type = TwoWordBlock<4>;
};
template <>
struct ClassOf<exact_blocks.size() + 2> {
  using Type = TwoWordBlock<8>;
};
template <>
struct ClassOf<exact_blocks.size() + 3> {
  using Type = TwoWordBlock<16>;
};
template <>
struct ClassOf<exact_blocks.size() + 4> {
  using Type = TwoWordBlock<32>;
};
template <>
struct ClassOf<exact_blocks.size() + 5> {
  using Type = TwoWordBlock<64>;
};
template <>
struct ClassOf<exact_blocks.size() + 6> {
  using Type = LineBlock;
};
template <>
struct ClassOf<exact_blocks.size() + 7> {
  using Type = LongBlock;
};

// A set has kernels of its own for blocks of at least own_bytes_min bytes: the compiler makes other code of them than
// for the set below, whose kernels it takes for shorter blocks. Blocks below vector_bytes_min are moved
// without vectors. With AVX-512 the compiler moves 32 bytes at once, with AVX2 16.
constexpr int64_t vector_bytes_min = 16;
#if defined(__AVX512F__)
constexpr int64_t own_bytes_min = 32;
#elif defined(__AVX2__)
constexpr int64_t own_bytes_min = vector_bytes_min;
#else
constexpr int64_t own_bytes_min = 0;
#endif
constexpr int64_t longest_block(size_t number) {
  return number < exact_blocks.size() ? exact_blocks[number] : range_ends[number - exact_blocks.size()];
}
// The loops of ByteBlock keep more in registers where there is AVX-512.
constexpr bool is_own_class(size_t number) {
  return longest_block(number) >= own_bytes_min || (own_bytes_min > vector_bytes_min && longest_block(number) == 3);
}
// True if all sets share the portable set's kernels of a class.
constexpr bool is_shared_class(size_t number) { return longest_block(number) < vector_bytes_min; }
// Kernels that only x86-64 CPUs without AVX2 run may be slower, because such CPUs are rare.
#if defined(__x86_64__) && !defined(__AVX2__)
constexpr bool has_lean_kernels = true;
#else
constexpr bool has_lean_kernels = false;
#endif
// True if blocks of a class are packed several at a time, in vectors as wide as the set has.
template <class Block, Mode mode>
constexpr bool is_packed_in_vectors() {
  return mode == Mode::pack && (Block::fixed_bytes == 4 || Block::fixed_bytes == 8);
}

// Not inlined, because its loops would spill registers of the caller.
[[gnu::noinline]] void copy_lines(std::byte* to, const std::byte* from, int64_t bytes) { LongBlock{bytes}(to, from); }

// Copies a block whose length is known only at run time.
SPL_FORCE_INLINE void copy_piece_inline(std::byte* to, const std::byte* from, int64_t bytes) {
#if defined(__AVX512BW__) && defined(__BMI2__)
  if (bytes <= 64) {  // a masked move touches only its own bytes and needs no branch on the length
    const __mmask64 mask = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(bytes));
    _mm512_mask_storeu_epi8(to, mask, _mm512_maskz_loadu_epi8(mask, from));
    return;
  }
#endif
  if (bytes > 128) {
    copy_lines(to, from, bytes);
  } else if (bytes >= 64) {
    TwoWordBlock<64>{bytes}(to, from);
  } else if (bytes >= 32) {
    TwoWordBlock<32>{bytes}(to, from);
  } else if (bytes >= 16) {
    TwoWordBlock<16>{bytes}(to, from);
  } else if (bytes >= 8) {
    TwoWordBlock<8>{bytes}(to, from);
  } else if (bytes >= 4) {
    TwoWordBlock<4>{bytes}(to, from);
  } else if (bytes > 0) {
    ByteBlock{bytes}(to, from);
  }
}

void copy_piece(std::byte* to, const std::byte* from, int64_t bytes) { copy_piece_inline(to, from, bytes); }

}  // namespace
}  // namespace spinloom::layout
