/* Threads that call MPI at once, each on communicators of its own, with types that are made and freed meanwhile; and
 * how often they called what: "RANK CALL TIMES" by rank. Two ranks. Arguments: rounds; "wait" to stay in it until the
 * process is killed.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, DOUBLES = 64, STRIDE = 3 };

#define CALLS(X)                                                                                                       \
  X(Isend)                                                                                                             \
  X(Irecv)                                                                                                             \
  X(Waitall) X(Send) X(Ssend) X(Probe) X(Recv) X(Mprobe) X(Mrecv) X(Iprobe) X(Test) X(Improbe) X(Comm_make) X(Barrier) \
      X(Comm_free) X(Sendrecv) X(Allreduce)
enum {
#define NUMBER(name) name,
  CALLS(NUMBER) COUNT
};
static const char* const names[] = {
#define NAME(name) #name,
    CALLS(NAME)};

static atomic_long counts[COUNT];
static atomic_int started;
static int rank, peer, rounds, stays;
static MPI_Comm own[THREADS];

/* A call that counts itself. */
#define DO(name, call)                  \
  do {                                  \
    atomic_fetch_add(&counts[name], 1); \
    if ((call) != MPI_SUCCESS) abort(); \
  } while (0)

static void exchange(MPI_Comm comm, int thread, int round) {
  double out[DOUBLES * STRIDE];
  double in[DOUBLES];
  MPI_Request requests[2];
  MPI_Datatype column;
  for (int i = 0; i < DOUBLES * STRIDE; ++i) out[i] = 1000 * thread + round + i;
  MPI_Type_vector(DOUBLES - round % 7, 1, STRIDE, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  DO(Irecv, MPI_Irecv(in, DOUBLES, MPI_DOUBLE, peer, thread, comm, &requests[0]));
  DO(Isend, MPI_Isend(out, 1, column, peer, thread, comm, &requests[1]));
  MPI_Type_free(&column);
  DO(Waitall, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  if (in[1] != 1000 * thread + round + STRIDE) abort();
}

/* One side sends, the other looks at what there is before it takes it. */
static void probe(MPI_Comm comm, int thread, int round) {
  int value = 0;
  int flag = 0;
  MPI_Status status;
  MPI_Message message;
  if ((round + rank) % 2 == 0) {
    value = round;
    DO(Send, MPI_Send(&value, 1, MPI_INT, peer, 10 + thread, comm));
    DO(Send, MPI_Send(&value, 1, MPI_INT, peer, 20 + thread, comm));
    DO(Send, MPI_Send(&value, 1, MPI_INT, peer, 30 + thread, comm));
    DO(Ssend, MPI_Ssend(&value, 1, MPI_INT, peer, 40 + thread, comm));
    return;
  }
  DO(Probe, MPI_Probe(MPI_ANY_SOURCE, 10 + thread, comm, &status));
  DO(Recv, MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 10 + thread, comm, MPI_STATUS_IGNORE));
  if (value != round) abort();
  DO(Mprobe, MPI_Mprobe(MPI_ANY_SOURCE, 20 + thread, comm, &message, MPI_STATUS_IGNORE));
  DO(Mrecv, MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  if (value != round) abort();
  while (!flag) DO(Improbe, MPI_Improbe(peer, 30 + thread, comm, &flag, &message, MPI_STATUS_IGNORE));
  DO(Mrecv, MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  if (value != round) abort();
  MPI_Request request;
  DO(Irecv, MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 40 + thread, comm, &request));
  for (flag = 0; !flag;) DO(Test, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
  if (value != round) abort();
}

static void copy(MPI_Comm comm, int thread, int round) {
  MPI_Comm made;
  int in = 0;
  DO(Comm_make, MPI_Comm_dup(comm, &made));
  DO(Sendrecv, MPI_Sendrecv(&thread, 1, MPI_INT, peer, 5, &in, 1, MPI_INT, peer, 5, made, MPI_STATUS_IGNORE));
  if (in != thread) abort();
  DO(Allreduce, MPI_Allreduce(&round, &in, 1, MPI_INT, MPI_SUM, made));
  DO(Barrier, MPI_Barrier(made));
  DO(Comm_free, MPI_Comm_free(&made));
}

static void* thread_main(void* argument) {
  const int thread = *(int*)argument;
  for (int round = 0; stays || round < rounds; ++round) {
    exchange(own[thread], thread, round);
    probe(own[thread], thread, round);
    if (round % 8 == thread) copy(own[thread], thread, round);
    if (stays && round == 20 && atomic_fetch_add(&started, 1) == THREADS - 1) {
      char path[4096];
      snprintf(path, sizeof path, "%s/started-%d", getenv("FOLDER"), rank);
      fclose(fopen(path, "w"));
    }
  }
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
  stays = argc > 2 && strcmp(argv[2], "wait") == 0;
  if (level < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("no threads");
    MPI_Finalize();
    return 0;
  }
  for (int i = 0; i < THREADS; ++i) DO(Comm_make, MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, thread_main, &numbers[i]) != 0) abort();
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) DO(Comm_free, MPI_Comm_free(&own[i]));
  for (int i = 0; i < COUNT; ++i) printf("%d %s %ld\n", rank, names[i], atomic_load(&counts[i]));
  MPI_Finalize();
  return 0;
}
