/* mpi_creations KIND COUNT: what it takes to make and free one of COUNT communicators (dup, split) or windows (create,
 * allocate), one after the other, in microseconds of host time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double memory[1 << 17];

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char const* const kind = argc > 2 ? argv[1] : "";
  int const count = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Barrier(MPI_COMM_WORLD);
  double const begun = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Win window = MPI_WIN_NULL;
    double* base;
    if (strcmp(kind, "dup") == 0) {
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else if (strcmp(kind, "split") == 0) {
      MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    } else if (strcmp(kind, "create") == 0) {
      MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    } else if (strcmp(kind, "allocate") == 0) {
      MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    } else {
      fprintf(stderr, "usage: mpi_creations dup|split|create|allocate COUNT\n");
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %.2f us\n", kind, (MPI_Wtime() - begun) / count * 1e6);
  MPI_Finalize();
  return 0;
}
