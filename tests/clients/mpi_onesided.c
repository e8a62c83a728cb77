/* One-sided communication: puts, gets and atomic updates under fences, post-start-complete-wait, and locks.
 *
 * argv[1]: what to do, a letter a step (all of them): f fences, s post-start, l locks, a atomic updates, r requests, d
 * derived types. Every rank has a window of `slots` words for each rank.
 */
#include "mpi_types.h"

enum { slots = 4096, most = 8 };

static MPI_Win win;
static int64_t* window;

static int64_t word(int of, int i) { return (int64_t)of * 1000003 + i * 7 + 1; }
static MPI_Aint slot(int i) { return (MPI_Aint)rank * slots + i; }

static void clear(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  memset(window, 0, sizeof(int64_t) * slots * (size_t)ranks);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void holds(int line, const int64_t* at, int of, int count) {
  long long bad = -1;
  for (int i = 0; i < count && bad < 0; ++i) {
    if (at[i] != word(of, i)) bad = i;
  }
  expect(line, "the first wrong word", -1, bad);
}

static void fences(void) {
  static const int counts[] = {0, 1, 2, 100, 300, 1000, slots};
  int64_t *out = memory(sizeof(int64_t) * slots), *in = memory(sizeof(int64_t) * slots * most);
  for (int i = 0; i < slots; ++i) out[i] = word(rank, i);
  for (unsigned c = 0; c < sizeof counts / sizeof *counts; ++c) {
    const int count = counts[c];
    clear();
    MPI_Win_fence(0, win);
    for (int to = 0; to < ranks; ++to) MPI_Put(out, count, MPI_INT64_T, to, slot(0), count, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    for (int of = 0; of < ranks; ++of) {
      holds(__LINE__, window + of * slots, of, count);
      if (count < slots) EXPECT(0, window[of * slots + count]);
    }
    MPI_Win_fence(0, win);
    for (int from = 0; from < ranks; ++from) {
      MPI_Get(in + from * slots, count, MPI_INT64_T, from, slot(0), count, MPI_INT64_T, win);
    }
    MPI_Win_fence(0, win);
    for (int from = 0; from < ranks; ++from) holds(__LINE__, in + from * slots, rank, count);
  }
  free(in), free(out);
}

static void post_start(void) {
  int64_t* out = memory(sizeof(int64_t) * slots);
  MPI_Group world, next_group, before_group;
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &next, &next_group);
  MPI_Group_incl(world, 1, &before, &before_group);
  clear();
  for (int lap = 0; lap < 20; ++lap) {
    const int count = 1 + lap * 37;
    for (int i = 0; i < count; ++i) out[i] = word(rank + lap, i);
    MPI_Win_post(before_group, 0, win);
    MPI_Win_start(next_group, 0, win);
    MPI_Put(out, count, MPI_INT64_T, next, slot(0), count, MPI_INT64_T, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    holds(__LINE__, window + before * slots, before + lap, count);
  }
  MPI_Group_free(&before_group);
  MPI_Group_free(&next_group);
  MPI_Group_free(&world);
  free(out);
}

/* A counter in rank 0's window that all ranks read and write under a lock: no step is lost. */
static void locks(void) {
  enum { steps = 100 };
  clear();
  for (int step = 0; step < steps; ++step) {
    int64_t count = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&count, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    ++count;
    MPI_Put(&count, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t total = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&total, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win);
  MPI_Win_unlock(0, win);
  EXPECT((long long)steps * ranks, total);
}

static void updates(void) {
  enum { steps = 50, wide = 500 };
  clear();
  int64_t one = 1, seen = -1, sum = 0;
  int64_t *add = memory(sizeof(int64_t) * wide), *got = memory(sizeof(int64_t) * wide);
  for (int i = 0; i < wide; ++i) add[i] = word(rank, i);
  MPI_Win_lock_all(0, win);
  for (int step = 0; step < steps; ++step) {
    int64_t old = -1;
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    EXPECT(1, old > seen); /* every rank sees the counter grow */
    seen = old;
    MPI_Accumulate(&one, 1, MPI_INT64_T, ranks - 1, 1, 1, MPI_INT64_T, MPI_SUM, win);
  }
  for (int to = 0; to < ranks; ++to) {
    MPI_Accumulate(add, wide, MPI_INT64_T, to, 100, wide, MPI_INT64_T, MPI_SUM, win);
    MPI_Accumulate(add, 1, MPI_INT64_T, to, 2, 1, MPI_INT64_T, MPI_MAX, win);
  }
  MPI_Win_flush_all(win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Win_lock_all(0, win);
  int64_t zero = 0;
  MPI_Fetch_and_op(&zero, &sum, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
  MPI_Win_flush(0, win);
  EXPECT((long long)steps * ranks, sum);
  MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &sum, 1, MPI_INT64_T, ranks - 1, 1, 1, MPI_INT64_T, MPI_NO_OP, win);
  MPI_Win_flush(ranks - 1, win);
  EXPECT((long long)steps * ranks, sum);
  for (int from = 0; from < ranks; ++from) {
    MPI_Get(got, wide, MPI_INT64_T, from, 100, wide, MPI_INT64_T, win);
    MPI_Get(&sum, 1, MPI_INT64_T, from, 2, 1, MPI_INT64_T, win);
    MPI_Win_flush(from, win);
    EXPECT(word(ranks - 1, 0), sum);
    long long bad = -1;
    for (int i = 0; i < wide && bad < 0; ++i) {
      int64_t right = 0;
      for (int r = 0; r < ranks; ++r) right += word(r, i);
      if (got[i] != right) bad = i;
    }
    expect(__LINE__, "the first wrong sum", -1, bad);
  }
  /* who turns 0 into rank + 1 first is one rank, and all see it */
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t mine = rank + 1, was = -1;
  int winners = 0, won;
  MPI_Compare_and_swap(&mine, &zero, &was, MPI_INT64_T, 0, 3, win);
  MPI_Win_flush(0, win);
  won = was == 0;
  MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(1, winners);
  MPI_Win_unlock_all(win);
  free(got), free(add);
}

static void requests(void) {
  int64_t *out = memory(sizeof(int64_t) * slots), *in = memory(sizeof(int64_t) * slots);
  MPI_Request request;
  clear();
  for (int i = 0; i < slots; ++i) out[i] = word(rank, i);
  MPI_Win_lock_all(0, win);
  for (int to = 0; to < ranks; ++to) {
    MPI_Rput(out, slots, MPI_INT64_T, to, slot(0), slots, MPI_INT64_T, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(to, win);
    memset(in, 0, sizeof(int64_t) * slots);
    MPI_Rget(in, slots, MPI_INT64_T, to, slot(0), slots, MPI_INT64_T, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    holds(__LINE__, in, rank, slots);
  }
  MPI_Win_unlock_all(win);
  free(in), free(out);
}

/* Types of both ends differ; their elements are the same. */
static void derived(void) {
  uint64_t state = (uint64_t)(rank + 1) << 40;
  for (int lap = 0; lap < 30; ++lap) {
    const int elements = 1 + below(&state, 700), to = (rank + lap) % ranks;
    layout_t here = make_layout(&state, elements), there = make_layout(&state, elements);
    const uint64_t key = drawn(&state);
    unsigned char *sent = laid_out(&here, key, 0x5a), *got = memory(here.span);
    clear();
    if (there.span <= sizeof(int64_t) * slots) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
      MPI_Put(sent, 1, here.type, to, slot(0), 1, there.type, win);
      MPI_Win_unlock(to, win);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
      memset(got, 0xa5, here.span);
      MPI_Get(got, 1, here.type, to, slot(0), 1, there.type, win);
      MPI_Win_unlock(to, win);
      expect(__LINE__, "the first wrong byte of a get", -1, misplaced(&here, got, key, 0xa5));
      unsigned char* flat = memory(there.span);
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
      MPI_Get(flat, (int)there.span, MPI_BYTE, to, slot(0), (int)there.span, MPI_BYTE, win);
      MPI_Win_unlock(to, win);
      expect(__LINE__, "the first wrong byte of a put", -1, misplaced(&there, flat, key, 0));
      free(flat);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(got), free(sent);
    drop_layout(&here);
    drop_layout(&there);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (ranks > most) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Win_allocate((MPI_Aint)(sizeof(int64_t) * slots) * ranks, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &window,
                   &win);
  for (const char* step = argc > 1 ? argv[1] : "fslard"; *step != 0; ++step) {
    switch (*step) {
      case 'f': fences(); break;
      case 's': post_start(); break;
      case 'l': locks(); break;
      case 'a': updates(); break;
      case 'r': requests(); break;
      case 'd': derived(); break;
      default: MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  MPI_Win_free(&win);
  return end();
}
