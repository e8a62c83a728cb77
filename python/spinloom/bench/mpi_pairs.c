/* MPI pairs - two ranks of one MPI that exchange messages of two layouts, as programs do: both send at once, and what they
 * send is not in their caches.
 *
 * Contract: mpi_job.h. KIND is layouts:BYTES (the layouts of the row), blocks:BYTES (as much in one block at both ends) or
 *   own:BYTES (each rank moves its own block from one layout to the other, by MPI_Alltoallw);
 *   before each exchange a rank goes over BYTES of other memory. "time" answers ns of single exchanges, REPETITIONS numbers;
 *   the later of both ranks has the time of an exchange. CALLS is not looked at.
 * Time: host time.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_exchange.h"

static char *out_block, *in_block;

static void call(const char* kind) {
  if (kind[0] == 'o') {
    alltoallw_with(rank);
  } else if (kind[0] == 'l') {
    exchange_layouts();
  } else {
    exchange(out_block, (int)sides[0].size, MPI_BYTE, in_block, (int)sides[0].size, MPI_BYTE);
  }
}

static int load(const char* path) {
  if (!load_sides(path)) return 0;
  refill();
  free(out_block);
  free(in_block);
  out_block = must_allocate(sides[0].size);
  in_block = must_allocate(sides[0].size);
  fill(out_block, sides[0].size, 0);
  fill(in_block, sides[0].size, 0);
  return 1;
}

static unsigned long long check(const char* kind) {
  refill();
  MPI_Barrier(MPI_COMM_WORLD);
  call(kind);
  return hash_of(sides[1].memory, sides[1].true_extent);
}

static void measure(FILE* out, const char* kind, int repetitions, long calls) {
  long bytes = 0;
  (void)calls;
  sscanf(kind, "%*[a-z]:%ld", &bytes);
  call(kind);
  for (int i = 0; i < repetitions; ++i) {
    sweep(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_ns();
    call(kind);
    fprintf(out, "%.2f ", now_ns() - begin);
  }
}

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
