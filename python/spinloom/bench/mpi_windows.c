/* MPI windows - what accesses to a window of two ranks take, for `spinloom bench mpi windows`.
 *
 * Contract: mpi_job.h, without rows to load. Rank 0 measures; rank 1 is its target. KIND is
 *   OPERATION-EPOCH-TARGET-BLOCK-BYTES:
 *     put, get, acc (a sum), fop (fetch and add), cas, none (no access)
 *     lock, all      the access between lock and unlock, or between lock_all and unlock_all
 *     flush          the access and a flush, in one lock_all
 *     fence, pscw    the access and a fence; start, the access and complete, where rank 1 posts and waits
 *     idle, computing   rank 1 sleeps, or computes, for 0.2 ms between two calls of MPI_Iprobe
 *     barrier, with  it waits in MPI_Barrier, or takes part
 *     BLOCK          0: contiguous; else blocks of so many bytes, twice their length apart at both ends
 *   or make-FLAVOUR-with-0-BYTES, FLAVOUR allocate or create: a window is made and freed.
 *   "check" answers 1 where all bytes were right. "time" compares all bytes after its calls, and fails where one
 *   differs. Elements are integers of 8 bytes. What is compared, with what loops over elements say, is all that the
 *   access spans in the window and in the memory for what is fetched, gaps included, and 2 KiB behind it.
 * Threads: one.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_job.h"

enum { room = (8 << 20) + 4096, words = room / 8, guard = 256, slice_ns = 200000 };

typedef struct {
  char operation[16], epoch[16], target[16];
  long block, bytes;
} row;

static MPI_Win window;
static uint64_t *part, *own, *into, *expected;
static volatile int* stop; /* shared by both ranks */
static MPI_Group other;
static MPI_Datatype type;
static row now;
static int is_made; /* the window is there */
static uint64_t done; /* the calls since the memory was filled */

static int is(const char* text, const char* other_text) { return strcmp(text, other_text) == 0; }

static int parse(const char* kind) {
  return sscanf(kind, "%15[a-z]-%15[a-z]-%15[a-z]-%ld-%ld", now.operation, now.epoch, now.target, &now.block,
                &now.bytes) == 5;
}

static int is_active(void) { return is(now.epoch, "fence") || is(now.epoch, "pscw"); }

/* The place of an element, in elements from the start. */
static long place(long element) {
  const long each = now.block / 8;
  return now.block == 0 ? element : element / each * 2 * each + element % each;
}
static long elements(void) { return now.bytes / 8; }
static long span(void) { return now.block == 0 ? elements() : 2 * elements(); }

static void refill(void) {
  const long all = span() + guard < words ? span() + guard : words;
  for (long i = 0; i < all; ++i) {
    part[i] = pattern((uint64_t)i + 7);
    own[i] = pattern((uint64_t)i + ((uint64_t)1 << 40));
    into[i] = ~(uint64_t)0;
  }
  done = 0;
}

/* What must be in `memory` after `done` calls. */
static int is_right(const uint64_t* memory, int is_window) {
  const long all = span() + guard < words ? span() + guard : words;
  const int is_put = is(now.operation, "put"), is_get = is(now.operation, "get");
  for (long i = 0; i < all; ++i) expected[i] = is_window ? pattern((uint64_t)i + 7) : ~(uint64_t)0;
  for (long i = 0; done > 0 && i < elements(); ++i) {
    const long at = place(i);
    const uint64_t sent = pattern((uint64_t)at + ((uint64_t)1 << 40)), was = pattern((uint64_t)at + 7);
    if (is_window) {
      if (is_put) expected[at] = sent;
      if (is(now.operation, "acc") || is(now.operation, "fop")) expected[at] = was + done * sent;
      if (is(now.operation, "cas")) expected[at] = was + done;
    } else {
      if (is_get) expected[at] = was;
      if (is(now.operation, "fop")) expected[at] = was + (done - 1) * sent;
      if (is(now.operation, "cas")) expected[at] = was + done - 1;
    }
  }
  return memcmp(memory, expected, (size_t)all * 8) == 0;
}

static void access_once(void) {
  const int count = now.block == 0 ? (int)elements() : 1;
  if (is(now.operation, "put")) {
    MPI_Put(own, count, type, 1, 0, count, type, window);
  } else if (is(now.operation, "get")) {
    MPI_Get(into, count, type, 1, 0, count, type, window);
  } else if (is(now.operation, "acc")) {
    MPI_Accumulate(own, count, type, 1, 0, count, type, MPI_SUM, window);
  } else if (is(now.operation, "fop")) {
    MPI_Fetch_and_op(own, into, type, 1, 0, MPI_SUM, window);
  } else if (is(now.operation, "cas")) {
    static uint64_t compare, value;
    compare = pattern(7) + done;
    value = compare + 1;
    MPI_Compare_and_swap(&value, &compare, into, type, 1, 0, window);
  }
}

static void make_once(void) {
  MPI_Win made;
  if (is(now.epoch, "allocate")) {
    void* memory;
    MPI_Win_allocate(now.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
  } else {
    MPI_Win_create(own, now.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
  }
  MPI_Win_free(&made);
}

static void call(void) {
  if (is(now.operation, "make")) {
    make_once();
  } else if (is(now.epoch, "lock")) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    access_once();
    MPI_Win_unlock(1, window);
  } else if (is(now.epoch, "all")) {
    MPI_Win_lock_all(0, window);
    access_once();
    MPI_Win_unlock_all(window);
  } else if (is(now.epoch, "flush")) {
    access_once();
    MPI_Win_flush(1, window);
  } else if (is(now.epoch, "fence")) {
    if (rank == 0) access_once();
    MPI_Win_fence(0, window);
  } else if (rank == 0) {
    MPI_Win_start(other, 0, window);
    access_once();
    MPI_Win_complete(window);
  } else {
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
  }
  ++done;
}

/* Locks and long accesses of some MPIs wait for the target's next call, so it makes one after each slice. */
static void wait_as_target(void) {
  static volatile double sum;
  const struct timespec slice = {0, slice_ns};
  int flag;
  if (is(now.target, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
  while (!*stop) {
    const double begin = now_ns();
    if (is(now.target, "idle")) nanosleep(&slice, NULL);
    while (!*stop && now_ns() - begin < slice_ns) sum = sum + begin;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
}

/* Calls `repetitions` times `calls` times; ns a call go to `out`. Returns whether all bytes were right. */
static int run(FILE* out, int repetitions, long calls) {
  const int takes_part = is_active() || is(now.operation, "make");
  type = MPI_UINT64_T;
  if (now.block != 0) {
    MPI_Type_vector((int)(now.bytes / now.block), (int)(now.block / 8), (int)(now.block / 4), MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
  }
  refill();
  if (rank == 0) *stop = 0;
  MPI_Win_fence(is(now.epoch, "fence") ? 0 : MPI_MODE_NOSUCCEED, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 || takes_part) {
    if (is(now.epoch, "flush")) MPI_Win_lock_all(0, window);
    if (out) call();
    for (int i = 0; i < repetitions; ++i) {
      const double begin = now_ns();
      for (long at = 0; at < calls; ++at) call();
      if (out) fprintf(out, "%.2f ", (now_ns() - begin) / (double)calls);
    }
    if (is(now.epoch, "flush")) MPI_Win_unlock_all(window);
    if (rank == 0) *stop = 1;
    if (is(now.target, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
  } else {
    wait_as_target();
    done = (uint64_t)(repetitions * calls + (out ? 1 : 0));
  }
  if (is(now.epoch, "fence")) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Barrier(MPI_COMM_WORLD);
  /* In a lock, so that the window's bytes may be read. */
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  const int right = rank == 0 ? is_right(into, 0) : is_right(part, 1);
  MPI_Win_unlock(rank, window);
  if (now.block != 0) MPI_Type_free(&type);
  return right || is(now.operation, "make");
}

/* Where a block begins within its page is the allocator's choice. Copies between two that begin alike take longer, so
 * jobs with and without the layer get memory that begins alike. */
static uint64_t* allocate_off_the_page(void) {
  void* made = NULL;
  if (posix_memalign(&made, 4096, room + 4096) != 0) abort();
  return (uint64_t*)made + 64;
}

static void make_window(void) {
  static char name[64];
  MPI_Group all;
  const int there = 1 - rank;
  MPI_Win_allocate(room, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  own = allocate_off_the_page();
  into = allocate_off_the_page();
  expected = must_allocate(room);
  memset(own, 0, room);
  memset(into, 0, room);
  memset(part, 0, room);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &there, &other);
  int number = (int)getpid();
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(name, sizeof name, "/spinloom-bench-%d", number);
  /* Rank 0 makes a new file; the other one opens it, and looks whose it is. */
  int file = -1;
  struct stat status;
  if (rank == 0) file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file >= 0 && ftruncate(file, 4096) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) file = shm_open(name, O_RDWR, 0600);
  if (file < 0 || fstat(file, &status) != 0 || status.st_uid != geteuid()) MPI_Abort(MPI_COMM_WORLD, 2);
  stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  is_made = 1;
  if (rank == 0) shm_unlink(name);
  close(file);
}

static int load(const char* path) {
  (void)path;
  return 1;
}

static unsigned long long check(const char* kind) {
  if (!is_made) make_window();
  return parse(kind) && run(NULL, 1, 1);
}

static void measure(FILE* out, const char* kind, int repetitions, long calls) {
  static char text[1 << 16];
  FILE* const times = fmemopen(text, sizeof text, "w");
  const int right = parse(kind) && run(times, repetitions, calls);
  fclose(times);
  fprintf(out, right ? "%s" : "error: wrong bytes %s", text);
}

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
