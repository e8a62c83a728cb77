/* window_waits exclusive|shared|sleep: ranks that wait for the lock of rank 0's memory.
 * exclusive, shared: rank 1 holds it so when it is killed; rank 0 gets it. The job must go on without rank 1, so rank 0
 *   ends without MPI_Finalize. Prints "free".
 * sleep: rank 1 waits while rank 0 holds it for a while. Prints how often rank 1 slept. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int rank;
static long* memory;
static MPI_Win window;

static void die_with(int kind, int wanted) {
  long seen = 0;
  if (rank == 1) {
    MPI_Win_lock(kind, 0, 0, window);
    const long value = 7;
    if (kind == MPI_LOCK_EXCLUSIVE) MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    MPI_Send(&seen, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    MPI_Recv(&seen, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  MPI_Recv(&seen, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&seen, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
  MPI_Win_lock(wanted, 0, 0, window);
  if (kind == MPI_LOCK_EXCLUSIVE && memory[0] != 7) printf("wrong bytes\n");
  MPI_Win_unlock(0, window);
  printf("free\n");
  fflush(stdout);
  _exit(0);
}

static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

/* Voluntary switches: who yields its core, but does not sleep, makes none. */
static void sleep_while_waiting(void) {
  memset(memory, 0, 64);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    const struct timespec moment = {0, 200000000};
    nanosleep(&moment, NULL);
    MPI_Win_unlock(0, window);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    const long before = switches();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    printf("slept %ld\n", switches() - before);
    MPI_Win_unlock(0, window);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memory = malloc(1 << 20);
  MPI_Win_create(memory, 1 << 20, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "exclusive") == 0) die_with(MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
  if (strcmp(mode, "shared") == 0) die_with(MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE);
  sleep_while_waiting();
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
