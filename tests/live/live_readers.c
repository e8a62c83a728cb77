/* Several threads take events from one queue, each in another way: every event goes to exactly one of them. argv[1]:
 * the number of messages, all of them to this rank itself. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "live_common.h"

enum { READERS = 4 };
static ptl_handle_eq_t eq;
static unsigned messages;
static atomic_uint* seen;

static int take(unsigned how, ptl_event_t* event) {
  unsigned which;
  switch (how) {
    case 0: return PtlEQWait(eq, event);
    case 1: return PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, event, &which);
    case 2: return PtlEQPoll(&eq, 1, 1, event, &which);
    default: return PtlEQGet(eq, event);
  }
}

/* Ends with one of the messages behind the last; there is one for each reader. */
static void* read_events(void* argument) {
  for (;;) {
    ptl_event_t event;
    const int code = take((unsigned)(size_t)argument, &event);
    if (code == PTL_EQ_EMPTY) {
      sched_yield();
      continue;
    }
    MUST(code);
    if (event.hdr_data == messages) return NULL;
    atomic_fetch_add(&seen[event.hdr_data], 1);
  }
}

/* Rules: P4F-14.14, P4F-21.1. */
int main(int argc, char** argv) {
  pthread_t readers[READERS];
  messages = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 10000;
  seen = calloc(messages, sizeof *seen);
  begin();
  MUST(PtlEQAlloc(ni, messages + READERS, &eq));
  open_portal(eq, 0);
  append_to(0, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  barrier();
  for (size_t i = 0; i < READERS; ++i) pthread_create(&readers[i], NULL, read_events, (void*)i);
  for (unsigned i = 0; i < messages + READERS; ++i) {
    MUST(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, rank_of(my_rank), 0, 0, 0, NULL, i < messages ? i : messages));
  }
  for (unsigned i = 0; i < READERS; ++i) pthread_join(readers[i], NULL);
  unsigned once = 0;
  for (unsigned i = 0; i < messages; ++i) once += atomic_load(&seen[i]) == 1;
  EXPECT(messages, once);
  free(seen);
  return end();
}
