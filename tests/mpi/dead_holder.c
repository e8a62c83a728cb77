// A rank dies while it holds the lock of rank 0's part of a window, of the kind in argv[1] (exclusive, shared, all),
// and another one asks for the exclusive lock. Rank 0 computes. Ranks tell each other by files, argv[2] and a suffix:
// MPIs may refuse messages once a rank has died. The survivors end without MPI, which would wait for the dead. The file
// ".has" says what rank 2 has put under the lock and read again: 7.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char* place_of(const char* start, const char* suffix) {
  static char path[4096];
  snprintf(path, sizeof path, "%s%s", start, suffix);
  return path;
}

int main(int argc, char** argv) {
  int rank;
  long* part;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  *part = 0;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  if (rank == 0) {
    while (access(place_of(argv[2], ".has"), F_OK) != 0) usleep(1000);
    _exit(0);
  }
  if (rank == 1) {
    if (strcmp(argv[1], "all") == 0) {
      MPI_Win_lock_all(0, window);
    } else {
      MPI_Win_lock(strcmp(argv[1], "shared") == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, window);
    }
    const long held = 1;
    MPI_Put(&held, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    fclose(fopen(place_of(argv[2], ".held"), "w"));
    raise(SIGKILL);
  }
  const long word = 7;
  long seen = 0;
  while (access(place_of(argv[2], ".held"), F_OK) != 0) usleep(1000);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Put(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
  MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
  MPI_Win_unlock(0, window);
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s", place_of(argv[2], ".new"));
  FILE* const file = fopen(temporary, "w");
  fprintf(file, "%ld", seen);
  fclose(file);
  rename(temporary, place_of(argv[2], ".has"));
  _exit(0);
}
