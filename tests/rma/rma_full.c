/* A rank that has no room for notices refuses what comes, and says so; what is sent again arrives once, with its data.
 * Other operations and other windows do not suffer. Argument: native or emulated. */
#include "rma_common.h"

enum { EACH = 60, RANKS = 4 };

static uint64_t slots[RANKS * EACH]; /* rank 0 has a word for each notice */
static uint64_t refused; /* rank 0 counts the ranks that have been refused */

static void put_until_taken(spl_rma_window* noticed, spl_rma_window* plain, uint64_t value) {
  const uint64_t word = 3 * value + 1, one = 1;
  static int told = 0;
  for (;;) {
    RMA(spl_rma_put_notify(spl_rma_window_key(noticed, 0), 8 * value, &word, 8, value));
    if (spl_rma_flush(rma, 0) == PTL_OK) return;
    if (told++ > 0) continue;
    EXPECT(1, strstr(spl_rma_error(rma), "notice") != NULL);
    RMA(spl_rma_accumulate(spl_rma_window_key(plain, 0), 0, &one, 1, PTL_SUM, PTL_UINT64_T));
    RMA(spl_rma_flush(rma, 0));
  }
}

static void take(spl_rma_window* noticed) {
  static int seen[RANKS * EACH];
  const volatile uint64_t* const waiting = &refused;
  while (*waiting < ranks - 1) RMA(spl_rma_progress(rma));
  for (uint64_t left = (ranks - 1) * EACH; left > 0;) {
    spl_rma_notice notice;
    const int code = spl_rma_next_notice(spl_rma_window_memory(noticed), &notice);
    RMA(spl_rma_progress(rma));
    if (code == PTL_EQ_EMPTY) continue;
    RMA(code);
    EXPECT(0, seen[notice.value]++);
    EXPECT(3 * notice.value + 1, slots[notice.value]);
    EXPECT(notice.value / EACH + 1, notice.rank);
    --left;
  }
}

int main(int argc, char** argv) {
  begin();
  spl_rma_options options = options_for(argc > 1 ? argv[1] : "native");
  options.notices = 4;
  RMA(spl_rma_open(ni, &options, &rma));
  spl_rma_window *noticed, *plain;
  RMA(spl_rma_window_make(rma, slots, sizeof slots, SPL_RMA_ALL, SPL_RMA_QUEUED, &noticed));
  RMA(spl_rma_window_make(rma, &refused, sizeof refused, SPL_RMA_ALL, 0, &plain));
  if (my_rank == 0) {
    take(noticed);
  } else {
    for (uint64_t i = 0; i < EACH; ++i) put_until_taken(noticed, plain, (my_rank - 1) * EACH + i);
  }
  RMA(spl_rma_fence(rma));
  uint64_t count = 0;
  RMA(spl_rma_notified(spl_rma_window_memory(noticed), &count));
  EXPECT(my_rank == 0 ? (ranks - 1) * EACH : 0, count);
  RMA(spl_rma_window_free(plain));
  RMA(spl_rma_window_free(noticed));
  RMA(spl_rma_close(rma));
  return end();
}
