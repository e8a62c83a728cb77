/* MPI job - a program of several ranks that measures what it is told to, see jobs.py.
 *
 * Contract: PROGRAM FOLDER. Each rank reads commands from FOLDER/in.RANK and answers to FOLDER/out.RANK, a line for a line
 *   ("error ..." when it failed); its first line is the MPI's version. All ranks must be given the same commands:
 *     load FILE                              both types of a row: the first is sent, the second received
 *     check KIND                             the hash of what this rank received, as a decimal number
 *     time KIND REPETITIONS CALLS            numbers of ns
 *   Between commands a rank sleeps, so that another job can be measured.
 * Threads: one.
 */
#include "mpi_row.h"

static int rank;

typedef struct {
  int (*load)(const char* path); /* true: it could */
  unsigned long long (*check)(const char* kind);
  void (*measure)(FILE* out, const char* kind, int repetitions, long calls);
} program;

static FILE* open_channel(const char* folder, const char* name, const char* mode) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
  FILE* file = fopen(path, mode);
  if (!file) MPI_Abort(MPI_COMM_WORLD, 2);
  return file;
}

static int serve(int argc, char** argv, const program* does) {
  static char line[4096], kind[64], path[4000], version[MPI_MAX_LIBRARY_VERSION_STRING];
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
      fprintf(out, does->load(path) ? "ok\n" : "error: cannot read the program\n");
    } else if (sscanf(line, "check %63s", kind) == 1) {
      fprintf(out, "%llu\n", does->check(kind));
    } else if (sscanf(line, "time %63s %d %ld", kind, &repetitions, &calls) == 3) {
      does->measure(out, kind, repetitions, calls);
      fprintf(out, "\n");
    } else {
      fprintf(out, "error: what is %s", line);
    }
    fflush(out);
  }
  MPI_Finalize();
  return 0;
}
