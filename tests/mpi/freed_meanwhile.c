/* Threads that free datatypes and communicators while what uses them is under way, so that the MPI lets go of them
 * inside one of its own calls, whichever thread makes it. Two ranks. Argument: rounds. Ends with "done", or "no
 * threads".
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, DOUBLES = 20000, STRIDE = 2 }; /* too long to be sent before it is waited for */

static int rank, peer, rounds;
static MPI_Comm own[THREADS];

static double value(int thread, int round, int i) { return 1000.0 * thread + round + i; }

static void exchange(MPI_Comm comm, int thread, int round, double* out, double* in) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Datatype column;
  for (int i = 0; i < DOUBLES; ++i) out[STRIDE * i] = value(thread, round, i);
  MPI_Type_vector(DOUBLES, 1, STRIDE, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Irecv(in, DOUBLES, MPI_DOUBLE, peer, thread, comm, &requests[0]);
  MPI_Isend(out, 1, column, peer, thread, comm, &requests[1]);
  MPI_Type_free(&column);
  MPI_Waitall(2, requests, statuses);
  for (int i = 0; i < DOUBLES; ++i) {
    if (in[i] != value(thread, round, i)) abort();
  }
}

static void add(MPI_Comm comm, int round) {
#ifdef OPEN_MPI /* 4.1.4 goes on with the collective call on a communicator that is gone */
  (void)comm, (void)round;
#else
  MPI_Comm made;
  MPI_Request request;
  int sum = 0;
  MPI_Comm_dup(comm, &made);
  MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM, made, &request);
  MPI_Comm_free(&made);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (sum != 2 * round) abort();
#endif
}

static void* thread_main(void* argument) {
  const int thread = *(int*)argument;
  double* const out = calloc((size_t)DOUBLES * STRIDE, sizeof *out);
  double* const in = calloc(DOUBLES, sizeof *in);
  if (out == NULL || in == NULL) abort();
  for (int round = 0; round < rounds; ++round) {
    exchange(own[thread], thread, round, out, in);
    if (round % 8 == thread) add(own[thread], round);
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int level = 0;
  pthread_t threads[THREADS];
  int numbers[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  rounds = atoi(argv[1]);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  for (int i = 0; i < THREADS && level == MPI_THREAD_MULTIPLE; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, thread_main, &numbers[i]) != 0) abort();
  }
  for (int i = 0; i < THREADS && level == MPI_THREAD_MULTIPLE; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&own[i]);
  if (rank == 0) puts(level == MPI_THREAD_MULTIPLE ? "done" : "no threads");
  MPI_Finalize();
  return 0;
}
