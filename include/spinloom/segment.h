/* Segment - the processing state of a datatype, as MPITypes defines it, over the nodes of a blob.
 *
 * Contract: the nodes are the dataloops: a vector leaf of one run is *contig*, vector leaf and loop are
 *   *vector*, lists are *blockindexed*, runs *indexed*, members *struct*. A segment knows one position in
 *   the packed bytes and a stack with one entry a level; it cannot seek.
 *   spl_segment_manipulate_narrow(segment, blob, first, last, emit, ctx) processes [first, last):
 *   a segment behind `first` walks block by block without emitting until it is there (catch-up); a segment
 *   beyond `first` is reset to the start and catches up from there. It returns the blocks of the catch-up.
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

SPL_INLINE uint32_t spl_segment_bytes(const void *blob) {
  const uint32_t depth = ((const spl_layout_header *)blob)->depth;
  return spl_layout_narrow(blob)
             ? (uint32_t)(sizeof(spl_segment_narrow) - (SPL_LAYOUT_DEPTH_MAX - depth) * sizeof(spl_frame_narrow))
             : (uint32_t)(sizeof(spl_segment_wide) - (SPL_LAYOUT_DEPTH_MAX - depth) * sizeof(spl_frame_wide));
}

#elif defined(SPL_WIDTH_SUFFIX)

/* One level. left: blocks or children to go, the current one included. place: in a vector leaf or loop the
 * offset of the current block or child; otherwise that of the node. */
typedef struct {
  SPL_U node; /* bytes from the start of the blob */
  SPL_U left;
  SPL_U place;
} SPL_W(spl_frame);

typedef struct {
  SPL_U position; /* packed bytes processed since the start of the message */
  SPL_U within;   /* processed bytes of the current block */
  SPL_U element;  /* offset of the current element's root */
  SPL_U leaf;     /* the leaf's frame, in bytes from the start of the segment */
  SPL_W(spl_frame) frames[SPL_LAYOUT_DEPTH_MAX];
} SPL_W(spl_segment);

SPL_INLINE SPL_W(spl_frame) * SPL_W(spl_segment_frame)(SPL_W(spl_segment) * segment) {
  return (SPL_W(spl_frame) *)(void *)((char *)segment + segment->leaf);
}

/* Enters the first leaf under `node` at offset `place`, from `frame` on. */
SPL_INLINE void SPL_W(spl_segment_enter)(SPL_W(spl_segment) * segment, const void *blob, SPL_W(spl_frame) * frame,
                                         SPL_U node, SPL_U place) {
  for (;; ++frame) {
    const SPL_W(spl_node) *entered = SPL_W(spl_node_at)(blob, node);
    frame->node = node;
    frame->left = entered->count;
    frame->place = place;
    if (entered->kind <= SPL_LEAF_LAST) break;
    if (entered->kind == SPL_NODE_MEMBERS) {
      const SPL_W(spl_member) *member = (const SPL_W(spl_member) *)(entered + 1);
      place = SPL_PLUS(place, member->offset);
      node = member->child;
    } else {
      if (entered->kind == SPL_NODE_LIST) place = SPL_PLUS(place, *(const SPL_W(spl_offset) *)(entered + 1));
      node = entered->child;
    }
  }
  segment->leaf = (SPL_U)((char *)frame - (char *)segment);
}

static __attribute__((noinline, unused)) void SPL_W(spl_segment_init)(SPL_W(spl_segment) * segment, const void *blob) {
  segment->position = 0;
  segment->within = 0;
  segment->element = (SPL_U)((const spl_layout_header *)blob)->origin;
  SPL_W(spl_segment_enter)(segment, blob, segment->frames, sizeof(spl_layout_header), segment->element);
}

/* The leaf is done: goes on to the next leaf, of this element or the next. */
static __attribute__((noinline, unused)) void SPL_W(spl_segment_next_leaf)(SPL_W(spl_segment) * segment,
                                                                           const void *blob) {
  SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
  while (frame != segment->frames) {
    --frame;
    if (--frame->left != 0) {
      const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
      const SPL_U index = node->count - frame->left;
      SPL_U place = frame->place;
      SPL_U child = node->child;
      if (node->kind == SPL_NODE_LOOP) {
        place += (SPL_U)node->stride;
        frame->place = place;
      } else if (node->kind == SPL_NODE_LIST) {
        place = SPL_PLUS(place, ((const SPL_W(spl_offset) *)(node + 1))[index]);
      } else {
        const SPL_W(spl_member) *member = (const SPL_W(spl_member) *)(node + 1) + index;
        place = SPL_PLUS(place, member->offset);
        child = member->child;
      }
      SPL_W(spl_segment_enter)(segment, blob, frame + 1, child, place);
      return;
    }
  }
  segment->element += (SPL_U)((const spl_layout_header *)blob)->extent;
  SPL_W(spl_segment_enter)(segment, blob, segment->frames, sizeof(spl_layout_header), segment->element);
}

/* Walks `bytes` bytes on without emitting; returns the blocks that were left behind. */
static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_catch_up)(SPL_W(spl_segment) * segment,
                                                                           const void *blob, SPL_U bytes) {
  SPL_U blocks = 0;
  SPL_U rest = bytes + segment->within; /* bytes from the start of the current block */
  for (;;) {
    SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
    const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
    SPL_U left = frame->left;
    if (node->kind == SPL_LEAF_RUNS) {
      const SPL_W(spl_run) *run = (const SPL_W(spl_run) *)(node + 1) + (node->count - left);
      while (left != 0 && rest >= run[1].start - run->start) {
        rest -= run[1].start - run->start;
        ++run;
        --left;
        SPL_WALKED(rest);
      }
    } else {
      const SPL_U block = node->block;
      const SPL_U stride = (SPL_U)node->stride; /* 0 for a list */
      SPL_U place = frame->place;
      while (left != 0 && rest >= block) {
        rest -= block;
        place += stride;
        --left;
        SPL_WALKED(rest);
      }
      frame->place = place;
    }
    blocks += frame->left - left;
    frame->left = left;
    if (rest == 0 || left != 0) break;
    SPL_W(spl_segment_next_leaf)(segment, blob);
  }
  segment->within = rest;
  segment->position += bytes;
  return blocks;
}

SPL_INLINE int SPL_W(spl_segment_beyond)(const SPL_W(spl_segment) * segment, SPL_U first) {
  return segment->position > first;
}

/* The three leaves: each emits up to `bytes` > 0 bytes of its frame, which has blocks to go, and returns how
 * many bytes of the request are left. */
SPL_INLINE SPL_U SPL_W(spl_segment_vector)(SPL_W(spl_segment) * segment, SPL_W(spl_frame) * frame,
                                           const SPL_W(spl_node) * node, SPL_U packed, SPL_U bytes,
                                           SPL_W(spl_emit) emit, void *context) {
  const SPL_U block = node->block;
  const SPL_U stride = (SPL_U)node->stride;
  SPL_U left = frame->left;
  SPL_U place = frame->place;
  SPL_U within = segment->within;
  if (within != 0) {
    const SPL_U rest = block - within;
    if (rest > bytes) {
      emit(context, (SPL_S)(place + within), packed, bytes);
      segment->within = within + bytes;
      return 0;
    }
    emit(context, (SPL_S)(place + within), packed, rest);
    packed += rest;
    bytes -= rest;
    place += stride;
    --left;
  }
  within = 0;
  if (bytes >= block && left != 0) {
    SPL_U whole = SPL_DIVIDE(bytes, node);
    SPL_U end;
    if (whole > left) whole = left;
    left -= whole;
    whole *= block;
    end = packed + whole;
    bytes -= whole;
    do {
      emit(context, (SPL_S)place, packed, block);
      place += stride;
      packed += block;
    } while (packed != end);
  }
  if (bytes != 0 && left != 0) {
    emit(context, (SPL_S)place, packed, bytes);
    within = bytes;
    bytes = 0;
  }
  frame->left = left;
  frame->place = place;
  segment->within = within;
  return bytes;
}

SPL_INLINE SPL_U SPL_W(spl_segment_list)(SPL_W(spl_segment) * segment, SPL_W(spl_frame) * frame,
                                         const SPL_W(spl_node) * node, SPL_U packed, SPL_U bytes, SPL_W(spl_emit) emit,
                                         void *context) {
  const SPL_U block = node->block;
  const SPL_U place = frame->place;
  SPL_U left = frame->left;
  SPL_U within = segment->within;
  const SPL_W(spl_offset) *entry = (const SPL_W(spl_offset) *)(node + 1) + (node->count - left);
  if (within != 0) {
    const SPL_U rest = block - within;
    if (rest > bytes) {
      emit(context, (SPL_S)(SPL_PLUS(place, *entry) + within), packed, bytes);
      segment->within = within + bytes;
      return 0;
    }
    emit(context, (SPL_S)(SPL_PLUS(place, *entry) + within), packed, rest);
    packed += rest;
    bytes -= rest;
    ++entry;
    --left;
  }
  within = 0;
  if (bytes >= block && left != 0) {
    SPL_U whole = SPL_DIVIDE(bytes, node);
    SPL_U end;
    if (whole > left) whole = left;
    left -= whole;
    whole *= block;
    end = packed + whole;
    bytes -= whole;
    do {
      emit(context, (SPL_S)SPL_PLUS(place, *entry), packed, block);
      ++entry;
      packed += block;
    } while (packed != end);
  }
  if (bytes != 0 && left != 0) {
    emit(context, (SPL_S)SPL_PLUS(place, *entry), packed, bytes);
    within = bytes;
    bytes = 0;
  }
  frame->left = left;
  segment->within = within;
  return bytes;
}

SPL_INLINE SPL_U SPL_W(spl_segment_runs)(SPL_W(spl_segment) * segment, SPL_W(spl_frame) * frame,
                                         const SPL_W(spl_node) * node, SPL_U packed, SPL_U bytes, SPL_W(spl_emit) emit,
                                         void *context) {
  const SPL_U place = frame->place;
  SPL_U left = frame->left;
  const SPL_W(spl_run) *run = (const SPL_W(spl_run) *)(node + 1) + (node->count - left);
  SPL_U start = run->start + segment->within;
  SPL_U offset = SPL_PLUS(place, run->offset) + segment->within;
  const SPL_U end = start + bytes;
  const SPL_U bias = packed - start; /* bias + start is the place in the packet */
  SPL_U stop;
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
  frame->left = left;
  segment->within = left != 0 ? start - run->start : 0;
  return end - start;
}

/* The general case: any way to `first`, any number of leaves of any kind. Not inlined, so that the quick way
 * below needs no stack frame. */
static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_process)(SPL_W(spl_segment) * segment,
                                                                          const void *blob, SPL_U first, SPL_U packed,
                                                                          SPL_U bytes, SPL_W(spl_emit) emit,
                                                                          void *context) {
  SPL_U blocks = 0;
  if (segment->position != first) {
    if (SPL_W(spl_segment_beyond)(segment, first)) SPL_W(spl_segment_init)(segment, blob);
    blocks = SPL_W(spl_segment_catch_up)(segment, blob, first - segment->position);
  }
  segment->position = first + bytes;
  for (;;) {
    SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
    if (frame->left != 0) {
      const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
      const SPL_U asked = bytes;
      if (node->kind == SPL_LEAF_VECTOR) {
        bytes = SPL_W(spl_segment_vector)(segment, frame, node, packed, bytes, emit, context);
      } else if (node->kind == SPL_LEAF_LIST) {
        bytes = SPL_W(spl_segment_list)(segment, frame, node, packed, bytes, emit, context);
      } else {
        bytes = SPL_W(spl_segment_runs)(segment, frame, node, packed, bytes, emit, context);
      }
      if (bytes == 0) return blocks;
      packed += asked - bytes;
    }
    SPL_W(spl_segment_next_leaf)(segment, blob);
  }
}

/* The quick ways, for a segment that stands at `first`, in a leaf with blocks to go. */
static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_quick_list)(SPL_W(spl_segment) * segment,
                                                                             const void *blob, SPL_U last, SPL_U bytes,
                                                                             SPL_W(spl_emit) emit, void *context) {
  SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
  const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
  const SPL_U rest = SPL_W(spl_segment_list)(segment, frame, node, 0, bytes, emit, context);
  segment->position = last - rest;
  if (SPL_LIKELY(rest == 0)) return 0;
  return SPL_W(spl_segment_process)(segment, blob, last - rest, bytes - rest, rest, emit, context);
}

static __attribute__((noinline, unused)) SPL_U SPL_W(spl_segment_quick_runs)(SPL_W(spl_segment) * segment,
                                                                             const void *blob, SPL_U last, SPL_U bytes,
                                                                             SPL_W(spl_emit) emit, void *context) {
  SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
  const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
  const SPL_U rest = SPL_W(spl_segment_runs)(segment, frame, node, 0, bytes, emit, context);
  segment->position = last - rest;
  if (SPL_LIKELY(rest == 0)) return 0;
  return SPL_W(spl_segment_process)(segment, blob, last - rest, bytes - rest, rest, emit, context);
}

SPL_INLINE SPL_U SPL_W(spl_segment_manipulate)(SPL_W(spl_segment) * segment, const void *blob, SPL_U first, SPL_U last,
                                               SPL_W(spl_emit) emit, void *context) {
  const SPL_U bytes = last - first;
  SPL_U rest = bytes;
  if (first >= last) return 0;
  if (SPL_LIKELY(segment->position == first)) {
    SPL_W(spl_frame) *frame = SPL_W(spl_segment_frame)(segment);
    const SPL_W(spl_node) *node = SPL_W(spl_node_at)(blob, frame->node);
    if (SPL_LIKELY(frame->left != 0)) {
      if (SPL_LIKELY(node->kind == SPL_LEAF_VECTOR)) {
        rest = SPL_W(spl_segment_vector)(segment, frame, node, 0, bytes, emit, context);
        segment->position = last - rest;
        if (SPL_LIKELY(rest == 0)) return 0;
      } else if (node->kind == SPL_LEAF_LIST) {
        return SPL_W(spl_segment_quick_list)(segment, blob, last, bytes, emit, context);
      } else {
        return SPL_W(spl_segment_quick_runs)(segment, blob, last, bytes, emit, context);
      }
    }
  }
  return SPL_W(spl_segment_process)(segment, blob, last - rest, bytes - rest, rest, emit, context);
}

#endif
