/* Measures what non-blocking collective calls cost the calling thread: its processor time inside the start and the
 * wait, while it computes between them.
 *
 *     mpicc -O2 bench/mpi_overlap.c -o overlap
 *     mpiexec -n 2 ./overlap allreduce 50 200 1000
 *     spinloom run --collectives -- mpiexec -n 2 ./overlap allreduce 50 200 1000
 *
 * CALL (allreduce, bcast, barrier, allgather, scatter) BYTES COMPUTE_US CALLS. Prints three medians over the calls, in
 * us, each the largest of all ranks: processor time of the start, processor time of the wait, and the wall-clock time
 * of a call less the processor time of its computation. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Work of the thread's own, not of the clock: a rank that is interrupted has as much left. */
static volatile uint64_t sink;
static void compute(uint64_t steps) {
  uint64_t word = sink + 1;
  for (uint64_t i = 0; i < steps; ++i) word = word * 0x9e3779b97f4a7c15 + i;
  sink = word;
}

static int by_value(const void* one, const void* other) {
  const double a = *(const double*)one;
  const double b = *(const double*)other;
  return (a > b) - (a < b);
}
static double median(double* numbers, int count) {
  qsort(numbers, (size_t)count, sizeof *numbers, &by_value);
  return numbers[count / 2];
}

int main(int argc, char** argv) {
  if (argc < 5) return fprintf(stderr, "usage: %s CALL BYTES COMPUTE_US CALLS\n", argv[0]), 2;
  const char* const call = argv[1];
  const int count = (atoi(argv[2]) + 7) / 8;
  const double compute_us = atof(argv[3]);
  const int calls = atoi(argv[4]);
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* const out = calloc((size_t)count * (size_t)ranks, sizeof *out);
  double* const in = calloc((size_t)count * (size_t)ranks, sizeof *in);
  double* const starts = malloc(sizeof *starts * (size_t)calls);
  double* const waits = malloc(sizeof *waits * (size_t)calls);
  double* const lefts = malloc(sizeof *lefts * (size_t)calls);
  const uint64_t probe = 1000000;
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    const double begun = now_us(CLOCK_THREAD_CPUTIME_ID);
    compute(probe);
    const double took = now_us(CLOCK_THREAD_CPUTIME_ID) - begun;
    if (took < least) least = took;
  }
  const uint64_t steps = (uint64_t)(compute_us * (double)probe / least);
  for (int i = -calls / 10; i < calls; ++i) {
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    const double at = now_us(CLOCK_MONOTONIC);
    const double first = now_us(CLOCK_THREAD_CPUTIME_ID);
    if (strcmp(call, "allreduce") == 0) {
      MPI_Iallreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    } else if (strcmp(call, "bcast") == 0) {
      MPI_Ibcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    } else if (strcmp(call, "allgather") == 0) {
      MPI_Iallgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD, &request);
    } else if (strcmp(call, "scatter") == 0) {
      MPI_Iscatter(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    } else {
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    const double started = now_us(CLOCK_THREAD_CPUTIME_ID);
    compute(steps);
    const double computed = now_us(CLOCK_THREAD_CPUTIME_ID);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double waited = now_us(CLOCK_THREAD_CPUTIME_ID);
    if (i < 0) continue;
    starts[i] = started - first;
    waits[i] = waited - computed;
    lefts[i] = now_us(CLOCK_MONOTONIC) - at - (computed - started);
  }
  double mine[3] = {median(starts, calls), median(waits, calls), median(lefts, calls)};
  double slowest[3];
  MPI_Reduce(mine, slowest, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s %d B, %g us of computation: start %.2f us, wait %.2f us of processor time; %.2f us left\n", call,
           8 * count, compute_us, slowest[0], slowest[1], slowest[2]);
  }
  MPI_Finalize();
  return 0;
}
