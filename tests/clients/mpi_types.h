/* Random datatypes and their type maps, written down apart from MPI's.
 *
 * Contract: make_layout() draws a datatype of the wanted number of elements. `places` says where each byte of one
 * message lies, in the order of the type map; it is computed from the arguments, never asked of MPI. A message is one
 * element of `type`. drop_layout() frees both. Threads: one.
 */
#ifndef SPINLOOM_TESTS_MPI_TYPES_H
#define SPINLOOM_TESTS_MPI_TYPES_H

#include "mpi_common.h"

typedef struct {
  MPI_Datatype type;
  uint64_t bytes;  /* the bytes of one message */
  uint64_t span;   /* the length of the memory that it touches, from its start */
  uint32_t* places;
} layout_t;

static inline void place_run(layout_t* layout, uint64_t at, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) layout->places[layout->bytes++] = (uint32_t)(at + i);
  if (at + bytes > layout->span) layout->span = at + bytes;
}

/* `elements` > 0 numbers of MPI_INT, in one of six shapes. */
static inline layout_t make_layout(uint64_t* state, int elements) {
  layout_t layout = {MPI_DATATYPE_NULL, 0, 0, memory(sizeof(uint32_t) * 4 * (uint64_t)elements)};
  const int shape = below(state, 6);
  int* lengths = memory(sizeof(int) * (uint64_t)elements);
  int* starts = memory(sizeof(int) * (uint64_t)elements);
  MPI_Aint* far = memory(sizeof(MPI_Aint) * (uint64_t)elements);
  MPI_Datatype* kinds = memory(sizeof(MPI_Datatype) * (uint64_t)elements);
  int blocks = 0;
  switch (shape) {
    case 0: {
      MPI_Type_contiguous(elements, MPI_INT, &layout.type);
      place_run(&layout, 0, (uint64_t)elements * 4);
      break;
    }
    case 1: { /* the longest block up to eight that divides the elements */
      int block = 1 + below(state, 8);
      while (elements % block != 0) --block;
      const int stride = block + below(state, 9);
      MPI_Type_vector(elements / block, block, stride, MPI_INT, &layout.type);
      for (int i = 0; i < elements / block; ++i) {
        place_run(&layout, (uint64_t)i * (uint64_t)stride * 4, (uint64_t)block * 4);
      }
      break;
    }
    case 2:   /* indexed, every second block behind the next one in memory */
    case 3:   /* hindexed, at odd addresses */
    case 4: { /* struct */
      int left = elements;
      uint64_t at = 0;
      while (left > 0) {
        int block = 1 + below(state, 40);
        if (block > left) block = left;
        const int gap = below(state, 5);
        lengths[blocks] = block;
        starts[blocks] = (int)(at / 4);
        far[blocks] = (MPI_Aint)at + (shape == 3 ? 1 : 0);
        kinds[blocks] = MPI_INT;
        at += ((uint64_t)block + (uint64_t)gap) * 4;
        left -= block;
        ++blocks;
      }
      for (int i = 0; i + 1 < blocks; i += 2) {
        const int length = lengths[i], start = starts[i];
        const MPI_Aint away = far[i];
        lengths[i] = lengths[i + 1], starts[i] = starts[i + 1], far[i] = far[i + 1];
        lengths[i + 1] = length, starts[i + 1] = start, far[i + 1] = away;
      }
      for (int i = 0; i < blocks; ++i) place_run(&layout, (uint64_t)far[i], (uint64_t)lengths[i] * 4);
      if (shape == 2) MPI_Type_indexed(blocks, lengths, starts, MPI_INT, &layout.type);
      if (shape == 3) MPI_Type_create_hindexed(blocks, lengths, far, MPI_INT, &layout.type);
      if (shape == 4) MPI_Type_create_struct(blocks, lengths, far, kinds, &layout.type);
      break;
    }
    default: { /* rows of a matrix's part, columns from 1 on */
      int columns = 1 + below(state, 16);
      while (elements % columns != 0) --columns;
      const int rows = elements / columns, pad = 1 + below(state, 3);
      const int sizes[2] = {rows + 1, columns + 1 + pad}, part[2] = {rows, columns}, from[2] = {1, 1};
      MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &layout.type);
      for (int row = 0; row < rows; ++row) {
        place_run(&layout, ((uint64_t)(row + 1) * (uint64_t)sizes[1] + 1) * 4, (uint64_t)columns * 4);
      }
      break;
    }
  }
  free(lengths);
  free(starts);
  free(far);
  free(kinds);
  MPI_Type_commit(&layout.type);
  return layout;
}

static inline void drop_layout(layout_t* layout) {
  MPI_Type_free(&layout->type);
  free(layout->places);
}

/* The message `key` in memory that is filled with `gap` elsewhere. */
static inline unsigned char* laid_out(const layout_t* layout, uint64_t key, unsigned char gap) {
  unsigned char* made = memory(layout->span);
  memset(made, gap, layout->span);
  for (uint64_t i = 0; i < layout->bytes; ++i) made[layout->places[i]] = letter(key, i);
  return made;
}

/* That memory holds the message and that its gaps are untouched; the first wrong byte, or -1. */
static inline long long misplaced(const layout_t* layout, const unsigned char* at, uint64_t key, unsigned char gap) {
  unsigned char* right = laid_out(layout, key, gap);
  long long found = -1;
  for (uint64_t i = 0; i < layout->span && found < 0; ++i) {
    if (at[i] != right[i]) found = (long long)i;
  }
  free(right);
  return found;
}

#endif
