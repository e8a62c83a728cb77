/* Prints where each message of a neighbour arrives, on grids whose periodic dimensions have one or two ranks, so that a
 * neighbour is met twice: a line for each call and grid, as rank 0 got them. Each block has gaps; all of its numbers
 * name its sender and slot. Each call is made several times, and must give the same each time. Calls with w have large
 * counts where the MPI has them: MPICH 4.0.2 reads only as many ints as there are ranks. */
#include <mpi.h>
#include <stdio.h>

enum { slots = 6, length = 128, times = 8 };

#if MPI_VERSION >= 4
#define WITH_W(name, ...) \
  name##_c(out, large_counts, addresses, blocks, in, large_counts, addresses, blocks, __VA_ARGS__)
static MPI_Count large_counts[slots];
#else
#define WITH_W(name, ...) name(out, counts, addresses, blocks, in, counts, addresses, blocks, __VA_ARGS__)
static int large_counts[slots];
#endif
static int out[slots * length], in[slots * length], counts[slots], places[slots];
static MPI_Aint addresses[slots];
static MPI_Datatype block, blocks[slots];

/* Calls 0 to 2 block, 3 to 5 do not, 6 to 8 are persistent. */
static int call(int which, MPI_Comm grid) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (which) {
    case 0: MPI_Neighbor_alltoall(out, 1, block, in, 1, block, grid); break;
    case 1: MPI_Neighbor_alltoallv(out, counts, places, block, in, counts, places, block, grid); break;
    case 2: WITH_W(MPI_Neighbor_alltoallw, grid); break;
    case 3: MPI_Ineighbor_alltoall(out, 1, block, in, 1, block, grid, &request); break;
    case 4: MPI_Ineighbor_alltoallv(out, counts, places, block, in, counts, places, block, grid, &request); break;
    case 5: WITH_W(MPI_Ineighbor_alltoallw, grid, &request); break;
#if MPI_VERSION >= 4
    case 6: MPI_Neighbor_alltoall_init(out, 1, block, in, 1, block, grid, MPI_INFO_NULL, &request); break;
    case 7:
      MPI_Neighbor_alltoallv_init(out, counts, places, block, in, counts, places, block, grid, MPI_INFO_NULL, &request);
      break;
    case 8: WITH_W(MPI_Neighbor_alltoallw_init, grid, MPI_INFO_NULL, &request); break;
#endif
    default: return 0;
  }
  if (which >= 6) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (which >= 6) MPI_Request_free(&request);
  return 1;
}

/* The number that names a block; below zero: it is not a whole one. */
static int got(int slot) {
  int const* const numbers = in + slot * length;
  for (int i = 0; i < length; ++i)
    if (numbers[i] != (i % 2 ? -1 : numbers[0])) return -2;
  return numbers[0];
}

static void try_grid(int const* sides) {
  int const periods[] = {1, 1, 1};
  int size, me;
  MPI_Comm grid;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (sides[0] * sides[1] * sides[2] > size) return;
  MPI_Cart_create(MPI_COMM_WORLD, 3, sides, periods, 0, &grid);
  if (grid == MPI_COMM_NULL) return;
  MPI_Comm_rank(grid, &me);
  for (int i = 0; i < slots * length; ++i) out[i] = me * 10 + i / length;
  for (int which = 0; which < 9; ++which) {
    int first[slots], is_same = 1, is_there = 1;
    for (int time = 0; time < times && is_there; ++time) {
      for (int i = 0; i < slots * length; ++i) in[i] = -1;
      is_there = call(which, grid);
      for (int slot = 0; slot < slots; ++slot) {
        if (time == 0) first[slot] = got(slot);
        is_same = is_same && got(slot) == first[slot];
      }
    }
    if (me != 0 || !is_there) continue;
    printf("%d x %d x %d call %d%s:", sides[0], sides[1], sides[2], which, is_same ? "" : " differs");
    for (int slot = 0; slot < slots; ++slot) printf(" %02d", first[slot]);
    printf("\n");
  }
  MPI_Comm_free(&grid);
}

int main(int argc, char** argv) {
  static int const grids[][3] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {2, 1, 2}};
  MPI_Datatype every_second;
  MPI_Init(&argc, &argv);
  MPI_Type_vector(length / 2, 1, 2, MPI_INT, &every_second);
  MPI_Type_create_resized(every_second, 0, length * (MPI_Aint)sizeof(int), &block);
  MPI_Type_commit(&block);
  for (int i = 0; i < slots; ++i) {
    counts[i] = 1, large_counts[i] = 1, places[i] = i, blocks[i] = block;
    addresses[i] = i * length * (MPI_Aint)sizeof(int);
  }
  for (unsigned i = 0; i < sizeof grids / sizeof grids[0]; ++i) try_grid(grids[i]);
  MPI_Type_free(&every_second);
  MPI_Type_free(&block);
  MPI_Finalize();
  return 0;
}
