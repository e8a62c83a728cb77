/* mpi_windows TARGET BYTES EPOCHS BLOCK...: what one put between start and complete takes, of BYTES of doubles in
 * blocks of BLOCK bytes that lie twice their length apart at both ends. TARGET: malloc, static or window
 * (MPI_Win_allocate). Two ranks; microseconds from a barrier to the end of MPI_Win_complete or MPI_Win_wait at rank 0
 * and 1, the median of EPOCHS, host time. The target's bytes are compared after each epoch. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { room = 16 << 20, warm_up = 3, rounds_max = 1000 };
static char still[room];

static int ascending(void const* a, void const* b) {
  double const x = *(double const*)a, y = *(double const*)b;
  return (x > y) - (x < y);
}

static void compare(char const* here, long bytes, int block, int round) {
  for (long at = 0; at < 2 * bytes; ++at) {
    char const wanted = (char)(at % (2L * block) < block ? round : -1);
    if (here[at] != wanted)
      fprintf(stderr, "byte %ld is %d, not %d\n", at, here[at], wanted), MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  long const bytes = argc > 4 ? atol(argv[2]) : 0;
  int const epochs = argc > 4 ? atoi(argv[3]) : 0;
  if (size != 2 || bytes < 8 || 2 * bytes > room || epochs < 1 || epochs > rounds_max) {
    fprintf(stderr, "usage: mpiexec -n 2 mpi_windows malloc|static|window BYTES EPOCHS BLOCK...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char *memory = strcmp(argv[1], "malloc") == 0 ? malloc(room) : still, *own = malloc(room);
  MPI_Win window;
  if (strcmp(argv[1], "window") == 0) {
    MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  } else {
    MPI_Win_create(memory, room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  MPI_Group all, other;
  int const there = 1 - rank;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &there, &other);
  for (int i = 4; i < argc; ++i) {
    int const block = atoi(argv[i]), doubles = block / 8;
    double took[rounds_max];
    MPI_Datatype type;
    MPI_Type_vector((int)(bytes / block), doubles, 2 * doubles, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    memset(memory, -1, room);
    for (int round = 0; round < epochs + warm_up; ++round) {
      memset(own, round % 100, 2 * bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      double const begun = MPI_Wtime();
      if (rank == 0) {
        MPI_Win_start(other, 0, window);
        MPI_Put(own, 1, type, 1, 0, 1, type, window);
        MPI_Win_complete(window);
      } else {
        MPI_Win_post(other, 0, window);
        MPI_Win_wait(window);
      }
      if (round >= warm_up) took[round - warm_up] = MPI_Wtime() - begun;
      if (rank == 1) compare(memory, bytes - bytes % block, block, round % 100);
    }
    qsort(took, (size_t)epochs, sizeof *took, ascending);
    if (rank == 0) printf("%s, blocks of %d B: %.1f us\n", argv[1], block, took[epochs / 2] * 1e6);
    MPI_Type_free(&type);
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
