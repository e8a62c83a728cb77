/* Accesses to windows whose record is known: test_record_more.py says what the traces must hold. Two ranks. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank;
  double memory[32] = {0}, mine[8] = {0};
  double* own;
  MPI_Win window, allocated;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_create(memory, sizeof memory, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &allocated);
  MPI_Win_fence(0, window);
  MPI_Put(mine, 3, MPI_DOUBLE, 1 - rank, 4, 3, MPI_DOUBLE, window);
  MPI_Accumulate(mine, 2, MPI_DOUBLE, 1 - rank, 8, 2, MPI_DOUBLE, MPI_SUM, window);
  MPI_Win_fence(0, window);
  if (rank == 0) {
    MPI_Request request;
    long one = 1, before;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, allocated);
    MPI_Get(mine, 2, MPI_DOUBLE, 1, 1, 2, MPI_DOUBLE, allocated);
    MPI_Win_flush(1, allocated);
    MPI_Rget(mine, 1, MPI_DOUBLE, 1, 3, 1, MPI_DOUBLE, allocated, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, allocated);
    MPI_Win_unlock(1, allocated);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&allocated);
  MPI_Win_free(&window);
  MPI_Finalize();
  printf("rank %d\n", rank);
  return 0;
}
