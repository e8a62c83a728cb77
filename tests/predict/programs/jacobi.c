/* A 2-D stencil whose rows and columns are spread over a grid of ranks: each step exchanges four edges and averages.
 *
 *   jacobi [side [steps]]    cells along each edge of a rank's square */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int ranks, dims[2] = {0, 0}, periods[2] = {0, 0}, up, down, left, right;
  MPI_Init(&argc, &argv);
  const int side = argc > 1 ? atoi(argv[1]) : 512;
  const int steps = argc > 2 ? atoi(argv[2]) : 200;
  const int row = side + 2;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  dims[0] = 1; /* cut along the second axis first, so that two ranks exchange columns */
  if (ranks % 4 == 0) dims[0] = 0;
  MPI_Dims_create(ranks, 2, dims);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  MPI_Datatype column;
  MPI_Type_vector(side, 1, row, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  double* now = calloc((size_t)row * row, sizeof *now);
  double* next = calloc((size_t)row * row, sizeof *next);
  for (int i = 0; i < row * row; ++i) now[i] = i % 7;
  double change = 0;
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[8];
    MPI_Irecv(now + 1, side, MPI_DOUBLE, up, 0, grid, &requests[0]);
    MPI_Irecv(now + (size_t)(side + 1) * row + 1, side, MPI_DOUBLE, down, 1, grid, &requests[1]);
    MPI_Irecv(now + row, 1, column, left, 2, grid, &requests[2]);
    MPI_Irecv(now + row + side + 1, 1, column, right, 3, grid, &requests[3]);
    MPI_Isend(now + (size_t)side * row + 1, side, MPI_DOUBLE, down, 0, grid, &requests[4]);
    MPI_Isend(now + row + 1, side, MPI_DOUBLE, up, 1, grid, &requests[5]);
    MPI_Isend(now + row + side, 1, column, right, 2, grid, &requests[6]);
    MPI_Isend(now + row + 1, 1, column, left, 3, grid, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    double sum = 0;
    for (int y = 1; y <= side; ++y) {
      for (int x = 1; x <= side; ++x) {
        const size_t at = (size_t)y * row + x;
        next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - row] + now[at + row]);
        sum += (next[at] - now[at]) * (next[at] - now[at]);
      }
    }
    double* const swapped = now;
    now = next;
    next = swapped;
    if (step % 10 == 9) MPI_Allreduce(&sum, &change, 1, MPI_DOUBLE, MPI_SUM, grid);
  }
  int rank;
  MPI_Comm_rank(grid, &rank);
  if (rank == 0) printf("change %g\n", change);
  MPI_Type_free(&column);
  MPI_Finalize();
  return 0;
}
