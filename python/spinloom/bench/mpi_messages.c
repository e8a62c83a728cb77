/* MPI messages - two ranks of one MPI that exchange the messages of a bench row, and say how long it took.
 *
 * Contract: mpi_messages FOLDER. Each rank reads commands from FOLDER/in.RANK and answers to FOLDER/out.RANK, a line for
 *   a line ("error ..." when it failed); its first line is the MPI's version. Both ranks must be given the same commands:
 *     load FILE                              both types of a row: the first is sent, the second received
 *     check KIND                             the hash of what this rank received, as a decimal number
 *     time KIND REPETITIONS CALLS            ns a call, REPETITIONS numbers
 *   KIND is pingpong (a call is a round trip), stream (a call is WINDOW messages one way and a short answer), or both (a
 *   call is one message each way at once).
 *   Between commands a rank sleeps, so that another job can be measured.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_row.h"

#define WINDOW 16

static int rank;

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

static void both(void) {
  MPI_Request requests[2];
  MPI_Irecv(sides[1].memory - sides[1].true_lb, 1, sides[1].type, !rank, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(sides[0].memory - sides[0].true_lb, 1, sides[0].type, !rank, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void call(const char* kind) {
  if (kind[0] == 'p') {
    pingpong();
  } else if (kind[0] == 's') {
    stream();
  } else {
    both();
  }
}

static void refill(void) {
  fill(sides[0].memory, sides[0].true_extent, 0);
  fill(sides[1].memory, sides[1].true_extent, (uint64_t)1 << 40);
}

static FILE* open_channel(const char* folder, const char* name, const char* mode) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
  FILE* file = fopen(path, mode);
  if (!file) MPI_Abort(MPI_COMM_WORLD, 2);
  return file;
}

int main(int argc, char** argv) {
  static char line[4096], kind[16], path[4000], version[MPI_MAX_LIBRARY_VERSION_STRING];
  int repetitions, length;
  long calls;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  FILE* const in = open_channel(argv[1], "in", "r");
  FILE* const out = open_channel(argv[1], "out", "w");
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  fprintf(out, "%s\n", version);
  fflush(out);
  while (fgets(line, sizeof line, in)) {
    if (sscanf(line, "load %3999s", path) == 1) {
      const int loaded = load_sides(path);
      if (loaded) refill();
      fprintf(out, loaded ? "ok\n" : "error: cannot read the program\n");
    } else if (sscanf(line, "check %15s", kind) == 1) {
      refill();
      MPI_Barrier(MPI_COMM_WORLD);
      call(kind);
      fprintf(out, "%llu\n", (unsigned long long)hash_of(sides[1].memory, sides[1].true_extent));
    } else if (sscanf(line, "time %15s %d %ld", kind, &repetitions, &calls) == 3) {
      MPI_Barrier(MPI_COMM_WORLD);
      call(kind);
      for (int i = 0; i < repetitions; ++i) {
        const double begin = now_ns();
        for (long done = 0; done < calls; ++done) call(kind);
        fprintf(out, "%.2f ", (now_ns() - begin) / (double)calls);
      }
      fprintf(out, "\n");
    } else {
      fprintf(out, "error: what is %s", line);
    }
    fflush(out);
  }
  MPI_Finalize();
  return 0;
}
