/* A program on a grid of 2 x 2 whose calls text_wrapper.c and the recorder write down at the same time. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 10, DOUBLES = 500 };

static double out[4 * DOUBLES], in[4 * DOUBLES];

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Comm row, column, copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 4) abort();
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Barrier(row);  /* a call that tells it from the column: rank 1 is the second of two in both */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &column);
  MPI_Comm_dup(column, &copy);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request requests[4];
    const int side = 1 - rank % 2;
    const int other = 3 - rank;
    usleep(500);
    MPI_Irecv(in, DOUBLES, MPI_DOUBLE, side, 1, row, &requests[0]);
    MPI_Irecv(in + DOUBLES, DOUBLES, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, DOUBLES - i, MPI_DOUBLE, side, 1, row, &requests[2]);
    MPI_Isend(out, DOUBLES, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(out, in, 4, MPI_DOUBLE, MPI_SUM, column);
    const int counts[4] = {rank, rank, rank, rank};
    const int from[4] = {0, 1, 2, 3};
    const int places[4] = {0, 100, 200, 300};
    MPI_Alltoallv(out, counts, places, MPI_DOUBLE, in, from, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Bcast(out, i, MPI_INT, 1, copy);
    if (rank == 0) MPI_Send(out, 3, MPI_INT, 1, 9, row);
    if (rank == 1) MPI_Recv(in, 3, MPI_INT, 0, 9, row, MPI_STATUS_IGNORE);
    MPI_Barrier(row);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&column);
  MPI_Comm_free(&row);
  MPI_Finalize();
  return 0;
}
