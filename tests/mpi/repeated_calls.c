/* Collective calls that are made again and again, until one thing about them changes: SEED STEPS.
 *
 * A step changes one thing at one rank or at all: the call, how many numbers a block has, the gaps, a place, the
 * buffers, the memory beneath them, or only the handles of the types, of which the freed ones are given out again. Then
 * the call is made some times with new numbers, and every number of the receive buffer is compared. Rank 0 says how
 * often a new type had the handle of a freed one. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "layer/draw.h"

enum { alltoallw, alltoallv, alltoall, allgather, gather, bcast, in_place, calls };
enum { call, blocks, gaps, place, buffer, memory, handles, things };
enum { repeats = 4, stride_max = 3, place_max = 8, ranks_max = 16, buffers = 2, blocks_max = 20000 };

typedef struct {
  int call, blocks, place[2], buffer[2], stride[2]; /* pairs: the sent one, the received one */
} State;

static int rank, size, reused;
static State now;
static MPI_Datatype type[2];
static int* room[buffers];
static int const lengths[] = {3, 40, 1500, 2048, blocks_max};

enum { span = stride_max * blocks_max + place_max };

static void fail(char const* what, int step) {
  fprintf(stderr, "rank %d, step %d: %s\n", rank, step, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static size_t bytes_of_buffer(void) { return sizeof(int) * (size_t)span * (size_t)size; }

/* The type of a block. Its extent is the span of a block in the buffer, so that blocks follow each other by it. */
static void make_type(int side) {
  MPI_Datatype vector;
  MPI_Type_vector(now.blocks, 1, now.stride[side], MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, (MPI_Aint)sizeof(int) * span, &type[side]);
  MPI_Type_commit(&type[side]);
  MPI_Type_free(&vector);
}

/* MPIs hand out handles in turn; one type more between them changes whose turn it is. */
static void make_types_again(Draw* own) {
  MPI_Datatype const last[2] = {type[0], type[1]};
  MPI_Datatype more = MPI_DATATYPE_NULL;
  for (int side = 0; side < 2; ++side) MPI_Type_free(&type[side]);
  if (one_in(own, 2)) MPI_Type_contiguous(2, MPI_INT, &more);
  for (int side = 0; side < 2; ++side) make_type(side);
  if (more != MPI_DATATYPE_NULL) MPI_Type_free(&more);
  for (int side = 0; side < 2; ++side) reused += type[side] == last[0] || type[side] == last[1];
}

static int number_of(int step, int repeat, int from, int to, int k) {
  return (((step * repeats + repeat) * 131 + from) * 17 + to) * 7 + k;
}

static int is_for_all(int what) { return what == allgather || what == gather || what == bcast; }

/* To whom a sender's numbers are, as they say. */
static int named(int to) { return is_for_all(now.call) ? 0 : to; }

static int receives(int from) {
  if (now.call == bcast) return rank != 0 && from == 0;
  return now.call != gather || rank == 0;
}

static void fill(int step, int repeat, int* out, int* in) {
  int const side = now.call == in_place;
  for (int i = 0; i < span * size; ++i) in[i] = -1;
  if (side) out = in;
  for (int to = 0; to < size; ++to)
    for (int k = 0; k < now.blocks; ++k)
      out[to * span + now.place[side] + k * now.stride[side]] = number_of(step, repeat, rank, named(to), k);
}

static void check(int step, int const* in, int repeat) {
  for (int from = 0; from < size; ++from) {
    int const* const block = in + (now.call == bcast ? 0 : from * span);
    for (int i = 0; i < span; ++i) {
      int const shifted = i - now.place[1], k = shifted / now.stride[1];
      int const is_ours = receives(from) && shifted >= 0 && shifted % now.stride[1] == 0 && k < now.blocks;
      if (now.call == bcast && from != 0) continue;
      if (block[i] != (is_ours ? number_of(step, repeat, from, named(rank), k) : -1)) fail("wrong number", step);
    }
  }
}

static void run(int* out, int* in) {
  int ones[ranks_max], numbers[ranks_max], places[2][ranks_max];
  MPI_Datatype types[2][ranks_max];
  int *const from = out + now.place[0], *const to = in + now.place[1];
  for (int i = 0; i < size; ++i) {
    ones[i] = 1, numbers[i] = i;
    for (int side = 0; side < 2; ++side) places[side][i] = (int)sizeof(int) * i * span, types[side][i] = type[side];
  }
  switch (now.call) {
    case alltoallw:
      MPI_Alltoallw(from, ones, places[0], types[0], to, ones, places[1], types[1], MPI_COMM_WORLD);
      break;
    case alltoallv: MPI_Alltoallv(from, ones, numbers, type[0], to, ones, numbers, type[1], MPI_COMM_WORLD); break;
    case alltoall: MPI_Alltoall(from, 1, type[0], to, 1, type[1], MPI_COMM_WORLD); break;
    case allgather: MPI_Allgather(from, 1, type[0], to, 1, type[1], MPI_COMM_WORLD); break;
    case gather: MPI_Gather(from, 1, type[0], to, 1, type[1], 0, MPI_COMM_WORLD); break;
    case in_place:
      MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, to, ones, numbers, type[1], MPI_COMM_WORLD);
      break;
    default: MPI_Bcast(rank == 0 ? from : to, 1, type[rank == 0 ? 0 : 1], 0, MPI_COMM_WORLD);
  }
}

/* Other memory at the same addresses: at times a new mapping, at times the heap's again. */
static void replace_memory(int which) {
  if (mmap(room[which], bytes_of_buffer(), PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
      MAP_FAILED)
    MPI_Abort(MPI_COMM_WORLD, 4);
}

static void* page_aligned(void) {
  void* made = NULL;
  size_t const large = (size_t)1 << 16;
  if (posix_memalign(&made, large, (bytes_of_buffer() + large - 1) / large * large) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
  return made;
}

/* Changes one thing; values that must be equal on all ranks come from `plan`, the others from `own`. */
static void change(Draw* plan, Draw* own) {
  int const what = (int)below(plan, things), side = (int)below(own, 2);
  switch (what) {
    case call: now.call = (int)below(plan, calls); break;
    case blocks:
      now.blocks = lengths[below(plan, sizeof lengths / sizeof *lengths)];
      make_types_again(own);
      break;
    case gaps:
      now.stride[side] = 1 + (int)below(own, stride_max);
      make_types_again(own);
      break;
    case place: now.place[side] = (int)below(own, place_max); break;
    case buffer: now.buffer[0] = (int)below(own, buffers), now.buffer[1] = 1 - now.buffer[0]; break;
    case memory:
      if (one_in(own, 2)) {
        replace_memory(side);
      } else {
        free(room[side]);
        room[side] = page_aligned();
      }
      break;
    default: make_types_again(own);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3 || size > ranks_max) MPI_Abort(MPI_COMM_WORLD, 2);
  uint64_t const seed = strtoull(argv[1], NULL, 10);
  int const steps = atoi(argv[2]);
  for (int i = 0; i < buffers; ++i) room[i] = page_aligned();
  now = (State){.call = alltoallw, .blocks = 2048, .buffer = {0, 1}, .stride = {2, 3}};
  for (int side = 0; side < 2; ++side) make_type(side);
  for (int step = 0; step < steps; ++step) {
    Draw plan = draw_from(seed, (uint64_t)step, 0), own = draw_from(seed, (uint64_t)step, 1 + (uint64_t)rank);
    change(&plan, &own);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      int *const out = room[now.buffer[0]], *const in = room[now.buffer[1]];
      fill(step, repeat, out, in);
      run(out, in);
      check(step, in, repeat);
    }
  }
  int all = 0;
  MPI_Reduce(&reused, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("every number is right; %d new types had the handle of a freed one\n", all);
  for (int side = 0; side < 2; ++side) MPI_Type_free(&type[side]);
  MPI_Finalize();
}
