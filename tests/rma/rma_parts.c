/* Windows of some ranks, and the forms of calls that do not wait. */
#include "rma_common.h"

enum { SLOTS = 32, ROUNDS = 12, RANKS_MAX = 16 };

static spl_rma_window* letters; /* parts are told by it */
static spl_rma_part_text told[RANKS_MAX];

static int position(const ptl_rank_t* group, unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    if (group[i] == my_rank) return (int)i;
  return -1;
}

static spl_rma_window* joined(const ptl_rank_t* group, unsigned size, void* memory, uint64_t bytes) {
  spl_rma_window* made = NULL;
  spl_rma_part_text text;
  const int own = position(group, size);
  if (own >= 0) {
    RMA(spl_rma_window_part(rma, group, size, memory, bytes, SPL_RMA_ALL, 0, &made, &text));
    for (unsigned i = 0; i < size; ++i)
      RMA(spl_rma_put(spl_rma_window_key(letters, group[i]), (uint64_t)own * sizeof text, &text, sizeof text));
  }
  RMA(spl_rma_fence(rma));
  if (own >= 0) RMA(spl_rma_window_join(made, told));
  RMA(spl_rma_barrier(rma));
  return made;
}

static void fence(spl_rma_window* window, unsigned round) {
  if (round % 2 == 0) {
    RMA(spl_rma_window_fence(window));
    return;
  }
  int done = 0;
  RMA(spl_rma_window_fence_begin(window));
  while (!done) RMA(spl_rma_window_fence_test(window, &done));
}

/* The group's ranks only: fences, locks, epochs. */
static void use(spl_rma_window* window, const ptl_rank_t* group, unsigned size, uint64_t* words) {
  static const uint64_t one = 1;
  const unsigned own = (unsigned)position(group, size);
  unsigned stale = 0, lost = 0;
  for (unsigned round = 1; round <= ROUNDS; ++round) {
    const uint64_t value = round * 100 + my_rank;
    for (unsigned i = 0; i < size; ++i) RMA(spl_rma_put(spl_rma_window_key(window, group[i]), own * 8, &value, 8));
    fence(window, round);
    for (unsigned i = 0; i < size; ++i) stale += words[i] != round * 100 + group[i];
    fence(window, round + 1);
  }
  EXPECT(0, stale);

  spl_rma_key* const first = spl_rma_window_key(window, group[0]);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    const int kind = round % 3 == 0 ? SPL_RMA_SHARED : SPL_RMA_EXCLUSIVE;
    int done = 0;
    if (round % 2 == 0) {
      RMA(spl_rma_lock_begin(window, group[0], kind));
      while (!done) RMA(spl_rma_lock_test(window, group[0], &done));
    } else {
      RMA(spl_rma_lock(window, group[0], kind));
    }
    if (kind == SPL_RMA_SHARED) {
      RMA(spl_rma_accumulate(first, 16 * 8, &one, 1, PTL_SUM, PTL_UINT64_T));
    } else {
      uint64_t seen = 0;
      RMA(spl_rma_get(first, 17 * 8, &seen, 8));
      done = 0;
      while (!done) RMA(spl_rma_flush_test(rma, group[0], &done));
      ++seen;
      RMA(spl_rma_put(first, 17 * 8, &seen, 8));
      RMA(spl_rma_flush(rma, group[0]));
    }
    RMA(spl_rma_unlock(window, group[0]));
  }
  RMA(spl_rma_lock_all(window));
  for (unsigned i = 0; i < size; ++i)
    RMA(spl_rma_accumulate(spl_rma_window_key(window, group[i]), 18 * 8, &one, 1, PTL_SUM, PTL_UINT64_T));
  RMA(spl_rma_unlock_all(window));
  fence(window, 1);
  if (own == 0) lost += words[16] != size * ROUNDS / 3 || words[17] != size * (ROUNDS - ROUNDS / 3);
  lost += words[18] != size;
  EXPECT(0, lost);

  for (unsigned round = 1; size > 1 && round <= ROUNDS; ++round) {
    const ptl_rank_t next = group[(own + 1) % size], before = group[(own + size - 1) % size];
    const uint64_t value = round * 7 + my_rank;
    int done = 0;
    RMA(spl_rma_post(window, &before, 1));
    while (!done) RMA(spl_rma_start_test(window, &next, 1, &done));
    RMA(spl_rma_put(spl_rma_window_key(window, next), 20 * 8, &value, 8));
    RMA(spl_rma_complete(window));
    RMA(spl_rma_wait_completed(window));
    lost += words[20] != round * 7 + before;
  }
  EXPECT(0, lost);
}

int main(int argc, char** argv) {
  begin();
  open_rma(argc, argv);
  RMA(spl_rma_window_make(rma, told, sizeof told, SPL_RMA_ALL, 0, &letters));
  uint64_t words[2][SLOTS] = {{0}};
  ptl_rank_t odd[RANKS_MAX], all[RANKS_MAX];
  unsigned odds = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    all[rank] = (rank * (ranks - 1) + 1) % ranks; /* 1, 0, ... backwards */
    if (rank % 2 == 1 || ranks == 1) odd[odds++] = rank;
  }
  spl_rma_window* const some = joined(odd, odds, words[0], sizeof words[0]);
  spl_rma_window* const turned = joined(all, ranks, words[1], sizeof words[1]);
  if (some != NULL) {
    use(some, odd, odds, words[0]);
    EXPECT(ranks > 1, spl_rma_window_key(some, 0) == NULL);
    if (ranks > 1) ANSWERS(PTL_ARG_INVALID, spl_rma_lock(some, 0, SPL_RMA_SHARED));
    RMA(spl_rma_window_free(some));
  }
  use(turned, all, ranks, words[1]);

  spl_rma_window* none = NULL;
  spl_rma_part_text text;
  const ptl_rank_t twice[2] = {my_rank, my_rank}, other = my_rank + 1, beyond[2] = {my_rank, ranks};
  int done = 0;
  ANSWERS(PTL_ARG_INVALID, spl_rma_window_part(rma, twice, 2, words, 8, SPL_RMA_ALL, 0, &none, &text));
  ANSWERS(PTL_ARG_INVALID, spl_rma_window_part(rma, &other, 1, words, 8, SPL_RMA_ALL, 0, &none, &text));
  ANSWERS(PTL_ARG_INVALID, spl_rma_window_part(rma, beyond, 2, words, 8, SPL_RMA_ALL, 0, &none, &text));
  ANSWERS(PTL_ARG_INVALID, spl_rma_window_fence_test(turned, &done));
  ANSWERS(PTL_ARG_INVALID, spl_rma_lock_test(turned, my_rank, &done));
  const ptl_rank_t me = my_rank;
  RMA(spl_rma_window_part(rma, &me, 1, words, 8, SPL_RMA_ALL, 0, &none, &text));
  ANSWERS(PTL_ARG_INVALID, spl_rma_window_fence(none));
  ANSWERS(PTL_ARG_INVALID, spl_rma_lock(none, my_rank, SPL_RMA_SHARED));
  text.bytes[5] ^= 1;
  ANSWERS(PTL_FAIL, spl_rma_window_join(none, &text));
  RMA(spl_rma_window_drop(none));

  RMA(spl_rma_window_fence(turned));
  RMA(spl_rma_window_drop(turned));
  RMA(spl_rma_window_free(letters));
  RMA(spl_rma_close(rma));
  return end();
}
