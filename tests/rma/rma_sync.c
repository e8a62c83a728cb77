/* Barriers, fences, epochs between groups, locks, notices: each holds what it promises, whatever the others do
 * meanwhile. */
#include "rma_common.h"

enum { SLOTS = 64, ROUNDS = 20 };

static uint64_t words[SLOTS];
static spl_rma_window* window;

static void add_one(unsigned rank, unsigned slot) {
  static const uint64_t one = 1;
  RMA(spl_rma_accumulate(spl_rma_window_key(window, rank), slot * 8, &one, 1, PTL_SUM, PTL_UINT64_T));
}

/* Everyone's puts of a round are there after its fence. */
static void fences(void) {
  for (unsigned round = 1; round <= ROUNDS; ++round) {
    const uint64_t value = round * 100 + my_rank;
    for (unsigned rank = 0; rank < ranks; ++rank)
      RMA(spl_rma_put(spl_rma_window_key(window, rank), my_rank * 8, &value, 8));
    RMA(spl_rma_fence(rma));
    for (unsigned rank = 0; rank < ranks; ++rank) EXPECT(round * 100 + rank, words[rank]);
    RMA(spl_rma_barrier(rma));
  }
}

/* Rank 0 posts to all others, they to it; some rounds with a part of the ranks only. */
static void groups(void) {
  if (ranks == 1) return;
  ptl_rank_t others[SLOTS];
  for (unsigned i = 1; i < ranks; ++i) others[i - 1] = i;
  const ptl_rank_t first = 0;
  memset(words, 0, sizeof words);
  RMA(spl_rma_barrier(rma));
  for (unsigned round = 1; round <= ROUNDS; ++round) {
    const uint32_t part = round % 3 == 0 ? 1 : ranks - 1;
    const int is_in = my_rank != 0 && my_rank <= part;
    if (my_rank == 0) {
      RMA(spl_rma_post(window, others, part));
      RMA(spl_rma_wait_completed(window));
      for (unsigned rank = 1; rank <= part; ++rank) EXPECT(round * 10 + rank, words[rank]);
      RMA(spl_rma_start(window, others, part));
      for (unsigned rank = 1; rank <= part; ++rank) {
        const uint64_t value = round;
        RMA(spl_rma_put(spl_rma_window_key(window, rank), 8 * 40, &value, 8));
        RMA(spl_rma_flush(rma, rank));
      }
      RMA(spl_rma_complete(window));
    } else if (is_in) {
      RMA(spl_rma_start(window, &first, 1));
      const uint64_t value = round * 10 + my_rank;
      RMA(spl_rma_put(spl_rma_window_key(window, 0), my_rank * 8, &value, 8));
      RMA(spl_rma_complete(window));
      RMA(spl_rma_post(window, &first, 1));
      int done = 0;
      while (!done) RMA(spl_rma_test_completed(window, &done));
      EXPECT(round, words[40]);
    }
  }
  ANSWERS(PTL_ARG_INVALID, spl_rma_complete(window));
  ANSWERS(PTL_ARG_INVALID, spl_rma_wait_completed(window));
}

/* A sum that is read and written apart, under an exclusive lock: none is lost. Readers see two words alike. */
static void locks(void) {
  memset(words, 0, sizeof words);
  RMA(spl_rma_barrier(rma));
  spl_rma_key* const key = spl_rma_window_key(window, 0);
  unsigned torn = 0;
  for (unsigned round = 0; round < ROUNDS; ++round) {
    uint64_t two[2] = {0, 0};
    RMA(spl_rma_lock(window, 0, SPL_RMA_EXCLUSIVE));
    RMA(spl_rma_get(key, 0, two, 16));
    RMA(spl_rma_flush(rma, 0));
    torn += two[0] != two[1];
    ++two[0];
    RMA(spl_rma_put(key, 0, &two[0], 8));
    RMA(spl_rma_flush(rma, 0));
    ++two[1];
    RMA(spl_rma_put(key, 8, &two[1], 8));
    RMA(spl_rma_unlock(window, 0));
    RMA(spl_rma_lock(window, 0, SPL_RMA_SHARED));
    RMA(spl_rma_get(key, 0, two, 16));
    RMA(spl_rma_flush(rma, 0));
    torn += two[0] != two[1];
    add_one(0, 20); /* atomics may go together */
    RMA(spl_rma_unlock(window, 0));
    if (round % 5 == my_rank % 5) {
      RMA(spl_rma_lock_all(window));
      for (unsigned rank = 0; rank < ranks; ++rank) add_one(rank, 21);
      RMA(spl_rma_unlock_all(window));
    }
  }
  EXPECT(0, torn);
  RMA(spl_rma_fence(rma));
  unsigned rounds_all = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) rounds_all += ROUNDS / 5;
  if (my_rank == 0) {
    EXPECT(ROUNDS * ranks, words[0]);
    EXPECT(ROUNDS * ranks, words[1]);
    EXPECT(ROUNDS * ranks, words[20]);
  }
  EXPECT(rounds_all, words[21]);
  ANSWERS(PTL_ARG_INVALID, spl_rma_unlock(window, 0));
  ANSWERS(PTL_ARG_INVALID, spl_rma_lock(window, 0, 7));
  RMA(spl_rma_barrier(rma));
}

/* Readers enter together: each holds a shared lock until all others have theirs. */
static void shared_together(void) {
  memset(words, 0, sizeof words);
  RMA(spl_rma_barrier(rma));
  RMA(spl_rma_lock_all(window));
  for (unsigned rank = 0; rank < ranks; ++rank) add_one(rank, 0);
  RMA(spl_rma_flush_all(rma));
  for (;;) {
    uint64_t seen = 0;
    RMA(spl_rma_get_accumulate(spl_rma_window_key(window, my_rank), 0, NULL, &seen, 1, SPL_RMA_NO_OP, PTL_UINT64_T));
    RMA(spl_rma_flush(rma, my_rank));
    if (seen == ranks) break;
  }
  RMA(spl_rma_unlock_all(window));
  RMA(spl_rma_barrier(rma));
}

/* Notices come when the data are there. */
static void notices(int kind) {
  enum { BYTES = 24000 };
  static unsigned char memory[2 * BYTES], out[BYTES];
  spl_rma_window* noticed;
  memset(memory, 0, sizeof memory);
  RMA(spl_rma_window_make(rma, memory, sizeof memory, SPL_RMA_ALL, kind, &noticed));
  const unsigned to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
  spl_rma_memory* const mine = spl_rma_window_memory(noticed);
  for (unsigned round = 1; round <= ROUNDS; ++round) {
    const uint64_t bytes = round % 4 == 0 ? 0 : round * 1000, at = round * 17;
    memset(out, (int)(round + my_rank), bytes);
    RMA(spl_rma_put_notify(spl_rma_window_key(noticed, to), at, out, bytes, round * 7));
    if (kind == SPL_RMA_QUEUED) {
      spl_rma_notice notice;
      RMA(spl_rma_wait_notice(mine, &notice));
      EXPECT(round * 7, notice.value);
      EXPECT(at, notice.offset);
      EXPECT(bytes, notice.bytes);
      EXPECT(from, notice.rank);
    } else {
      RMA(spl_rma_wait_notified(mine, round));
    }
    unsigned wrong_bytes = 0;
    for (uint64_t i = 0; i < bytes; ++i) wrong_bytes += memory[at + i] != (unsigned char)(round + from);
    EXPECT(0, wrong_bytes);
    RMA(spl_rma_flush(rma, to));
    RMA(spl_rma_barrier(rma));
  }
  /* Gets tell their target, too. */
  memset(memory, (int)(my_rank + 3), sizeof memory);
  RMA(spl_rma_barrier(rma));
  RMA(spl_rma_get_notify(spl_rma_window_key(noticed, to), 100, out, BYTES, 99));
  if (kind == SPL_RMA_QUEUED) {
    spl_rma_notice notice;
    RMA(spl_rma_wait_notice(mine, &notice));
    EXPECT(99, notice.value);
    EXPECT(100, notice.offset);
    EXPECT(from, notice.rank);
    ANSWERS(PTL_EQ_EMPTY, spl_rma_next_notice(mine, &notice));
  } else {
    RMA(spl_rma_wait_notified(mine, ROUNDS + 1));
    spl_rma_notice notice;
    ANSWERS(PTL_ARG_INVALID, spl_rma_next_notice(mine, &notice));
  }
  RMA(spl_rma_flush(rma, to));
  EXPECT((unsigned char)(to + 3), out[0]);
  EXPECT((unsigned char)(to + 3), out[BYTES - 1]);
  uint64_t count = 0;
  RMA(spl_rma_notified(mine, &count));
  EXPECT(ROUNDS + 1, count);
  RMA(spl_rma_window_free(noticed));
  ANSWERS(PTL_ARG_INVALID, spl_rma_put_notify(spl_rma_window_key(window, to), 0, out, 8, 1));
}

/* A window that may only be read gets notices, too: of gets, not of puts. */
static void notices_of_readers(void) {
  uint64_t word = 70 + my_rank, seen = 0;
  spl_rma_window* readable;
  spl_rma_notice notice;
  RMA(spl_rma_window_make(rma, &word, 8, SPL_RMA_READ, SPL_RMA_QUEUED, &readable));
  const unsigned to = (my_rank + 1) % ranks;
  ANSWERS(PTL_ARG_INVALID, spl_rma_put_notify(spl_rma_window_key(readable, to), 0, &seen, 8, 5));
  RMA(spl_rma_get_notify(spl_rma_window_key(readable, to), 4, &seen, 4, 6));
  RMA(spl_rma_flush(rma, to));
  RMA(spl_rma_get_notify(spl_rma_window_key(readable, to), 0, &seen, 8, 7));
  RMA(spl_rma_flush(rma, to));
  EXPECT(70 + to, seen);
  RMA(spl_rma_wait_notice(spl_rma_window_memory(readable), &notice));
  EXPECT(6, notice.value);
  EXPECT(4, notice.offset);
  RMA(spl_rma_wait_notice(spl_rma_window_memory(readable), &notice));
  EXPECT(7, notice.value);
  EXPECT(0, notice.bytes);
  EXPECT((my_rank + ranks - 1) % ranks, notice.rank);
  RMA(spl_rma_window_free(readable));
  EXPECT(70 + my_rank, word);
}

int main(int argc, char** argv) {
  begin();
  open_rma(argc, argv);
  RMA(spl_rma_window_make(rma, words, sizeof words, SPL_RMA_ALL, 0, &window));
  fences();
  groups();
  locks();
  shared_together();
  notices(SPL_RMA_COUNTED);
  notices(SPL_RMA_QUEUED);
  notices_of_readers();
  RMA(spl_rma_window_free(window));
  RMA(spl_rma_close(rma));
  /* The portal table entries are free again. */
  open_rma(argc, argv);
  RMA(spl_rma_close(rma));
  return end();
}
