/* Accesses to windows in long blocks: puts, gets and accumulates of several element types and operations, from a type
 * with blocks of some lengths to a type with blocks of others, one and more of them, under locks. All bytes of the
 * window and of what was fetched, gaps included, are compared with what loops over elements say. Rank 0 accesses rank
 * 1; it says how many accesses there were, and in how many a byte was wrong. Messages of 12 KiB to 48 KiB; and with
 * the argument "long" of 288 KiB, of doubles only. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { elements_max = 36864, widest = 8, shapes = 6 };

/* Where the elements of a message lie, in packed order. */
typedef struct {
  MPI_Datatype type;
  int count;
  int places[elements_max];
} message;

static MPI_Win window;
static unsigned char *part, *own, *into, *expected, *fetched;
static int elements = 6144, room, accesses, wrong;

/* Shapes: 0 contiguous; 1 blocks of 512 elements; 2 blocks of 300 and of 724; 3 three of a type that has its last block
 * first; 4 blocks of 3, too short to be listed; 5 two of a type, where the blocks of one lie between those of the
 * other. */
static message message_of(int shape, MPI_Datatype element, int size) {
  message made = {.count = 1};
  static int lengths[elements_max], displacements[elements_max];
  int blocks = 0, at = 0;
  for (int k = 0; at < elements; ++k) {
    const int wanted = shape == 0 ? elements : shape == 2 ? 300 + 424 * (k % 2) : shape == 4 ? 3 : 512;
    const int length = wanted < elements - at ? wanted : elements - at;
    lengths[blocks] = length;
    displacements[blocks++] = shape == 0 ? 0 : at * 2 + 5;
    at += length;
  }
  if (shape == 3) {
    made.count = 3;
    blocks /= 3;
    for (int k = 0; k < blocks; ++k) displacements[k] = 2 * 512 * (blocks - 1 - k);
  }
  if (shape == 5) {
    made.count = 2;
    blocks /= 2;
    for (int k = 0; k < blocks; ++k) displacements[k] = 2 * 512 * k;
  }
  MPI_Datatype listed;
  MPI_Type_indexed(blocks, lengths, displacements, element, &listed);
  const MPI_Aint extent = (MPI_Aint)size * (shape == 3 ? 2 * 512 * blocks : shape == 5 ? 512 : room);
  MPI_Type_create_resized(listed, 0, extent, &made.type);
  MPI_Type_commit(&made.type);
  MPI_Type_free(&listed);
  int element_at = 0;
  for (int i = 0; i < made.count; ++i) {
    for (int k = 0; k < blocks; ++k) {
      for (int j = 0; j < lengths[k]; ++j) {
        made.places[element_at++] = displacements[k] + j + i * (int)(extent / size);
      }
    }
  }
  return made;
}

#define COMBINE(TYPE)                                                      \
  static void combine_##TYPE(int op, void* element, const void* operand) { \
    TYPE a, b;                                                             \
    memcpy(&a, element, sizeof a);                                         \
    memcpy(&b, operand, sizeof b);                                         \
    a = (TYPE)(op == 0 ? a + b : op == 1 ? a * b : op == 2 ? b : a);       \
    memcpy(element, &a, sizeof a);                                         \
  }
COMBINE(int16_t)
COMBINE(uint32_t)
COMBINE(uint64_t)
COMBINE(float)
COMBINE(double)

static void fill(unsigned char* memory, int kind, int start) {
  memset(memory, start, (size_t)room * widest);
  for (int i = 0; i < room; ++i) {
    const int number = (i * 7 + start) % 11 - 5;
    if (kind == 0) ((int16_t*)memory)[i] = (int16_t)number;
    if (kind == 1) ((uint32_t*)memory)[i] = (uint32_t)number;
    if (kind == 2) ((uint64_t*)memory)[i] = (uint64_t)(int64_t)number;
    if (kind == 3) ((float*)memory)[i] = (float)number;
    if (kind == 4) ((double*)memory)[i] = (double)number;
  }
}

static void look(const unsigned char* memory, const unsigned char* should, const char* what, int kind, int op) {
  if (memcmp(memory, should, (size_t)room * widest) == 0) return;
  ++wrong;
  printf("%s of kind %d, operation %d: wrong bytes\n", what, kind, op);
}

int main(int argc, char** argv) {
  static void (*const combine[])(int, void*, const void*) = {combine_int16_t, combine_uint32_t, combine_uint64_t,
                                                             combine_float, combine_double};
  const MPI_Datatype types[] = {MPI_INT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE};
  const int sizes[] = {2, 4, 8, 4, 8};
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_REPLACE, MPI_NO_OP};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int is_long = argc > 1 && strcmp(argv[1], "long") == 0;
  if (is_long) elements = elements_max;
  room = 3 * elements;
  MPI_Win_allocate((MPI_Aint)room * widest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  own = malloc((size_t)room * widest);
  into = malloc((size_t)room * widest);
  expected = malloc((size_t)room * widest);
  fetched = malloc((size_t)room * widest);
  for (int kind = is_long ? 4 : 0; kind < 5; ++kind) {
    const int size = sizes[kind];
    for (int pair = 0; pair < shapes * shapes; ++pair) {
      static message here, there, back;
      here = message_of(pair / shapes, types[kind], size);
      there = message_of(pair % shapes, types[kind], size);
      back = message_of(pair % 3, types[kind], size);
      /* 0 to 3: accumulates; 4 to 7: those that fetch; 8: a put; 9: a get; 10, 11: with one type at both ends */
      for (int access = 0; access < 12; ++access) {
        const int op = access == 3 ? 0 : access < 8 ? access % 4 : 2, is_get = access == 9 || access == 11;
        const message* const at_home = access >= 10 ? &there : &here;
        fill(part, kind, 3);
        fill(own, kind, 4);
        fill(into, kind, 5);
        fill(expected, kind, 3);
        fill(fetched, kind, 5);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
          MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
          if (is_get) {
            MPI_Get(into, at_home->count, at_home->type, 1, 0, there.count, there.type, window);
          } else if (access >= 8) {
            MPI_Put(own, at_home->count, at_home->type, 1, 0, there.count, there.type, window);
          } else if (access < 4) {
            MPI_Accumulate(own, here.count, here.type, 1, 0, there.count, there.type, ops[op], window);
          } else {
            MPI_Get_accumulate(own, here.count, here.type, into, back.count, back.type, 1, 0, there.count, there.type,
                               ops[op], window);
          }
          MPI_Win_unlock(1, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < elements; ++i) {
          unsigned char* const element = expected + there.places[i] * size;
          const int home = is_get ? at_home->places[i] : back.places[i];
          if (is_get || (access >= 4 && access < 8)) memcpy(fetched + home * size, element, (size_t)size);
          if (!is_get) combine[kind](op, element, own + at_home->places[i] * size);
        }
        accesses += rank == 0;
        if (rank == 0) look(into, fetched, "a fetch", kind, access);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        if (rank == 1) look(part, expected, "an access", kind, access);
        MPI_Win_unlock(rank, window);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      MPI_Type_free(&here.type);
      MPI_Type_free(&there.type);
      MPI_Type_free(&back.type);
    }
  }
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("accesses %d wrong %d\n", accesses, all);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
