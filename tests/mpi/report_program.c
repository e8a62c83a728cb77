// A job whose report is known: each rank sends a plane, a short row and a run of doubles to the next rank, and rank 0
// one plane to itself. "die": rank 1 is killed behind the last of them.
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 64, ROUNDS = 40 };

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int dies = argc > 1 && strcmp(argv[1], "die") == 0;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  double* const cube = calloc(2 * N * N * N, sizeof *cube);
  MPI_Datatype row, plane;
  MPI_Type_vector(16, 1, 4, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  MPI_Request persistent;
  MPI_Send_init(cube, 100, MPI_DOUBLE, next, 4, MPI_COMM_WORLD, &persistent);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request sent;
    // A new type each time, as some programs do.
    MPI_Type_vector(N, N, N * N, MPI_DOUBLE, &plane);
    MPI_Type_commit(&plane);
    MPI_Sendrecv(cube, 1, plane, next, 1, cube + N * N * N, 1, plane, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(cube, 2, row, next, 2, MPI_COMM_WORLD, &sent);
    MPI_Recv(cube + N * N * N, 2, row, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Start(&persistent);
    MPI_Recv(cube + N * N * N, 100, MPI_DOUBLE, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    if (rank == 0 && i == 0) {
      MPI_Sendrecv(cube, 1, plane, 0, 5, cube + N * N * N, 1, plane, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(cube, 1, plane, MPI_PROC_NULL, 6, MPI_COMM_WORLD);  // no message
    MPI_Type_free(&plane);
  }
  MPI_Request_free(&persistent);
  MPI_Type_free(&row);
  if (dies) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  free(cube);
  MPI_Finalize();
  return 0;
}
