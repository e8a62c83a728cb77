/* The halo exchange of a 3-D grid that is cut among the ranks. Every step fills the grid anew, exchanges the six faces, and
 * compares every cell, the halo included, with what it must be.
 *
 *   halo [side [steps [z y x]]]    side of each rank's cube, 128 unless given; ranks along each axis, 0: MPI chooses
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { axes = 3, faces = 2 * axes }; /* axes z, y, x: along x, cells lie side by side */

static int side, start[axes];

/* Neighbours agree on the value of a cell, because it follows from the cell's place in the whole grid. */
static double value(int step, int z, int y, int x) {
  return step + (x + start[2]) + 1e3 * (y + start[1]) + 1e6 * (z + start[0]);
}

static size_t cell(int z, int y, int x) { return ((size_t)z * (side + 2) + y) * (side + 2) + x; }

/* The plane `at` along `axis`, without the edges of the grid. */
static MPI_Datatype plane(int axis, int at) {
  int all[axes], part[axes], first[axes];
  for (int d = 0; d < axes; ++d) {
    all[d] = side + 2;
    part[d] = d == axis ? 1 : side;
    first[d] = d == axis ? at : 1;
  }
  MPI_Datatype made;
  MPI_Type_create_subarray(axes, all, part, first, MPI_ORDER_C, MPI_DOUBLE, &made);
  MPI_Type_commit(&made);
  return made;
}

/* How many cells are not what they must be. `peers`: below and above along each axis. */
static long wrong_cells(const double* grid, int step, const int peers[faces]) {
  long wrong = 0;
  for (int z = 0; z < side + 2; ++z) {
    for (int y = 0; y < side + 2; ++y) {
      for (int x = 0; x < side + 2; ++x) {
        const int at[axes] = {z, y, x};
        int outside = 0, filled = 1;
        for (int d = 0; d < axes; ++d) {
          if (at[d] != 0 && at[d] != side + 1) continue;
          ++outside;
          filled = peers[2 * d + (at[d] != 0)] != MPI_PROC_NULL;
        }
        wrong += grid[cell(z, y, x)] != (outside < 2 && filled ? value(step, z, y, x) : -1);
      }
    }
  }
  return wrong;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  int rank, size, dims[axes] = {0}, periods[axes] = {0}, place[axes], peers[faces];
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  side = argc > 1 ? atoi(argv[1]) : 128;
  const int steps = argc > 2 ? atoi(argv[2]) : 51;
  for (int d = 0; d < axes && d + 3 < argc; ++d) dims[d] = atoi(argv[d + 3]);
  MPI_Comm grid_comm;
  MPI_Dims_create(size, axes, dims);
  MPI_Cart_create(MPI_COMM_WORLD, axes, dims, periods, 0, &grid_comm);
  MPI_Comm_rank(grid_comm, &rank);
  MPI_Cart_coords(grid_comm, rank, axes, place);

  MPI_Datatype inner[faces], halo[faces];
  for (int d = 0; d < axes; ++d) {
    start[d] = place[d] * side;
    MPI_Cart_shift(grid_comm, d, 1, &peers[2 * d], &peers[2 * d + 1]);
    inner[2 * d] = plane(d, 1);
    inner[2 * d + 1] = plane(d, side);
    halo[2 * d] = plane(d, 0);
    halo[2 * d + 1] = plane(d, side + 1);
  }

  const size_t cells = cell(side + 1, side + 1, side + 1) + 1;
  double *grid = malloc(cells * sizeof *grid), *times = malloc((size_t)steps * sizeof *times);
  if (grid == NULL || times == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  long wrong = 0;
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < cells; ++i) grid[i] = -1;
    for (int z = 1; z <= side; ++z)
      for (int y = 1; y <= side; ++y)
        for (int x = 1; x <= side; ++x) grid[cell(z, y, x)] = value(step, z, y, x);

    MPI_Barrier(grid_comm);
    const double begin = MPI_Wtime();
    MPI_Request requests[2 * faces];
    for (int f = 0; f < faces; ++f) MPI_Irecv(grid, 1, halo[f], peers[f], f, grid_comm, &requests[f]);
    for (int f = 0; f < faces; ++f) MPI_Isend(grid, 1, inner[f], peers[f], f ^ 1, grid_comm, &requests[faces + f]);
    MPI_Waitall(2 * faces, requests, MPI_STATUSES_IGNORE);
    times[step] = MPI_Wtime() - begin;

    wrong += wrong_cells(grid, step, peers);
  }

  double sum = 0, all_sum, median, slowest;
  long all_wrong;
  for (size_t i = 0; i < cells; ++i) sum += grid[i];
  qsort(times, (size_t)steps, sizeof *times, ascending);
  median = times[steps / 2];
  MPI_Reduce(&sum, &all_sum, 1, MPI_DOUBLE, MPI_SUM, 0, grid_comm);
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, grid_comm);
  MPI_Reduce(&median, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, grid_comm);
  if (rank == 0) {
    printf("%d x %d x %d ranks, %d^3 doubles each: %ld wrong, sum %.0f\n", dims[0], dims[1], dims[2], side, all_wrong,
           all_sum);
    printf("%.1f us an exchange (median of %d)\n", slowest * 1e6, steps);
  }

  for (int f = 0; f < faces; ++f) {
    MPI_Type_free(&inner[f]);
    MPI_Type_free(&halo[f]);
  }
  free(grid);
  free(times);
  MPI_Comm_free(&grid_comm);
  MPI_Finalize();
  return wrong != 0;
}
