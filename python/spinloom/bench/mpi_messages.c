/* MPI messages - two ranks of one MPI that exchange the messages of a bench row, and say how long it took.
 *
 * Contract: mpi_job.h. KIND is pingpong (a call is a round trip), stream (a call is WINDOW messages one way and a short
 *   answer), both (a call is one message each way at once), or alltoallw (the same by MPI_Alltoallw); "time" answers ns a
 *   call, REPETITIONS numbers.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_exchange.h"

#define WINDOW 16

static void send_one(void) { MPI_Send(sides[0].memory - sides[0].true_lb, 1, sides[0].type, !rank, 1, MPI_COMM_WORLD); }
static void receive_one(void) {
  MPI_Recv(sides[1].memory - sides[1].true_lb, 1, sides[1].type, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pingpong(void) {
  if (rank == 0) send_one();
  receive_one();
  if (rank == 1) send_one();
}

static void stream(void) {
  MPI_Request requests[WINDOW];
  char answer = 0;
  if (rank == 0) {
    for (int i = 0; i < WINDOW; ++i) {
      MPI_Isend(sides[0].memory - sides[0].true_lb, 1, sides[0].type, 1, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&answer, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < WINDOW; ++i) receive_one();
    MPI_Send(&answer, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  }
}

static void call(const char* kind) {
  if (kind[0] == 'a') {
    alltoallw_with(!rank);
  } else if (kind[0] == 'p') {
    pingpong();
  } else if (kind[0] == 's') {
    stream();
  } else {
    exchange_layouts();
  }
}

static int load(const char* path) {
  if (!load_sides(path)) return 0;
  refill();
  return 1;
}

static unsigned long long check(const char* kind) {
  refill();
  MPI_Barrier(MPI_COMM_WORLD);
  call(kind);
  return hash_of(sides[1].memory, sides[1].true_extent);
}

static void measure(FILE* out, const char* kind, int repetitions, long calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  call(kind);
  for (int i = 0; i < repetitions; ++i) {
    const double begin = now_ns();
    for (long done = 0; done < calls; ++done) call(kind);
    fprintf(out, "%.2f ", (now_ns() - begin) / (double)calls);
  }
}

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
