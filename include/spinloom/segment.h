/* Segment - the processing state of a datatype, as MPITypes defines it, over the nodes of a blob.
 *
 * Contract: the nodes are the dataloops: a vector leaf of one run is *contig*, vector leaf and loop are
 *   *vector*, lists are *blockindexed*, runs *indexed*, members *struct*. A segment knows one position in
 *   the packed bytes and a stack with one entry a level; it cannot seek.
 *   spl_segment_manipulate_narrow(segment, blob, first, last, emit, ctx) processes [first, last):
 *   a segment behind `first` walks block by block without emitting until it is there (catch-up), one
 *   beyond it is reset to the start and catches up from there. It returns the blocks of the catch-up.
 *   spl_segment_beyond() tells the caller when a reset would come, so that it may copy a checkpoint
 *   instead. emit is called as by the walker (layout_walk.h). _wide is the same with 64-bit fields.
 *   Copying the first spl_segment_bytes(blob) bytes of a segment makes a checkpoint.
 * Freestanding C11, also C++. The element count is the caller's: last <= count * size.
 * Invariants: (1) what a segment does next depends on its position alone; (2) a level that is done is left
 *   only when more bytes are asked for.
 * Threads: one at a time a segment. Time: none.
 */
#ifndef SPINLOOM_SEGMENT_H
#define SPINLOOM_SEGMENT_H

#include "spinloom/layout_walk.h"

/* Keeps the compiler from turning a catch-up into a division: the catch-up is a walk by definition. */
#define SPL_WALKED(value) __asm__ volatile("" : "+r"(value))

#define SPL_WIDTH_SUFFIX _narrow
#define SPL_U uint32_t
#define SPL_S int32_t
#include "spinloom/segment.h"
#undef SPL_WIDTH_SUFFIX
#undef SPL_U
#undef SPL_S
#define SPL_WIDTH_SUFFIX _wide
#define SPL_U uint64_t
#define SPL_S int64_t
#include "spinloom/segment.h"
#undef SPL_WIDTH_SUFFIX
#undef SPL_U
#undef SPL_S

SPL_INLINE uint32_t spl_segment_bytes(const void* blob) {
  const uint32_t depth = ((const spl_layout_header*)blob)->depth;
  return spl_layout_narrow(blob)
             ? (uint32_t)(sizeof(spl_segment_narrow) - (SPL_LAYOUT_DEPTH_MAX - depth) * sizeof(spl_frame_narrow))
             : (uint32_t)(sizeof(spl_segment_wide) - (SPL_LAYOUT_DEPTH_MAX - depth) * sizeof(spl_frame_wide));
}

#elif defined(SPL_WIDTH_SUFFIX)

/* One level. place: vector leaf and loop: the offset of the current block or child; else of the node. */
typedef struct {
  SPL_U node; /* bytes from the start of the blob */
  SPL_U index;
  SPL_U place;
} SPL_W(spl_frame);

typedef struct {
  SPL_U position; /* packed bytes processed since the start of the message */
  SPL_U within;   /* of them, bytes of the current block */
  SPL_U element;  /* offset of the current element's root */
  SPL_U level;    /* index of the leaf's frame */
  SPL_W(spl_frame) frames[SPL_LAYOUT_DEPTH_MAX];
} SPL_W(spl_segment);

/* Enters the first leaf under `node` at offset `place`. */
SPL_INLINE void SPL_W(spl_segment_enter)(SPL_W(spl_segment) * segment, const void* blob, SPL_U level, SPL_U node,
                                         SPL_U place) {
  for (;;) {
    const SPL_W(spl_node)* entered = SPL_W(spl_node_at)(blob, node);
    SPL_W(spl_frame)* frame = &segment->frames[level];
    frame->node = node;
    frame->index = 0;
    frame->place = place;
    if (entered->kind <= SPL_LEAF_LAST) break;
    ++level;
    if (entered->kind == SPL_NODE_MEMBERS) {
      const SPL_W(spl_member)* member = (const SPL_W(spl_member)*)(entered + 1);
      place = SPL_PLUS(place, member->offset);
      node = member->child;
    } else {
      if (entered->kind == SPL_NODE_LIST) place = SPL_PLUS(place, *(const SPL_W(spl_offset)*)(entered + 1));
      node = entered->child;
    }
  }
  segment->level = level;
}

static __attribute__((noinline, unused)) void SPL_W(spl_segment_init)(SPL_W(spl_segment) * segment,
                                                                      const void* blob) {
  segment->position = 0;
  segment->within = 0;
  segment->element = (SPL_U)((const spl_layout_header*)blob)->origin;
  SPL_W(spl_segment_enter)(segment, blob, 0, sizeof(spl_layout_header), segment->element);
}

/* The leaf is done: on to the next one, of this element or the next. */
static __attribute__((noinline, unused)) void SPL_W(spl_segment_next_leaf)(SPL_W(spl_segment) * segment,
                                                                           const void* blob) {
  SPL_U level = segment->level;
  while (level > 0) {
    SPL_W(spl_frame)* frame = &segment->frames[--level];
    const SPL_W(spl_node)* node = SPL_W(spl_node_at)(blob, frame->node);
    if (++frame->index < node->count) {
      SPL_U place = frame->place;
      SPL_U child = node->child;
      if (node->kind == SPL_NODE_LOOP) {
        place += (SPL_U)node->stride;
        frame->place = place;
      } else if (node->kind == SPL_NODE_LIST) {
        place = SPL_PLUS(place, ((const SPL_W(spl_offset)*)(node + 1))[frame->index]);
      } else {
        const SPL_W(spl_member)* member = (const SPL_W(spl_member)*)(node + 1) + frame->index;
        place = SPL_PLUS(place, member->offset);
        child = member->child;
      }
      SPL_W(spl_segment_enter)(segment, blob, level + 1, child, place);
      return;
    }
  }
  segment->element += (SPL_U)((const spl_layout_header*)blob)->extent;
  SPL_W(spl_segment_enter)(segment, blob, 0, sizeof(spl_layout_header), segment->element);
}

/* Walks `bytes` bytes on without emitting; returns the blocks that were left behind. */
static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_catch_up)(SPL_W(spl_segment) * segment,
                                                                           const void* blob, SPL_U bytes) {
  SPL_U blocks = 0;
  SPL_U rest = bytes + segment->within; /* from the start of the current block */
  for (;;) {
    SPL_W(spl_frame)* frame = &segment->frames[segment->level];
    const SPL_W(spl_node)* node = SPL_W(spl_node_at)(blob, frame->node);
    const SPL_U count = node->count;
    const SPL_U from = frame->index;
    SPL_U index = from;
    if (node->kind == SPL_LEAF_RUNS) {
      const SPL_W(spl_run)* run = (const SPL_W(spl_run)*)(node + 1) + index;
      while (index < count && rest >= run[1].start - run->start) {
        rest -= run[1].start - run->start;
        ++run;
        ++index;
        SPL_WALKED(rest);
      }
    } else {
      const SPL_U block = node->block;
      const SPL_U stride = node->kind == SPL_LEAF_VECTOR ? (SPL_U)node->stride : 0;
      SPL_U place = frame->place;
      while (index < count && rest >= block) {
        rest -= block;
        place += stride;
        ++index;
        SPL_WALKED(rest);
      }
      frame->place = place;
    }
    frame->index = index;
    blocks += index - from;
    if (rest == 0 || index < count) break;
    SPL_W(spl_segment_next_leaf)(segment, blob);
  }
  segment->within = rest;
  segment->position += bytes;
  return blocks;
}

SPL_INLINE int SPL_W(spl_segment_beyond)(const SPL_W(spl_segment) * segment, SPL_U first) {
  return segment->position > first;
}

/* Emits up to *bytes > 0 bytes of the current leaf, which has `left` > 0 blocks to go; *packed and *bytes move
 * on by what was emitted. */
SPL_INLINE void SPL_W(spl_segment_leaf)(SPL_W(spl_segment) * segment, SPL_W(spl_frame) * frame,
                                        const SPL_W(spl_node) * node, SPL_U left, SPL_U* packed_io,
                                        SPL_U* bytes_io, SPL_W(spl_emit) emit, void* context) {
  const SPL_U count = frame->index + left;
  SPL_U within = segment->within;
  SPL_U packed = *packed_io;
  SPL_U bytes = *bytes_io;
  SPL_U place = frame->place;
  if (node->kind != SPL_LEAF_RUNS) {
    const SPL_U block = node->block;
    const SPL_U stride = (SPL_U)node->stride;
    const SPL_W(spl_offset)* entry = (const SPL_W(spl_offset)*)(node + 1) + frame->index;
    const int listed = node->kind == SPL_LEAF_LIST;
    if (within != 0) {
      const SPL_U rest = block - within < bytes ? block - within : bytes;
      emit(context, (SPL_S)((listed ? SPL_PLUS(place, *entry) : place) + within), packed, rest);
      packed += rest;
      bytes -= rest;
      within += rest;
      if (within == block) {
        within = 0;
        --left;
        if (listed) {
          ++entry;
        } else {
          place += stride;
        }
      }
    }
    if (bytes >= block && left != 0) {
      SPL_U whole = SPL_DIVIDE(bytes, node);
      SPL_U end;
      if (whole > left) whole = left;
      left -= whole;
      whole *= block;
      end = packed + whole;
      bytes -= whole;
      if (listed) {
        do {
          emit(context, (SPL_S)SPL_PLUS(place, *entry), packed, block);
          ++entry;
          packed += block;
        } while (packed != end);
      } else {
        do {
          emit(context, (SPL_S)place, packed, block);
          place += stride;
          packed += block;
        } while (packed != end);
      }
    }
    if (bytes != 0 && left != 0) {
      emit(context, (SPL_S)(listed ? SPL_PLUS(place, *entry) : place), packed, bytes);
      packed += bytes;
      within = bytes;
      bytes = 0;
    }
    frame->place = place;
  } else {
    const SPL_W(spl_run)* run = (const SPL_W(spl_run)*)(node + 1) + frame->index;
    SPL_U start = run->start + within;
    const SPL_U bias = packed - start;
    const SPL_U end = start + bytes;
    SPL_U stop;
    SPL_U offset = SPL_PLUS(place, run->offset) + within;
    while ((stop = run[1].start) <= end) {
      emit(context, (SPL_S)offset, bias + start, stop - start);
      start = stop;
      ++run;
      if (--left == 0) break;
      offset = SPL_PLUS(place, run->offset);
    }
    if (left != 0 && start != end) {
      emit(context, (SPL_S)offset, bias + start, end - start);
      start = end;
    }
    within = left != 0 ? start - run->start : 0;
    packed = bias + start;
    bytes = end - start;
  }
  frame->index = count - left;
  segment->within = within;
  *packed_io = packed;
  *bytes_io = bytes;
}

/* The general case: any way to `first`, any number of leaves. A function of its own so that the quick entry
 * below needs no stack frame. */
static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_process)(SPL_W(spl_segment) * segment,
                                                                          const void* blob, SPL_U first,
                                                                          SPL_U packed, SPL_U bytes,
                                                                          SPL_W(spl_emit) emit, void* context) {
  SPL_U blocks = 0;
  if (segment->position != first) {
    if (SPL_W(spl_segment_beyond)(segment, first)) SPL_W(spl_segment_init)(segment, blob);
    blocks = SPL_W(spl_segment_catch_up)(segment, blob, first - segment->position);
  }
  segment->position = first + bytes;
  for (;;) {
    SPL_W(spl_frame)* frame = &segment->frames[segment->level];
    const SPL_W(spl_node)* node = SPL_W(spl_node_at)(blob, frame->node);
    const SPL_U left = node->count - frame->index;
    if (left == 0) {
      SPL_W(spl_segment_next_leaf)(segment, blob);
      continue;
    }
    SPL_W(spl_segment_leaf)(segment, frame, node, left, &packed, &bytes, emit, context);
    if (bytes == 0) return blocks;
  }
}

SPL_INLINE SPL_U SPL_W(spl_segment_manipulate)(SPL_W(spl_segment) * segment, const void* blob, SPL_U first,
                                               SPL_U last, SPL_W(spl_emit) emit, void* context) {
  SPL_U packed = 0;
  SPL_U bytes = last - first;
  if (first >= last) return 0;
  if (SPL_LIKELY(segment->position == first)) {
    SPL_W(spl_frame)* frame = &segment->frames[segment->level];
    const SPL_W(spl_node)* node = SPL_W(spl_node_at)(blob, frame->node);
    const SPL_U left = node->count - frame->index;
    if (left != 0) {
      SPL_W(spl_segment_leaf)(segment, frame, node, left, &packed, &bytes, emit, context);
      segment->position = first + packed;
      if (bytes == 0) return 0;
    }
  }
  return SPL_W(spl_segment_process)(segment, blob, first + packed, packed, bytes, emit, context);
}

#endif
