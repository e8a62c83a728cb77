/* Two ranks that do rounds until they are killed; rank 1 says who it is after a hundred of them. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0;; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && i == 100) {
      printf("%d\n", (int)getpid());
      fflush(stdout);
    }
  }
}
