/* Threads, each of which makes and frees communicators of its own and has non-blocking collective calls under way on
 * them, while the others do the same; all ranks have the same threads.
 *
 *     mpiexec -n 3 ./offloaded_threads THREADS ROUNDS
 *
 * Every result is known: sums of ranks, and words of the thread, the round and the rank. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_threads = 8, most_ints = 12000, calls = 3 };

typedef struct {
  MPI_Comm parent;
  int number, rounds;
} Thread;

static int rank, ranks;

static int word(int thread, int round, int from, int i) { return thread * 1000003 + round * 10007 + from * 101 + i; }

static void check(int is_right, const char* what, const Thread* thread, int round) {
  if (is_right) return;
  fprintf(stderr, "rank %d thread %d round %d: wrong %s\n", rank, thread->number, round, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void one_round(const Thread* thread, MPI_Comm comm, int round) {
  static const int counts[] = {1, 7, 500, most_ints};
  const int count = counts[(round + thread->number) % 4];
  const int root = round % ranks;
  const int me = thread->number;
  int* const own = malloc(sizeof(int) * most_ints);
  int* const sum = malloc(sizeof(int) * most_ints);
  int* const cast = malloc(sizeof(int) * most_ints);
  int* const all = malloc(sizeof(int) * most_ints * (size_t)ranks);
  for (int i = 0; i < count; ++i) {
    own[i] = word(me, round, rank, i);
    cast[i] = rank == root ? word(me, round, root, 2 * i) : -1;
  }
  MPI_Request requests[calls];
  MPI_Iallreduce(own, sum, count, MPI_INT, MPI_SUM, comm, &requests[0]);
  MPI_Ibcast(cast, count, MPI_INT, root, comm, &requests[1]);
  MPI_Iallgather(own, count, MPI_INT, all, count, MPI_INT, comm, &requests[2]);
  if (round % 3 == 0) {
    int left = calls;
    while (left > 0) {
      int index = 0;
      MPI_Waitany(calls, requests, &index, MPI_STATUS_IGNORE);
      --left;
    }
  } else if (round % 3 == 1) {
    int flag = 0;
    while (!flag) MPI_Testall(calls, requests, &flag, MPI_STATUSES_IGNORE);
  } else {
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < count; ++i) {
    int want = 0;
    for (int from = 0; from < ranks; ++from) {
      want += word(me, round, from, i);
      check(all[from * count + i] == word(me, round, from, i), "all-gather", thread, round);
    }
    check(sum[i] == want, "sum", thread, round);
    check(cast[i] == word(me, round, root, 2 * i), "broadcast", thread, round);
  }
  free(own);
  free(sum);
  free(cast);
  free(all);
}

static void* run(void* at) {
  const Thread* const thread = at;
  for (int round = 0; round < thread->rounds;) {
    MPI_Comm comm;
    MPI_Comm_dup(thread->parent, &comm);
    for (int i = 0; i < 5 && round < thread->rounds; ++i) one_round(thread, comm, round++);
    MPI_Comm_free(&comm);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE || argc < 3) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int threads = atoi(argv[1]);
  Thread told[most_threads];
  pthread_t run_by[most_threads];
  for (int i = 0; i < threads; ++i) {
    told[i] = (Thread){.number = i, .rounds = atoi(argv[2])};
    MPI_Comm_dup(MPI_COMM_WORLD, &told[i].parent);
  }
  for (int i = 0; i < threads; ++i) pthread_create(&run_by[i], NULL, run, &told[i]);
  for (int i = 0; i < threads; ++i) pthread_join(run_by[i], NULL);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&told[i].parent);
  if (rank == 0) printf("threads %d right\n", threads);
  MPI_Finalize();
  return 0;
}
