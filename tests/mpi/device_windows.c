/* Accesses to windows of the host's memory with buffers in a GPU's memory:
 *   device_windows           every access in every kind of epoch, with gaps and without; every byte is compared
 *   device_windows threads   threads that get from one window, each with flushes of its own
 *   device_windows refused   calls that would have the MPI keep a GPU's memory
 * Ends with "accesses N wrong 0", or with the errors' texts, from rank 0. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"

enum { items = 2000, stride = 3, span = items * stride };
enum { put, get, accumulate, get_accumulate, fetch, swap, accesses };
enum { fence, active, lock, lock_and_request, flushed, flushed_here, epochs };
static char const* const names[accesses] = {"put", "get", "accumulate", "get_accumulate", "fetch", "swap"};
static char const* const kinds[epochs] = {"fence", "active", "lock", "request", "flush", "flush_local"};

static int rank, size, to, from, wrong, done;
typedef struct {
  int *memory, *seen; /* the address that MPI is told, and the one that is seen here */
} Buffer;
static Buffer origin, result, compared;
static int* target; /* the window's memory */
static MPI_Win win;
static MPI_Group to_group, from_group;

static Buffer buffer_of(void) {
  unsigned char* window;
  unsigned char* const memory = device_alloc(span * sizeof(int), &window);
  return (Buffer){(int*)(void*)memory, (int*)(void*)window};
}
static int there(int of, int i) { return 5000000 + of * 100000 + i; }
static int here(int of, int i) { return 1000 * (of + 1) + i; }
static void expect(int access, int epoch, char const* where, int i, int found, int want) {
  if (found == want) return;
  if (wrong++ < 6)
    fprintf(stderr, "rank %d, %s, %s, %s: item %d is %d, not %d\n", rank, names[access], kinds[epoch], where, i, found,
            want);
}

static void begin(int epoch) {
  if (epoch == fence) MPI_Win_fence(0, win);
  if (epoch == active) MPI_Win_post(from_group, 0, win), MPI_Win_start(to_group, 0, win);
  if (epoch == lock || epoch == lock_and_request) MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
  if (epoch == flushed || epoch == flushed_here) MPI_Win_lock_all(0, win);
}
/* When it returns the accesses have ended at this rank. */
static void settle(int epoch) {
  if (epoch == fence) MPI_Win_fence(0, win);
  if (epoch == active) MPI_Win_complete(win);
  if (epoch == lock || epoch == lock_and_request) MPI_Win_unlock(to, win);
  if (epoch == flushed) MPI_Win_flush(to, win);
  if (epoch == flushed_here) MPI_Win_flush_local_all(win);
}
static void end(int epoch) {
  if (epoch == active) MPI_Win_wait(win);
  if (epoch == flushed || epoch == flushed_here) MPI_Win_unlock_all(win);
}

static void make(int access, int epoch, MPI_Datatype type, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  int const by_request = epoch == lock_and_request;
  int *const out = origin.memory, *const in = result.memory;
#define PLACE to, 0, items, MPI_INT
  if (access == put && by_request) MPI_Rput(out, count, type, PLACE, win, &request);
  if (access == put && !by_request) MPI_Put(out, count, type, PLACE, win);
  if (access == get && by_request) MPI_Rget(in, count, type, PLACE, win, &request);
  if (access == get && !by_request) MPI_Get(in, count, type, PLACE, win);
  if (access == accumulate && by_request) MPI_Raccumulate(out, count, type, PLACE, MPI_SUM, win, &request);
  if (access == accumulate && !by_request) MPI_Accumulate(out, count, type, PLACE, MPI_SUM, win);
  if (access == get_accumulate && by_request)
    MPI_Rget_accumulate(out, count, type, in, count, type, PLACE, MPI_SUM, win, &request);
  if (access == get_accumulate && !by_request)
    MPI_Get_accumulate(out, count, type, in, count, type, PLACE, MPI_SUM, win);
  if (access == fetch) MPI_Fetch_and_op(out, in, MPI_INT, to, 0, MPI_SUM, win);
  if (access == swap) MPI_Compare_and_swap(out, compared.memory, in, MPI_INT, to, 0, win);
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void try_access(int access, int epoch, MPI_Datatype type, int count, int every) {
  int const is_single = access == fetch || access == swap, brings = access != put && access != accumulate;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  for (int i = 0; i < items; ++i) target[i] = there(rank, i);
  MPI_Win_unlock(rank, win);
  for (int i = 0; i < span; ++i) {
    origin.seen[i] = i % every == 0 ? here(rank, i / every) : -3;
    result.seen[i] = -4;
  }
  compared.seen[0] = there(to, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  begin(epoch);
  make(access, epoch, type, count);
  settle(epoch);
  int const moved = is_single ? 1 : items;
  for (int i = 0; i < span; ++i) {
    int const is_item = brings && i % every == 0 && i / every < moved;
    expect(access, epoch, "result", i, result.seen[i], is_item ? there(to, i / every) : -4);
    if (wrong != 0) break;
  }
  end(epoch);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  for (int i = 0; i < items && wrong == 0; ++i) {
    int want = there(rank, i);
    if (i < moved && (access == accumulate || access == get_accumulate || access == fetch)) want += here(from, i);
    if (i < moved && (access == put || access == swap)) want = here(from, i);
    expect(access, epoch, "window", i, target[i], want);
  }
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  ++done;
}

/* A flush of one target puts in place what was got from there. */
static void two_targets(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  for (int i = 0; i < items; ++i) target[i] = there(rank, i);
  MPI_Win_unlock(rank, win);
  for (int i = 0; i < span; ++i) result.seen[i] = -4;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  MPI_Get(result.memory, items, MPI_INT, to, 0, items, MPI_INT, win);
  MPI_Get(result.memory + items, items, MPI_INT, rank, 0, items, MPI_INT, win);
  MPI_Get(result.memory + 2 * items, items, MPI_INT, MPI_PROC_NULL, 0, items, MPI_INT, win);
  MPI_Win_flush_local(to, win);
  for (int i = 0; i < items; ++i) expect(get, flushed_here, "one target", i, result.seen[i], there(to, i));
  MPI_Win_flush_all(win);
  for (int i = 0; i < items; ++i) {
    expect(get, flushed, "this rank", i, result.seen[items + i], there(rank, i));
    expect(get, flushed, "no target", i, result.seen[2 * items + i], -4);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  done += 2;
}

enum { threads = 4, gets = 100 };
static atomic_int wrong_gets;
static void* get_often(void* number) {
  Buffer const into = buffer_of();
  for (int turn = 0; turn < gets; ++turn) {
    int const of = (rank + turn + *(int*)number) % size;
    for (int i = 0; i < items; ++i) into.seen[i] = -4;
    MPI_Get(into.memory, items, MPI_INT, of, 0, items, MPI_INT, win);
    if (turn % 2 == 0) MPI_Win_flush(of, win);
    if (turn % 2 == 1) MPI_Win_flush_all(win);
    int i = 0;
    while (i < items && into.seen[i] == there(of, i)) ++i;
    if (i < items) atomic_fetch_add(&wrong_gets, 1);
  }
  device_free((unsigned char*)into.memory, (unsigned char*)into.seen);
  return NULL;
}
static void by_threads(void) {
  pthread_t thread[threads];
  int number[threads];
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  for (int i = 0; i < items; ++i) target[i] = there(rank, i);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < threads; ++i) number[i] = i, pthread_create(&thread[i], NULL, get_often, &number[i]);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  MPI_Win_unlock_all(win);
  wrong += wrong_gets;
  done += threads * gets;
}

static void tell(char const* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  if (rank == 0) printf("%s %d: %s\n", call, code != MPI_SUCCESS, text);
}
static void refused(void) {
  MPI_Win other;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  tell("create", MPI_Win_create(origin.memory, span, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
  /* Open MPI 4.1 has none where it may not copy between processes. */
  if (MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other) != MPI_SUCCESS) return;
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
  tell("attach", MPI_Win_attach(other, origin.memory, span));
  MPI_Win_free(&other);
}

int main(int argc, char** argv) {
  int const has_threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  int provided;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  to = (rank + 1) % size, from = (rank + size - 1) % size;
  origin = buffer_of(), result = buffer_of(), compared = buffer_of();
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &to, &to_group), MPI_Group_incl(world, 1, &from, &from_group);
  MPI_Win_allocate(items * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &target, &win);
  MPI_Datatype apart;
  MPI_Type_vector(items, 1, stride, MPI_INT, &apart);
  MPI_Type_commit(&apart);
  int any = 0;
  if (argc > 1 && !has_threads) {
    refused();
  } else if (has_threads) {
    by_threads();
  } else {
    for (int access = 0; access < accesses; ++access)
      for (int epoch = 0; epoch < epochs; ++epoch) {
        try_access(access, epoch, MPI_INT, items, 1);
        if (access < fetch) try_access(access, epoch, apart, 1, stride);
      }
    two_targets();
  }
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && done > 0) printf("accesses %d wrong %d\n", done, any);
  MPI_Type_free(&apart);
  MPI_Win_free(&win);
  MPI_Group_free(&world), MPI_Group_free(&to_group), MPI_Group_free(&from_group);
  device_free((unsigned char*)origin.memory, (unsigned char*)origin.seen);
  device_free((unsigned char*)result.memory, (unsigned char*)result.seen);
  device_free((unsigned char*)compared.memory, (unsigned char*)compared.seen);
  MPI_Finalize();
  return any != 0;
}
