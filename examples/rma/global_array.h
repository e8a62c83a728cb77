/* An array of 64-bit words that lies at all ranks in equal parts, in the manner of PGAS languages: any rank reads, writes and
 * changes any element, by spinloom/rma.h; nobody else has to do anything.
 *
 * Contract: array_open() and array_close() are collective. Calls end the program with a sentence if something is wrong.
 * Threads: one. Time: array_put() and array_add() do not wait; array_fence() waits for those of all ranks. */
#ifndef GLOBAL_ARRAY_H
#define GLOBAL_ARRAY_H

#include <portals4.h>
#include <spinloom/rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  spl_rma* rma;
  spl_rma_window* window;
  uint64_t* part; /* this rank's elements */
  uint64_t part_words; /* the words of each rank's part */
  uint32_t rank, ranks;
} Array;

static inline void array_must(const Array* array, int code) {
  if (code == PTL_OK) return;
  fprintf(stderr, "rank %u: %s\n", array->rank, spl_rma_error(array->rma));
  exit(1);
}

/* `words` elements in all, rounded up to whole parts; all zero. */
static inline void array_open(Array* array, ptl_handle_ni_t interface, uint64_t words) {
  array->rank = 0;
  array->rma = NULL;
  array_must(array, spl_rma_open(interface, NULL, &array->rma));
  array->rank = spl_rma_rank(array->rma);
  array->ranks = spl_rma_size(array->rma);
  array->part_words = (words + array->ranks - 1) / array->ranks;
  array->part = calloc(array->part_words, sizeof *array->part);
  if (array->part == NULL) exit(1);
  array_must(array,
             spl_rma_window_make(array->rma, array->part, array->part_words * 8, SPL_RMA_ALL, 0, &array->window));
}

static inline void array_close(Array* array) {
  array_must(array, spl_rma_window_free(array->window));
  array_must(array, spl_rma_close(array->rma));
  free(array->part);
}

static inline uint32_t array_owner(const Array* array, uint64_t at) { return (uint32_t)(at / array->part_words); }
static inline spl_rma_key* array_key(const Array* array, uint64_t at) {
  return spl_rma_window_key(array->window, array_owner(array, at));
}
static inline uint64_t array_offset(const Array* array, uint64_t at) { return at % array->part_words * 8; }

static inline void array_fence(Array* array) { array_must(array, spl_rma_fence(array->rma)); }

static inline void array_put(Array* array, uint64_t at, const uint64_t* value) {
  array_must(array, spl_rma_put(array_key(array, at), array_offset(array, at), value, 8));
}

static inline uint64_t array_get(Array* array, uint64_t at) {
  uint64_t value = 0;
  array_must(array, spl_rma_get(array_key(array, at), array_offset(array, at), &value, 8));
  array_must(array, spl_rma_flush(array->rma, array_owner(array, at)));
  return value;
}

/* `by` must not change before the next fence. */
static inline void array_add(Array* array, uint64_t at, const uint64_t* by) {
  array_must(array, spl_rma_accumulate(array_key(array, at), array_offset(array, at), by, 1, PTL_SUM, PTL_UINT64_T));
}

/* What the element was; it is `value` now if it was `compare`. */
static inline uint64_t array_swap(Array* array, uint64_t at, uint64_t compare, uint64_t value) {
  uint64_t was = 0;
  array_must(array, spl_rma_compare_and_swap(array_key(array, at), array_offset(array, at), &value, &compare, &was,
                                             PTL_UINT64_T));
  array_must(array, spl_rma_flush(array->rma, array_owner(array, at)));
  return was;
}

#endif
