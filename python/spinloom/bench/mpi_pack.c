/* MPI pack - times MPI_Pack and MPI_Unpack of one MPI for the layout bench, in a process of its own.
 *
 * Contract: one line of input a command, one line of output an answer ("error ..." when it failed):
 *     load FILE                                 both types of a row, see src/app/measure/mpi_program.hpp
 *     check pack|unpack|copy                    the hash of what it made, as a decimal number
 *     time pack|unpack|copy REPETITIONS CALLS   ns a call, REPETITIONS numbers
 *     swept pack|unpack|memcpy REPETITIONS BYTES   ns of one call each, before which a program went over so many bytes
 *   copy packs with the first type and unpacks with the second. The pattern that memory holds and the hash are those
 *   of src/app/measure/layout_bench.cpp.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_row.h"

#define WARMED_BYTES_MAX (4 << 20)

static char* packed;

static void refill(void) {
  fill(sides[0].memory, sides[0].true_extent, 0);
  fill(sides[1].memory, sides[1].true_extent, (uint64_t)1 << 40);
  fill(packed, sides[0].size, (uint64_t)1 << 41);
}

static int load(const char* path) {
  if (!load_sides(path)) return 0;
  free(packed);
  packed = must_allocate(sides[0].size);
  refill();
  return 1;
}

static void pack(const side* s) {
  int at = 0;
  MPI_Pack(s->memory - s->true_lb, 1, s->type, packed, (int)s->size, &at, MPI_COMM_SELF);
}

static void unpack(const side* s) {
  int at = 0;
  MPI_Unpack(packed, (int)s->size, &at, s->memory - s->true_lb, 1, s->type, MPI_COMM_SELF);
}

static void run(const char* operation) {
  if (operation[0] == 'p') {
    pack(&sides[0]);
  } else if (operation[0] == 'u') {
    unpack(&sides[0]);
  } else {
    pack(&sides[0]);
    unpack(&sides[1]);
  }
}

static void time_swept(const char* operation, int repetitions, long bytes) {
  for (int i = 0; i < repetitions; ++i) {
    sweep(bytes);
    const double begin = now_ns();
    if (operation[0] == 'm') {
      memcpy(packed, sides[0].memory, (size_t)sides[0].size);
    } else {
      run(operation);
    }
    printf("%.2f ", now_ns() - begin);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  static char line[4096], operation[16], path[4000];
  int repetitions;
  long calls;
  MPI_Init(&argc, &argv);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  printf("%s\n", version);
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "load %3999s", path) == 1) {
      printf(load(path) ? "ok\n" : "error: cannot read the program\n");
    } else if (sscanf(line, "check %15s", operation) == 1) {
      refill();
      if (operation[0] == 'u') fill(sides[0].memory, sides[0].true_extent, (uint64_t)1 << 40);
      run(operation);
      const side* s = &sides[operation[0] == 'c'];
      const uint64_t hash = operation[0] == 'p' ? hash_of(packed, s->size) : hash_of(s->memory, s->true_extent);
      printf("%llu\n", (unsigned long long)hash);
    } else if (sscanf(line, "time %15s %d %ld", operation, &repetitions, &calls) == 3) {
      if (sides[0].size <= WARMED_BYTES_MAX) run(operation);
      for (int i = 0; i < repetitions; ++i) {
        const double begin = now_ns();
        for (long call = 0; call < calls; ++call) run(operation);
        printf("%.2f ", (now_ns() - begin) / (double)calls);
      }
      printf("\n");
    } else if (sscanf(line, "swept %15s %d %ld", operation, &repetitions, &calls) == 3) {
      time_swept(operation, repetitions, calls);
    } else {
      printf("error: what is %s", line);
    }
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
