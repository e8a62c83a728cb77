/* Atomics, locks and errors of windows: SEED ROUNDS [threads]. Each number is compared with what all ranks must have
 * made of it.
 *
 * All ranks change the same elements of all ranks at the same time: by sums, products of signs, minima with places,
 * replacements, tickets and swaps, of basic types and of types with gaps, under locks and between fences. Rank 0 says
 * how many numbers were looked at, and how many were wrong.
 *
 * Without our windows MPICH 5 and Open MPI 4.1.4 with osc/ucx find nothing wrong (test_mpi_rma.py). Two MPIs cannot do
 * this:
 * - MPICH 4.0.2 over UCX: a rank's accesses to a window that does not begin at a multiple of 16 land up to 15 bytes
 *   before it, as those of rank 1 here, whose part of MPI_Win_allocate follows 20,136 bytes of rank 0. UCX registers
 *   memory from a multiple of 16 on, and MPICH takes the registration's beginning for the window's (ucx_win.c, after
 *   ucp_mem_query). One MPI_Get from a window of 40 bytes shows it. With windows of a multiple of 16 bytes nothing is
 *   wrong.
 * - Open MPI 4.1.4 with osc/rdma, its choice on one machine: between fences what MPI_Get_accumulate fetches is whatever
 *   the memory held before, though the window is right; and MPI_Compare_and_swap under a lock, on a window of
 *   MPI_Win_allocate, ends in btl/vader with a segmentation fault, also in a program that does nothing else. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { spaced = 8, gap = -7 };

struct Pair {
  double value;
  int place;
};

struct Part {
  int32_t sums[2 * spaced]; /* every other one is a gap */
  int64_t ticket, swapped, guarded[2];
  double real;
  struct Pair least;
  struct {
    int value, place;
  } most;
  uint8_t bits;
  float big[5000];
};

static int rank, ranks;
static long looked_at, wrong;
static uint64_t state;

static void look(int line, double found, double wanted) {
  ++looked_at;
  if (found == wanted) return;
  ++wrong;
  printf("rank %d, line %d: %g, not %g\n", rank, line, found, wanted);
}
#define LOOK(found, wanted) look(__LINE__, (double)(found), (double)(wanted))

static int below(int limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)limit);
}

#define AT(member) ((MPI_Aint)offsetof(struct Part, member))

static void start_over(struct Part* part) {
  memset(part, 0, sizeof *part);
  for (int i = 0; i < 2 * spaced; ++i) part->sums[i] = i % 2 == 0 ? 100 : gap;
  part->least.value = 1e9;
  part->most.value = -1;
}

/* One round: what each rank does to each rank. `passive`: under locks, else between fences. */
static void change(MPI_Win window, int round, int passive) {
  MPI_Datatype every_other;
  MPI_Type_vector(spaced, 1, 2, MPI_INT32_T, &every_other);
  MPI_Type_commit(&every_other);
  int32_t ones[2 * spaced], before[2 * spaced];
  int64_t tickets[8];
  float floats[5000];
  struct Pair const mine = {1000 - rank - 10 * round, rank};
  int const most[2] = {100 * round + rank, rank};
  double const half = 0.5;
  uint8_t const bit = (uint8_t)(1 << rank % 8);
  int64_t const one = 1;
  for (int i = 0; i < 2 * spaced; ++i) ones[i] = i % 2 == 0 ? 1 + rank : 1000;
  for (int i = 0; i < 5000; ++i) floats[i] = (float)(i % 7);
  int const first = below(ranks);
  for (int n = 0; n < ranks; ++n) {
    int const target = (first + n) % ranks;
    if (passive) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
    MPI_Accumulate(ones, 1, every_other, target, AT(sums), 1, every_other, MPI_SUM, window);
    for (int i = 0; i < 2 * spaced; ++i) before[i] = gap;
    if (passive && round % 2 == 0) {
      MPI_Request request;
      MPI_Rget_accumulate(ones, 1, every_other, before, 1, every_other, target, AT(sums), 1, every_other, MPI_SUM,
                          window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int i = 0; i < 2 * spaced; ++i) LOOK(i % 2 == 0 ? before[i] >= 100 + 1 + rank : before[i] == gap, 1);
    } else {
      MPI_Get_accumulate(ones, 1, every_other, before, 1, every_other, target, AT(sums), 1, every_other, MPI_SUM,
                         window);
    }
    MPI_Accumulate(&half, 1, MPI_DOUBLE, target, AT(real), 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, target, AT(least), 1, MPI_DOUBLE_INT, MPI_MINLOC, window);
    MPI_Accumulate(most, 1, MPI_2INT, target, AT(most), 1, MPI_2INT, MPI_MAXLOC, window);
    MPI_Accumulate(&bit, 1, MPI_BYTE, target, AT(bits), 1, MPI_BYTE, MPI_BOR, window);
    MPI_Accumulate(floats, 5000, MPI_FLOAT, target, AT(big), 5000, MPI_FLOAT, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &tickets[target % 8], MPI_INT64_T, target, AT(ticket), MPI_SUM, window);
    if (passive) {
      /* One more by swaps; others do the same. */
      int64_t seen = 0, wanted = 0, got = -1;
      MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, target, AT(swapped), MPI_NO_OP, window);
      MPI_Win_flush(target, window);
      for (;;) {
        wanted = seen + 1;
        MPI_Compare_and_swap(&wanted, &seen, &got, MPI_INT64_T, target, AT(swapped), window);
        MPI_Win_flush_local(target, window);
        if (got == seen) break;
        seen = got;
      }
      MPI_Win_unlock(target, window);
      LOOK(tickets[target % 8] >= 0 && tickets[target % 8] < (int64_t)ranks * 1000, 1);
      /* Read and written apart, which only an exclusive lock allows. */
      int64_t two[2] = {0, 0};
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
      MPI_Get(two, 2, MPI_INT64_T, target, AT(guarded), 2, MPI_INT64_T, window);
      MPI_Win_flush(target, window);
      LOOK(two[0], two[1]);
      ++two[0], ++two[1];
      MPI_Put(&two[0], 1, MPI_INT64_T, target, AT(guarded), 1, MPI_INT64_T, window);
      MPI_Win_flush(target, window);
      MPI_Put(&two[1], 1, MPI_INT64_T, target, AT(guarded) + 8, 1, MPI_INT64_T, window);
      MPI_Win_unlock(target, window);
    } else {
      MPI_Win_fence(0, window);
      for (int i = 0; i < 2 * spaced; ++i) LOOK(i % 2 == 0 ? before[i] >= 100 + 1 + rank : before[i] == gap, 1);
    }
  }
  MPI_Type_free(&every_other);
}

/* After so many rounds of all ranks. */
static void check(struct Part const* part, int rounds, int passive) {
  int const all = rounds * ranks * (ranks + 1) / 2 * 2;
  for (int i = 0; i < 2 * spaced; ++i) LOOK(part->sums[i], i % 2 == 0 ? 100 + all : gap);
  LOOK(part->ticket, rounds * ranks);
  LOOK(part->real, 0.5 * rounds * ranks);
  LOOK(part->least.value, 1000 - (ranks - 1) - 10 * rounds);
  LOOK(part->least.place, ranks - 1);
  LOOK(part->most.value, 100 * rounds + ranks - 1);
  LOOK(part->most.place, ranks - 1);
  LOOK(part->bits, ranks >= 8 ? 255 : (1 << ranks) - 1);
  for (int i = 0; i < 5000; i += 499) LOOK(part->big[i], i % 7 * rounds * ranks);
  LOOK(part->swapped, passive ? rounds * ranks : 0);
  LOOK(part->guarded[0], passive ? rounds * ranks : 0);
  LOOK(part->guarded[1], passive ? rounds * ranks : 0);
}

static int class_of(int code) {
  int found = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
  return found;
}

/* Wrong calls change nothing, and say so. */
static void errors(MPI_Win window, struct Part const* part) {
  int64_t const one = 1;
  int64_t got = 5;
  struct Part const then = *part;
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  LOOK(class_of(MPI_Put(&one, 1, MPI_INT64_T, 0, AT(ticket), 1, MPI_INT64_T, window)), MPI_ERR_RMA_SYNC);
  LOOK(class_of(MPI_Win_unlock(0, window)), MPI_ERR_RMA_SYNC);
  LOOK(class_of(MPI_Win_complete(window)), MPI_ERR_RMA_SYNC);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  MPI_Aint const end = sizeof(struct Part);
  LOOK(class_of(MPI_Put(&one, 1, MPI_INT64_T, rank, end - 4, 1, MPI_INT64_T, window)), MPI_ERR_RMA_RANGE);
  LOOK(class_of(MPI_Put(&one, 1, MPI_INT64_T, rank, -8, 1, MPI_INT64_T, window)), MPI_ERR_RMA_RANGE);
  LOOK(class_of(MPI_Accumulate(&one, 1, MPI_INT64_T, rank, end, 1, MPI_INT64_T, MPI_SUM, window)), MPI_ERR_RMA_RANGE);
  LOOK(class_of(MPI_Get(&got, 1, MPI_INT64_T, rank, AT(ticket), 3, MPI_INT64_T, window)) != MPI_SUCCESS, 1);
  LOOK(class_of(MPI_Put(&one, -1, MPI_INT64_T, rank, 0, -1, MPI_INT64_T, window)) != MPI_SUCCESS, 1);
  LOOK(class_of(MPI_Put(&one, 1, MPI_INT64_T, ranks, 0, 1, MPI_INT64_T, window)) != MPI_SUCCESS, 1);
  LOOK(class_of(MPI_Accumulate(&one, 1, MPI_INT64_T, rank, 0, 1, MPI_DOUBLE, MPI_SUM, window)) != MPI_SUCCESS, 1);
  LOOK(MPI_Put(&one, 1, MPI_INT64_T, MPI_PROC_NULL, 1 << 20, 1, MPI_INT64_T, window), MPI_SUCCESS);
  LOOK(MPI_Get(&got, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, window), MPI_SUCCESS);
  MPI_Win_unlock(rank, window);
  LOOK(got, 5);
  LOOK(memcmp(part, &then, sizeof then), 0);
}

/* Whoever waits for a window lets the MPI go on, which others wait for. */
static void waits(MPI_Win window) {
  enum { many = 1 << 22 };
  char* const bytes = calloc(2, many);
  MPI_Request requests[2];
  int const next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  memset(bytes, rank + 1, many);
  MPI_Isend(bytes, many, MPI_CHAR, next, 5, MPI_COMM_WORLD, &requests[0]);
  if (rank % 2 == 0) {
    MPI_Win_fence(0, window);
    MPI_Recv(bytes + many, many, MPI_CHAR, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(bytes + many, many, MPI_CHAR, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  LOOK(bytes[many], before + 1);
  LOOK(bytes[2 * many - 1], before + 1);
  free(bytes);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

int main(int count, char** words) {
  int const seed = count > 1 ? atoi(words[1]) : 1, rounds = count > 2 ? atoi(words[2]) : 3;
  int const wants_threads = count > 3;
  int level = 0;
  MPI_Init_thread(NULL, NULL, wants_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  state = (uint64_t)seed * 1000 + (uint64_t)rank;
  for (int passive = 0; passive < 2; ++passive) {
    struct Part* part = NULL;
    MPI_Win window;
    if (passive) {
      MPI_Win_allocate(sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
    } else {
      part = malloc(sizeof *part);
      MPI_Win_create(part, sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    }
    if (passive) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    start_over(part);
    if (passive) MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!passive) MPI_Win_fence(0, window);
    for (int round = 1; round <= rounds; ++round) change(window, round, passive);
    if (!passive) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (passive) MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    check(part, rounds, passive);
    if (passive) MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (passive && getenv("WITH_ERRORS") != NULL) errors(window, part);
    if (!passive && ranks > 1) waits(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    if (!passive) free(part);
  }
  long sums[2] = {looked_at, wrong};
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("numbers %ld wrong %ld\n", sums[0], sums[1]);
  MPI_Finalize();
  return sums[1] != 0;
}
