// Every rank sends a column of doubles to the next one and checks what it gets, gaps included.
#include <spinloom/mpix.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 8192, stride = 4, rounds = 3 };

int main(int argc, char** argv) {
  int rank, size, wrong = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  MPI_Datatype own, peers; // another type in every rank, and one that all have
  MPI_Type_vector(rows / (rank + 1), rank + 1, stride, MPI_DOUBLE, &own);
  MPI_Type_vector(rows, 1, stride, MPI_DOUBLE, &peers);
  if (MPIX_Type_commit_comm(&own, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  if (MPIX_Type_commit_comm(&peers, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;

  double *from = malloc(sizeof(double) * rows * stride), *to = malloc(sizeof(double) * rows * stride);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < rows * stride; ++i) {
      from[i] = 1e6 * rank + i + round;
      to[i] = -1;
    }
    MPI_Sendrecv(from, 1, peers, next, 0, to, 1, peers, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < rows * stride; ++i) wrong += to[i] != (i % stride == 0 ? 1e6 * before + i + round : -1);
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %s\n", size, all == 0 ? "good" : "WRONG");
  MPIX_Type_free_comm(&own, MPI_COMM_WORLD);
  MPIX_Type_free_comm(&peers, MPI_COMM_WORLD);
  if (own != MPI_DATATYPE_NULL || peers != MPI_DATATYPE_NULL) return 1;
  free(from);
  free(to);
  return MPI_Finalize();
}
