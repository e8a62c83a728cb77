/* MPI parameters - ranks of one MPI that time what the LogGOPS parameters are computed from.
 *
 * Contract: mpi_job.h. KIND is NAME:n:d:s, "time" answers ns of a call, REPETITIONS numbers, by one rank; s bytes are
 *   contiguous, the buffers warm. Ranks from 2 on take part in collective calls only.
 *     prtt       rank 0: n messages of s bytes, d ns of work between two, then an answer of s bytes comes back.
 *     flood      the same, but the answer is one byte.
 *     send       rank 0: MPI_Isend alone, to a rank that waits in MPI_Recv.
 *     receive    rank 1: MPI_Recv alone, d ns after it has asked for the message, without a call of MPI meanwhile.
 *     late       from rank 1's asking until rank 0's MPI_Send returns; rank 1 posts its receive d ns after it has asked.
 *     polled     the same, but rank 1 calls MPI_Iprobe for another message all the while.
 *     clock      rank 0: two looks at the clock.
 *     work       rank 0: d ns of work, as between messages.
 *     barrier, allreduce, bcast     rank 0: the call, of s bytes (MPI_DOUBLE in allreduce); after bcast an MPI_Barrier.
 * Threads: one.
 * Time: host time, CLOCK_MONOTONIC.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_job.h"

#define MESSAGES_MAX 256
#define BYTES_MAX (1L << 30)

enum { GO = 1, DATA, ANSWER, NOTHING };

static MPI_Comm pair = MPI_COMM_NULL; /* ranks 0 and 1 */
static char *out_bytes, *in_bytes;
static long room;

typedef struct {
  char name[16];
  long n, d, s;
} request;

static void work(long ns) {
  const double begin = now_ns();
  while (now_ns() - begin < (double)ns) continue;
}

/* Calls of MPI that have nothing to do with the messages here. */
static void poll(long ns) {
  const double begin = now_ns();
  int found;
  while (now_ns() - begin < (double)ns) MPI_Iprobe(!rank, NOTHING, pair, &found, MPI_STATUS_IGNORE);
}

static void send(long bytes, int tag) { MPI_Send(out_bytes, (int)bytes, MPI_BYTE, !rank, tag, pair); }
static void receive(long bytes, int tag) {
  MPI_Recv(in_bytes, (int)bytes, MPI_BYTE, !rank, tag, pair, MPI_STATUS_IGNORE);
}

/* The answer of rank 1 ends what rank 0 times. */
static void stream(const request* asked, long answer) {
  MPI_Request sent[MESSAGES_MAX];
  if (rank == 0) {
    for (long i = 0; i < asked->n; ++i) {
      if (i > 0 && asked->d > 0) work(asked->d);
      MPI_Isend(out_bytes, (int)asked->s, MPI_BYTE, 1, DATA, pair, &sent[i]);
    }
    MPI_Waitall((int)asked->n, sent, MPI_STATUSES_IGNORE);
    receive(answer, ANSWER);
  } else {
    for (long i = 0; i < asked->n; ++i) receive(asked->s, DATA);
    send(answer, ANSWER);
  }
}

/* A call of each kind; kinds that time a part of their call answer its ns. */

static double call_prtt(const request* asked) {
  stream(asked, asked->s);
  return 0;
}

static double call_flood(const request* asked) {
  stream(asked, 1);
  return 0;
}

static double call_send(const request* asked) {
  double ns = 0;
  if (rank == 0) {
    MPI_Request sent;
    const double begin = now_ns();
    MPI_Isend(out_bytes, (int)asked->s, MPI_BYTE, 1, DATA, pair, &sent);
    ns = now_ns() - begin;
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    receive(1, ANSWER);
  } else {
    receive(asked->s, DATA);
    send(1, ANSWER);
  }
  return ns;
}

/* Rank 1 asks, does something else, receives; rank 0 sends when it is asked. The time of rank 0 begins when rank 1 asks,
 * by the clock that both have: so a wait is not overlooked where rank 0 sleeps meanwhile. */
static double late(const request* asked, void (*meanwhile)(long ns)) {
  double begin = now_ns();
  if (rank == 0) {
    receive(sizeof begin, GO);
    memcpy(&begin, in_bytes, sizeof begin);
    send(asked->s, DATA);
    return now_ns() - begin;
  }
  memcpy(out_bytes, &begin, sizeof begin);
  send(sizeof begin, GO);
  meanwhile(asked->d);
  begin = now_ns();
  receive(asked->s, DATA);
  return now_ns() - begin;
}

static double call_late(const request* asked) { return late(asked, work); }
static double call_polled(const request* asked) { return late(asked, poll); }

static double call_clock(const request* asked) {
  const double begin = now_ns();
  (void)asked;
  return now_ns() - begin;
}

static double call_work(const request* asked) {
  work(asked->d);
  return 0;
}

static double call_barrier(const request* asked) {
  (void)asked;
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

static double call_allreduce(const request* asked) {
  MPI_Allreduce(out_bytes, in_bytes, (int)(asked->s / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return 0;
}

static double call_bcast(const request* asked) {
  MPI_Bcast(out_bytes, (int)asked->s, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

enum { WHOLE, PART };     /* the calls are timed together, or each answer is */
enum { PAIR, COLLECTIVE }; /* those who take part */

static const struct {
  const char* name;
  double (*call)(const request* asked);
  int timed, ranks, speaker;
} kinds[] = {
    {"prtt", call_prtt, WHOLE, PAIR, 0},
    {"flood", call_flood, WHOLE, PAIR, 0},
    {"send", call_send, PART, PAIR, 0},
    {"receive", call_late, PART, PAIR, 1},
    {"late", call_late, PART, PAIR, 0},
    {"polled", call_polled, PART, PAIR, 0},
    {"clock", call_clock, PART, PAIR, 0},
    {"work", call_work, WHOLE, PAIR, 0},
    {"barrier", call_barrier, WHOLE, COLLECTIVE, 0},
    {"allreduce", call_allreduce, WHOLE, COLLECTIVE, 0},
    {"bcast", call_bcast, WHOLE, COLLECTIVE, 0},
};

/* Every rank comes here with the same request. */
static void prepare(const request* asked) {
  if (pair == MPI_COMM_NULL) MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &pair);
  if (asked->n < 1 || asked->n > MESSAGES_MAX || asked->s < 0 || asked->s > BYTES_MAX) MPI_Abort(MPI_COMM_WORLD, 3);
  if (asked->s + 8 <= room) return;
  free(out_bytes);
  free(in_bytes);
  room = asked->s + 8;
  out_bytes = must_allocate(room);
  in_bytes = must_allocate(room);
  memset(out_bytes, 0, (size_t)room);
  memset(in_bytes, 0, (size_t)room);
}

static void measure(FILE* out, const char* text, int repetitions, long calls) {
  request asked;
  size_t kind = 0;
  if (sscanf(text, "%15[a-z]:%ld:%ld:%ld", asked.name, &asked.n, &asked.d, &asked.s) != 4) return;
  while (kind < sizeof kinds / sizeof *kinds && strcmp(kinds[kind].name, asked.name)) ++kind;
  if (kind == sizeof kinds / sizeof *kinds) return;
  prepare(&asked);
  if (rank > 1 && kinds[kind].ranks == PAIR) return;
  kinds[kind].call(&asked);
  MPI_Barrier(kinds[kind].ranks == PAIR ? pair : MPI_COMM_WORLD);
  for (int i = 0; i < repetitions; ++i) {
    double parts = 0;
    const double begin = now_ns();
    for (long done = 0; done < calls; ++done) parts += kinds[kind].call(&asked);
    const double whole = now_ns() - begin;
    if (rank == kinds[kind].speaker) fprintf(out, "%.3f ", (kinds[kind].timed == PART ? parts : whole) / (double)calls);
  }
}

static int load(const char* path) { return path[0] != 0; }
static unsigned long long check(const char* kind) { return kind[0] == 0; }

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
