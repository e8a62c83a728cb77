/* Calls whose record is known: test_record.py says what each rank's trace must hold. At least two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 6, COLUMNS = 8, ROUNDS = 5 };

static int rank, size;
static double matrix[ROWS][COLUMNS];
static double line[64];

static void messages(void) {
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  MPI_Datatype column;
  MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
  MPI_Type_set_name(column, "column");
  MPI_Type_commit(&column);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(line, ROWS, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&matrix[0][2], 1, column, right, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Type_free(&column);
  MPI_Sendrecv(line, 3, MPI_INT, right, 1, line + 32, 3, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 takes what comes; the others send rank + 1 ints to it. */
static void wildcards(void) {
  if (rank != 0) {
    MPI_Send(line, rank + 1, MPI_INT, 0, 40 + rank, MPI_COMM_WORLD);
    MPI_Ssend(line, 1, MPI_INT, 0, 90, MPI_COMM_WORLD);
    return;
  }
  for (int i = 1; i < size; ++i) {
    MPI_Recv(line, 64, MPI_INT, i, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 1; i < size; ++i) {
    MPI_Request request;
    MPI_Irecv(line, 64, MPI_INT, MPI_ANY_SOURCE, 90, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) abort();
  }
}

static void persistent(void) {
  MPI_Request requests[2];
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  MPI_Send_init(line, 4, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(line + 8, 4, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void polls(void) {
  if (rank == 1) {
    MPI_Request request;
    int flag = 0;
    MPI_Irecv(line, 1, MPI_DOUBLE, 0, 11, MPI_COMM_WORLD, &request);
    MPI_Send(line, 0, MPI_DOUBLE, 0, 12, MPI_COMM_WORLD); /* the receive is there before this */
    for (int i = 0; i < 10; ++i) MPI_Iprobe(0, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Send(line, 0, MPI_DOUBLE, 0, 12, MPI_COMM_WORLD);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  if (rank == 0) {
    MPI_Recv(line, 0, MPI_DOUBLE, 1, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(line, 0, MPI_DOUBLE, 1, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(line, 1, MPI_DOUBLE, 1, 11, MPI_COMM_WORLD);
  }
}

static void matched_probe(void) {
  if (rank == 0) {
    MPI_Message message;
    MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(line, 64, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
  if (rank == 1) MPI_Send(line, 5, MPI_INT, 0, 21, MPI_COMM_WORLD);
}

static void collectives(void) {
  int counts[64], places[64], sum = 0, mine = rank;
  double all[256];
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(line, 16, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(line, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    places[i] = 4 * i;
  }
  MPI_Gatherv(line, rank + 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Alltoall(line, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Iallgather(line, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void communicators(void) {
  MPI_Comm half, grid;
  const int dims[1] = {size}, periods[1] = {0};
  double from[8], to[8];
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Neighbor_alltoall(to, 2, MPI_DOUBLE, from, 2, MPI_DOUBLE, grid);
  MPI_Comm_free(&grid);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  messages();
  wildcards();
  persistent();
  polls();
  matched_probe();
  collectives();
  communicators();
  MPI_Finalize();
  printf("rank %d of %d\n", rank, size);
  return 0;
}
