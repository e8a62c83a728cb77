/* One rank dies by SIGKILL. Whoever has operations to it, or waits for it, gets an error; nobody waits for ever, and
 * those who live can still reach each other. argv[2] says what the others do:
 *
 *   puts      puts to it, and flushes
 *   large     gets of 1 MiB from it, and flushes
 *   atomics   fetching atomics on its memory, with requests
 *   barrier   barriers
 *   fence     fences
 *   lock      wait for a lock that it has, of rank 0's memory
 *   own_lock  wait for a lock of its own memory
 *   start     wait for its post
 *   notice    wait for its notice
 *   close     close the context
 */
#include <signal.h>

#include "rma_common.h"

enum { BYTES = 1 << 20 };

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[2] : "puts";
  signal(SIGUSR1, SIG_IGN); /* Hydra's way to tell the others */
  begin();
  open_rma(argc, argv);
  const ptl_rank_t victim = ranks - 1;
  unsigned char* const memory = calloc(1, BYTES);
  unsigned char* const own = calloc(1, BYTES);
  spl_rma_window* window;
  RMA(spl_rma_window_make(rma, memory, BYTES, SPL_RMA_ALL, SPL_RMA_QUEUED, &window));
  if (my_rank == victim) {
    if (strcmp(what, "lock") == 0) RMA(spl_rma_lock(window, 0, SPL_RMA_EXCLUSIVE));
    RMA(spl_rma_barrier(rma));
    usleep(3000 + (unsigned)getpid() % 5000);
    kill(getpid(), SIGKILL);
  }
  RMA(spl_rma_barrier(rma));
  spl_rma_key* const key = spl_rma_window_key(window, victim);
  const uint64_t one = 1;
  uint64_t old;
  spl_rma_notice notice;
  int code = PTL_OK;
  while (code == PTL_OK) {
    if (strcmp(what, "puts") == 0) {
      RMA(spl_rma_put(key, my_rank * 8, own, 8));
      code = spl_rma_flush(rma, victim);
    } else if (strcmp(what, "large") == 0) {
      RMA(spl_rma_get(key, 0, own, BYTES));
      code = spl_rma_flush_all(rma);
    } else if (strcmp(what, "atomics") == 0) {
      spl_rma_request* request;
      RMA(spl_rma_get_accumulate_request(key, 0, &one, &old, 1, PTL_SUM, PTL_UINT64_T, &request));
      code = spl_rma_wait(request);
    } else if (strcmp(what, "barrier") == 0) {
      code = spl_rma_barrier(rma);
    } else if (strcmp(what, "fence") == 0) {
      RMA(spl_rma_put(key, my_rank * 8, own, 8));
      code = spl_rma_fence(rma);
    } else if (strcmp(what, "window_fence") == 0) {
      RMA(spl_rma_put(key, my_rank * 8, own, 8));
      code = spl_rma_window_fence(window);
    } else if (strcmp(what, "lock") == 0) {
      code = spl_rma_lock(window, 0, my_rank % 2 == 0 ? SPL_RMA_SHARED : SPL_RMA_EXCLUSIVE);
    } else if (strcmp(what, "own_lock") == 0) {
      code = spl_rma_lock(window, victim, SPL_RMA_EXCLUSIVE);
      if (code == PTL_OK) code = spl_rma_unlock(window, victim);
    } else if (strcmp(what, "start") == 0) {
      code = spl_rma_start(window, &victim, 1);
    } else if (strcmp(what, "notice") == 0) {
      code = spl_rma_wait_notice(spl_rma_window_memory(window), &notice);
    } else {
      break;
    }
  }
  EXPECT(strcmp(what, "close") == 0 ? PTL_OK : PTL_FAIL, code);
  /* The others can be reached. */
  const ptl_rank_t next = (my_rank + 1) % victim;
  RMA(spl_rma_fetch_and_op(spl_rma_window_key(window, next), 8000, &one, &old, PTL_SUM, PTL_UINT64_T));
  if (strcmp(what, "large") != 0) ANSWERS(PTL_OK, spl_rma_flush(rma, next));
  /* They stay until all of them have said so. */
  for (ptl_rank_t rank = 0; rank < victim; ++rank) {
    RMA(spl_rma_accumulate(spl_rma_window_key(window, rank), 8008, &one, 1, PTL_SUM, PTL_UINT64_T));
  }
  do {
    RMA(spl_rma_fetch_and_op(spl_rma_window_key(window, my_rank), 8008, NULL, &old, SPL_RMA_NO_OP, PTL_UINT64_T));
    spl_rma_flush(rma, my_rank);
  } while (old != victim);
  ANSWERS(PTL_FAIL, spl_rma_close(rma));
  printf("rank %u: %d answers\n", my_rank, answers - wrong);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
