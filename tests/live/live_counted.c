/* Calls that look at queues and counters must neither allocate memory nor read a clock if something is there already
 * or nothing is waited for. The malloc and the clocks of this program count the calls to them. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "live_common.h"

enum { MANY = 200 };
static _Thread_local long asked; /* calls of this thread: the helper has a clock */

void* __libc_malloc(size_t bytes);
void* malloc(size_t bytes) {
  ++asked;
  return __libc_malloc(bytes);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  ++asked;
  return real(clock, time);
}

static void from_here(void) { asked = 0; }

int main(void) {
  ptl_event_t event;
  ptl_ct_event_t count;
  ptl_handle_eq_t eqs[8];
  ptl_handle_ct_t cts[8];
  ptl_size_t tests[8];
  unsigned which;
  begin();
  for (int i = 0; i < 8; ++i) {
    MUST(PtlEQAlloc(ni, MANY, &eqs[i]));
    cts[i] = counter();
    tests[i] = i == 7 ? 1 : 2;
  }
  open_portal(eqs[7], 0);
  const ptl_handle_me_t entry =
      append_to(0, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, cts[7], 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  const ptl_process_t me = rank_of(my_rank);
  for (int i = 0; i < MANY; ++i) MUST(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, me, 0, 0, 0, NULL, 0));
  MUST(PtlCTWait(cts[7], MANY, &count));
  from_here();
  for (int i = 0; i <= MANY; ++i) { /* one turn more tells that the entry is linked */
    const int code = i % 2 == 0 ? PtlEQGet(eqs[7], &event) : PtlEQPoll(eqs, 8, PTL_TIME_FOREVER, &event, &which);
    if (code != PTL_OK) ++wrong;
  }
  EXPECT(0, asked);
  EXPECT(7, which);
  from_here();
  for (int i = 0; i < MANY; ++i) {
    if (PtlCTWait(cts[7], 1, &count) != PTL_OK || PtlCTPoll(cts, tests, 8, 1000, &count, &which) != PTL_OK) ++wrong;
  }
  EXPECT(0, asked);
  from_here();
  for (int i = 0; i < MANY; ++i) {
    if (PtlEQGet(eqs[0], &event) != PTL_EQ_EMPTY || PtlCTGet(cts[0], &count) != PTL_OK) ++wrong;
    if (PtlEQPoll(eqs, 7, 0, &event, &which) != PTL_EQ_EMPTY) ++wrong;
    if (PtlCTPoll(cts, tests, 7, 0, &count, &which) != PTL_CT_NONE_REACHED) ++wrong;
  }
  EXPECT(0, asked);
  MUST(PtlMEUnlink(entry));
  return end();
}
