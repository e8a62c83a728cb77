/* Measures what a call costs: the CPU time in ns per MPI call of a rank's messages to itself. One rank; N rounds of
 * MPI_Irecv, MPI_Isend and MPI_Waitall, the best of five trials. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 200000;
  double out = 1, in = 0, best = 0;
  MPI_Init(&argc, &argv);
  for (int trial = 0; trial < 5; ++trial) {
    const double begun = cpu_ns();
    for (int i = 0; i < rounds; ++i) {
      MPI_Request requests[2];
      MPI_Irecv(&in, 1, MPI_DOUBLE, 0, 3, MPI_COMM_SELF, &requests[0]);
      MPI_Isend(&out, 1, MPI_DOUBLE, 0, 3, MPI_COMM_SELF, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    const double each = (cpu_ns() - begun) / rounds / 3;
    if (trial == 0 || each < best) best = each;
  }
  MPI_Finalize();
  printf("%.1f\n", best);
  return 0;
}
