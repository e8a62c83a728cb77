/* Layout walk - the blob of a normalised datatype and the walker that turns packed bytes into pieces.
 *
 * Contract: a blob is one position-independent, little-endian array of bytes, 8-byte aligned in memory:
 *   a header, the root node, the other nodes. Each node is followed by its table. The walkers expect a
 *   blob that the layout floor has built or validated and first + length <= count * size.
 *   spl_walk_narrow(blob, first, length, emit, ctx) calls
 *     emit(ctx, offset, packed, bytes)
 *   for each piece of the packed bytes [first, first + length) in packed order: `bytes` bytes at
 *   `packed` (counted from `first`) belong at `offset` (counted from the first byte that the type
 *   touches: add header.true_lb for a base as MPI defines it). spl_walk_wide does the same with 64-bit
 *   fields. Both seek in O(depth * log entries) and then step from piece to piece.
 * Freestanding C11, also C++: no library calls, no division. The element count is not in the blob; it is
 *   the caller's. The narrow walker needs spl_layout_narrow(blob) and count elements within 2^31 bytes,
 *   packed and in memory.
 * Invariants: (1) the root follows the header at once; (2) a child starts behind its parent; (3) every
 *   node holds at least one byte unless the type is empty (size 0); (4) prefix sums rise strictly.
 * Threads: a blob is read only. Time: none.
 */
#ifndef SPINLOOM_LAYOUT_WALK_H
#define SPINLOOM_LAYOUT_WALK_H

#include <stdint.h>

#define SPL_LAYOUT_MAGIC 0x424c5053u /* "SPLB" */
#define SPL_LAYOUT_VERSION 1u
#define SPL_LAYOUT_DEPTH_MAX 16

#define SPL_INLINE static inline __attribute__((always_inline, unused))
#define SPL_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Node kinds. The leaves come first, so that one comparison recognises them. */
#define SPL_LEAF_VECTOR 0u  /* count runs of block bytes, stride bytes apart */
#define SPL_LEAF_LIST 1u    /* count runs of block bytes at listed offsets */
#define SPL_LEAF_RUNS 2u    /* count runs of listed offsets and lengths */
#define SPL_LEAF_LAST 2u
#define SPL_NODE_LOOP 3u    /* count children, stride bytes apart */
#define SPL_NODE_LIST 4u    /* count children of one kind at listed offsets */
#define SPL_NODE_MEMBERS 5u /* count children, each with its own offset and node */

typedef struct __attribute__((may_alias)) {
  uint32_t magic;
  uint16_t version;
  uint8_t width;            /* 32: narrow nodes, 64: wide nodes */
  uint8_t depth;            /* nodes on the longest path */
  uint32_t bytes;           /* bytes of the whole blob */
  uint32_t nodes;
  uint64_t size;            /* packed bytes of one element */
  uint64_t size_reciprocal; /* narrow: in the low half */
  int64_t extent;           /* bytes from one element to the next */
  int64_t true_lb;          /* the first element's */
  uint64_t true_extent;
  int64_t origin;           /* the root's place, counted from true_lb */
  uint32_t size_shift;
  uint32_t reserved;        /* zero */
} spl_layout_header;

/* Exact quotients without division. For a divisor d take s = ceil(log2 d) and m = ceil(2^(31+s) / d),
 * which fits in 32 bits because d > 2^(s-1) (or d = 1, m = 2^31). Then m d = 2^(31+s) + e with
 * 0 <= e < d <= 2^s, so n m / 2^(31+s) exceeds n / d by n e / (d 2^(31+s)) < 1 / d for every n < 2^31;
 * the fraction of n / d is at most 1 - 1/d, so the floors are equal. n is doubled so that the shift by
 * 31 + s is a multiply-high and a shift by s. With 63 for 31 the same holds for the wide form. */
SPL_INLINE uint32_t spl_divide_narrow(uint32_t n, uint32_t reciprocal, uint32_t shift) {
  return (uint32_t)(((uint64_t)(n << 1) * reciprocal) >> 32) >> shift;
}

SPL_INLINE uint64_t spl_multiply_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  const uint64_t other = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

SPL_INLINE uint64_t spl_divide_wide(uint64_t n, uint64_t reciprocal, uint32_t shift) {
  return spl_multiply_high(n << 1, reciprocal) >> shift;
}

SPL_INLINE int spl_layout_narrow(const void *blob) { return ((const spl_layout_header *)blob)->width == 32; }

#define SPL_JOIN_(a, b) a##b
#define SPL_JOIN(a, b) SPL_JOIN_(a, b)

/* The part below is compiled twice: SPL_W(x) is x_narrow with 32-bit fields, then x_wide with 64-bit ones. */
#define SPL_W(name) SPL_JOIN(name, SPL_WIDTH_SUFFIX)
#define SPL_WIDTH_SUFFIX _narrow
#define SPL_U uint32_t
#define SPL_S int32_t
#include "spinloom/layout_walk.h"
#undef SPL_WIDTH_SUFFIX
#undef SPL_U
#undef SPL_S
#define SPL_WIDTH_SUFFIX _wide
#define SPL_U uint64_t
#define SPL_S int64_t
#include "spinloom/layout_walk.h"
#undef SPL_WIDTH_SUFFIX
#undef SPL_U
#undef SPL_S

#elif defined(SPL_WIDTH_SUFFIX)

typedef struct __attribute__((may_alias)) {
  uint32_t kind;
  uint32_t shift;
  uint32_t child; /* bytes from the start of the blob; leaves, members: 0 */
  uint32_t table; /* entries of the table that follows */
  SPL_U count;
  SPL_U size;       /* packed bytes of the node */
  SPL_U block;      /* packed bytes of one child or run; runs, members: 0 */
  SPL_U reciprocal; /* the reciprocal of block */
  SPL_S stride;     /* vector, loop */
  SPL_U reserved;   /* zero */
} SPL_W(spl_node);

/* Entries of the tables: lists hold offsets alone. The last entry of runs and members closes the prefix
 * sums: its start is the node's size, its offset and child are zero. */
typedef struct __attribute__((may_alias)) {
  SPL_S offset;
  SPL_U start; /* packed bytes before this run */
} SPL_W(spl_run);

typedef struct __attribute__((may_alias)) {
  SPL_S offset;
  SPL_U start;
  SPL_U child;
} SPL_W(spl_member);

typedef SPL_S __attribute__((may_alias)) SPL_W(spl_offset);

typedef void (*SPL_W(spl_emit))(void *context, SPL_S offset, SPL_U packed, SPL_U bytes);

#define SPL_DIVIDE(n, node) SPL_W(spl_divide)((n), (node)->reciprocal, (node)->shift)
/* Offsets are added as unsigned numbers: a step behind the last piece may wrap and is never used. */
#define SPL_PLUS(offset, bytes) ((SPL_U)(offset) + (SPL_U)(bytes))

SPL_INLINE const SPL_W(spl_node) * SPL_W(spl_node_at)(const void *blob, SPL_U bytes) {
  return (const SPL_W(spl_node) *)((const char *)blob + bytes);
}

/* The last run (member) that starts at or before `position`. */
SPL_INLINE const SPL_W(spl_run) * SPL_W(spl_find_run)(const SPL_W(spl_run) * table, SPL_U count, SPL_U position) {
  while (count > 1) {
    const SPL_U half = count >> 1;
    /* No branch: half of the guesses would be wrong, and a wrong guess costs more than the step. */
    table += half & (SPL_U) - (SPL_S)(table[half].start <= position);
    count -= half;
  }
  return table;
}

SPL_INLINE const SPL_W(spl_member) *
    SPL_W(spl_find_member)(const SPL_W(spl_member) * table, SPL_U count, SPL_U position) {
  while (count > 1) {
    const SPL_U half = count >> 1;
    /* No branch: half of the guesses would be wrong, and a wrong guess costs more than the step. */
    table += half & (SPL_U) - (SPL_S)(table[half].start <= position);
    count -= half;
  }
  return table;
}

/* Emits `bytes` > 0 bytes of a leaf from its packed byte `position` on; they end within the leaf. */
SPL_INLINE void SPL_W(spl_walk_vector)(const SPL_W(spl_node) * node, SPL_U base, SPL_U position, SPL_U bytes,
                                       SPL_U packed, SPL_W(spl_emit) emit, void *context) {
  const SPL_U block = node->block;
  const SPL_U stride = (SPL_U)node->stride;
  SPL_U offset = base;
  if (position != 0) {
    const SPL_U index = SPL_DIVIDE(position, node);
    const SPL_U within = position - index * block;
    offset += index * stride;
    if (within != 0) {
      const SPL_U rest = block - within < bytes ? block - within : bytes;
      emit(context, (SPL_S)(offset + within), packed, rest);
      bytes -= rest;
      packed += rest;
      offset += stride;
    }
  }
  if (SPL_LIKELY(bytes >= block)) {
    const SPL_U whole = SPL_DIVIDE(bytes, node) * block;
    const SPL_U end = packed + whole;
    bytes -= whole;
    do {
      emit(context, (SPL_S)offset, packed, block);
      offset += stride;
      packed += block;
    } while (packed != end);
  }
  if (bytes != 0) emit(context, (SPL_S)offset, packed, bytes);
}

SPL_INLINE void SPL_W(spl_walk_leaf)(const SPL_W(spl_node) * node, SPL_U base, SPL_U position, SPL_U bytes,
                                     SPL_U packed, SPL_W(spl_emit) emit, void *context) {
  if (SPL_LIKELY(node->kind == SPL_LEAF_VECTOR)) {
    SPL_W(spl_walk_vector)(node, base, position, bytes, packed, emit, context);
  } else if (node->kind == SPL_LEAF_LIST) {
    const SPL_W(spl_offset) *entry = (const SPL_W(spl_offset) *)(node + 1);
    const SPL_U block = node->block;
    if (position != 0) {
      const SPL_U index = SPL_DIVIDE(position, node);
      const SPL_U within = position - index * block;
      entry += index;
      if (within != 0) {
        const SPL_U rest = block - within < bytes ? block - within : bytes;
        emit(context, (SPL_S)(SPL_PLUS(base, *entry) + within), packed, rest);
        bytes -= rest;
        packed += rest;
        ++entry;
      }
    }
    if (SPL_LIKELY(bytes >= block)) {
      const SPL_U whole = SPL_DIVIDE(bytes, node) * block;
      const SPL_U end = packed + whole;
      bytes -= whole;
      do {
        emit(context, (SPL_S)SPL_PLUS(base, *entry), packed, block);
        ++entry;
        packed += block;
      } while (packed != end);
    }
    if (bytes != 0) emit(context, (SPL_S)SPL_PLUS(base, *entry), packed, bytes);
  } else {
    const SPL_W(spl_run) *entry = (const SPL_W(spl_run) *)(node + 1);
    const SPL_U end = position + bytes;
    SPL_U offset;
    SPL_U stop;
    if (position != 0) entry = SPL_W(spl_find_run)(entry, node->count, position);
    offset = SPL_PLUS(base, entry->offset) + (position - entry->start);
    packed -= position; /* packed + position is the place in the packet from here on */
    while ((stop = entry[1].start) < end) {
      emit(context, (SPL_S)offset, packed + position, stop - position);
      ++entry;
      position = stop;
      offset = SPL_PLUS(base, entry->offset);
    }
    emit(context, (SPL_S)offset, packed + position, end - position);
  }
}

/* One entered level above the leaf. `place` is the offset of the current child (loop) or of the node. */
typedef struct {
  const SPL_W(spl_node) * node;
  SPL_U index;
  SPL_U place;
} SPL_W(spl_level);

/* Enters the child that holds packed byte *position of *node: both move on to the child. */
SPL_INLINE void SPL_W(spl_walk_down)(const void *blob, const SPL_W(spl_node) * *node, SPL_U *base, SPL_U *position,
                                     SPL_W(spl_level) * level) {
  const SPL_W(spl_node) *parent = *node;
  SPL_U index = 0;
  level->node = parent;
  level->place = *base;
  if (parent->kind == SPL_NODE_MEMBERS) {
    const SPL_W(spl_member) *table = (const SPL_W(spl_member) *)(parent + 1);
    const SPL_W(spl_member) *entry = SPL_W(spl_find_member)(table, parent->count, *position);
    index = (SPL_U)(entry - table);
    *position -= entry->start;
    *base += (SPL_U)entry->offset;
    *node = SPL_W(spl_node_at)(blob, entry->child);
  } else {
    if (*position != 0) {
      index = SPL_DIVIDE(*position, parent);
      *position -= index * parent->block;
    }
    if (parent->kind == SPL_NODE_LOOP) {
      *base += index * (SPL_U)parent->stride;
      level->place = *base;
    } else {
      *base += (SPL_U)((const SPL_W(spl_offset) *)(parent + 1))[index];
    }
    *node = SPL_W(spl_node_at)(blob, parent->child);
  }
  level->index = index;
}

/* Steps a level to its next child: returns 1 and the child's node and base, or 0 if the level is done. */
SPL_INLINE int SPL_W(spl_walk_next)(const void *blob, SPL_W(spl_level) * level, const SPL_W(spl_node) * *node,
                                    SPL_U *base) {
  const SPL_W(spl_node) *parent = level->node;
  const SPL_U index = level->index + 1;
  if (index == parent->count) return 0;
  level->index = index;
  if (parent->kind == SPL_NODE_LOOP) {
    *base = level->place = SPL_PLUS(level->place, parent->stride);
    *node = SPL_W(spl_node_at)(blob, parent->child);
  } else if (parent->kind == SPL_NODE_LIST) {
    *base = SPL_PLUS(level->place, ((const SPL_W(spl_offset) *)(parent + 1))[index]);
    *node = SPL_W(spl_node_at)(blob, parent->child);
  } else {
    const SPL_W(spl_member) *entry = (const SPL_W(spl_member) *)(parent + 1) + index;
    *base = SPL_PLUS(level->place, entry->offset);
    *node = SPL_W(spl_node_at)(blob, entry->child);
  }
  return 1;
}

/* The general case: any nest, any number of elements. */
static __attribute__((noinline, unused)) void SPL_W(spl_walk_nest)(const void *blob, SPL_U first, SPL_U length,
                                                                   SPL_W(spl_emit) emit, void *context) {
  const spl_layout_header *header = (const spl_layout_header *)blob;
  const SPL_U extent = (SPL_U)header->extent;
  SPL_W(spl_level) levels[SPL_LAYOUT_DEPTH_MAX];
  SPL_W(spl_level) *level = levels;
  const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, sizeof(spl_layout_header));
  SPL_U element = (SPL_U)header->origin;
  SPL_U base;
  SPL_U packed = 0;
  if (first >= node->size) {
    const SPL_U index = SPL_W(spl_divide)(first, (SPL_U)header->size_reciprocal, header->size_shift);
    first -= index * node->size;
    element += index * extent;
  }
  base = element;
  for (;;) {
    SPL_U bytes;
    while (node->kind > SPL_LEAF_LAST) SPL_W(spl_walk_down)(blob, &node, &base, &first, level++);
    bytes = node->size - first;
    if (bytes > length) bytes = length;
    SPL_W(spl_walk_leaf)(node, base, first, bytes, packed, emit, context);
    length -= bytes;
    if (length == 0) return;
    packed += bytes;
    first = 0;
    while (level != levels && !SPL_W(spl_walk_next)(blob, level - 1, &node, &base)) --level;
    if (level == levels) {
      element += extent;
      base = element;
      node = SPL_W(spl_node_at)(blob, sizeof(spl_layout_header));
    }
  }
}

/* A quick way if all bytes lie in one vector among the members of one element; otherwise the general case. */
static __attribute__((noinline, unused)) void SPL_W(spl_walk_members)(const void *blob, SPL_U first, SPL_U length,
                                                                      SPL_W(spl_emit) emit, void *context) {
  const spl_layout_header *header = (const spl_layout_header *)blob;
  const SPL_W(spl_node) *root = SPL_W(spl_node_at)(blob, sizeof(spl_layout_header));
  const SPL_W(spl_member) *entry = SPL_W(spl_find_member)((const SPL_W(spl_member) *)(root + 1), root->count, first);
  const SPL_W(spl_node) *child = SPL_W(spl_node_at)(blob, entry->child);
  if (SPL_LIKELY(first + length <= entry[1].start && child->kind == SPL_LEAF_VECTOR)) {
    const SPL_U base = SPL_PLUS(header->origin, entry->offset);
    SPL_W(spl_walk_vector)(child, base, first - entry->start, length, 0, emit, context);
  } else {
    SPL_W(spl_walk_nest)(blob, first, length, emit, context);
  }
}

/* Only the commonest case is inlined, so that it needs no stack frame: all bytes in one element that is one vector. */
SPL_INLINE void SPL_W(spl_walk)(const void *blob, SPL_U first, SPL_U length, SPL_W(spl_emit) emit, void *context) {
  const spl_layout_header *header = (const spl_layout_header *)blob;
  const SPL_W(spl_node) *root = SPL_W(spl_node_at)(blob, sizeof(spl_layout_header));
  const int one_element = first + length <= root->size;
  if (length == 0) return;
  if (SPL_LIKELY(root->kind == SPL_LEAF_VECTOR && one_element)) {
    SPL_W(spl_walk_vector)(root, (SPL_U)header->origin, first, length, 0, emit, context);
  } else if (root->kind == SPL_NODE_MEMBERS && one_element) {
    SPL_W(spl_walk_members)(blob, first, length, emit, context);
  } else {
    SPL_W(spl_walk_nest)(blob, first, length, emit, context);
  }
}

#endif
