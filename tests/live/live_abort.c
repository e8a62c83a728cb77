/* PtlAbort ends calls that wait in other threads, and calls that would wait later. */
#include <pthread.h>
#include <stdatomic.h>

#include "live_common.h"

enum { THREADS = 4 };
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static atomic_int about_to_wait;

static void* wait_in(void* argument) {
  ptl_ct_event_t count;
  ptl_event_t event;
  unsigned which;
  const ptl_size_t test = 3;
  long code;
  atomic_fetch_add(&about_to_wait, 1);
  switch ((long)argument) {
    case 0: code = PtlCTWait(ct, test, &count); break;
    case 1: code = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &which); break;
    case 2: code = PtlEQWait(eq, &event); break;
    default: code = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which); break;
  }
  return (void*)code;
}

/* Rules: P4F-21.3, P4F-21.5. */
int main(void) {
  pthread_t threads[THREADS];
  begin();
  ct = counter();
  MUST(PtlEQAlloc(ni, 8, &eq));
  barrier();
  for (long t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, wait_in, (void*)t);
  while (atomic_load(&about_to_wait) < THREADS) sleep_ms(1);
  PtlAbort(); /* some may come later still: it is remembered */
  for (int t = 0; t < THREADS; ++t) {
    void* code;
    pthread_join(threads[t], &code);
    EXPECT(PTL_ABORTED, (long)code);
  }
  EXPECT(PTL_OK, PtlEQFree(eq));
  EXPECT(PTL_OK, PtlCTFree(ct));
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
