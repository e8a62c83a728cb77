/* Operations of a process on itself that start each other. With `puts` and `gets` a thread with a stack of 64 KiB
 * starts a chain of 60,000 operations and waits for its end. With `cycle` a triggered put starts itself again for
 * ever, and all calls and all peers must be served nevertheless. */
#include <limits.h>
#include <portals4_spin.h>
#include <pthread.h>

#include "live_common.h"

enum { CHAIN = 60000, STACK = 64 << 10, PT = 3, SELF = 5, PEER = 6, CALLS = 100 };
static ptl_handle_ct_t steps;
static unsigned char out[64], in[64];

static void* set_off(void* done) {
  ptl_ct_event_t count = {0, 0};
  if (PtlCTInc(steps, (ptl_ct_event_t){1, 0}) != PTL_OK) return NULL;
  if (PtlCTWait(steps, CHAIN + 1, &count) != PTL_OK || count.failure != 0) return NULL;
  return done;
}

static void chain(int gets) {
  pthread_t thread;
  pthread_attr_t small;
  void* done = NULL;
  const ptl_handle_md_t md =
      bind(out, sizeof out, gets ? PTL_MD_EVENT_CT_REPLY : 0, PTL_EQ_NONE, gets ? steps : PTL_CT_NONE);
  append_to(PT, in, sizeof in, PTL_ME_OP_PUT | PTL_ME_OP_GET | (gets ? 0 : PTL_ME_EVENT_CT_COMM), steps, SELF,
            PTL_PRIORITY_LIST);
  for (ptl_size_t i = 1; i <= CHAIN; ++i) {
    if (gets) {
      MUST(PtlTriggeredGet(md, 0, 8, rank_of(my_rank), PT, SELF, 0, NULL, steps, i));
    } else {
      MUST(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, SELF, 0, NULL, 0, steps, i));
    }
  }
  EXPECT(0, pthread_attr_init(&small));
  EXPECT(0, pthread_attr_setstacksize(&small, STACK));
  EXPECT(0, pthread_create(&thread, &small, set_off, &thread));
  EXPECT(0, pthread_join(thread, &done));
  EXPECT(1, done == &thread);
}

static void cycle(void) {
  ptl_ct_event_t before, now;
  const ptl_handle_ct_t landed = counter(), acked = counter();
  const ptl_handle_md_t md = bind(out, sizeof out, 0, PTL_EQ_NONE, PTL_CT_NONE);
  const ptl_handle_md_t told = bind(out, sizeof out, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  append_to(PT, in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, steps, SELF, PTL_PRIORITY_LIST);
  append_to(PT, in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, PEER, PTL_PRIORITY_LIST);
  MUST(PtlCTPersist(steps, 1));
  MUST(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, SELF, 0, NULL, 0, steps, 1));
  barrier();
  MUST(PtlCTInc(steps, (ptl_ct_event_t){1, 0}));
  MUST(PtlCTGet(steps, &before));
  for (int i = 0; i < CALLS; ++i) {
    MUST(PtlCTGet(steps, &now));
    EXPECT(0, now.failure);
    MUST(PtlPut(told, 0, 8, PTL_CT_ACK_REQ, rank_of((my_rank + 1) % ranks), PT, PEER, 0, NULL, 0));
  }
  WAIT_FOR(acked, CALLS);
  WAIT_FOR(landed, CALLS);
  WAIT_FOR(steps, before.success + 1000);
  barrier();
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "cycle";
  begin_with(&(ptl_ni_limits_t){.max_entries = 100,
                                .max_unexpected_headers = 32,
                                .max_mds = 10,
                                .max_cts = 100,
                                .max_eqs = 20,
                                .max_pt_index = 63,
                                .max_list_size = 100,
                                .max_triggered_ops = CHAIN,
                                .max_msg_size = 4096});
  EXPECT(1, limits.max_triggered_ops >= CHAIN);
  steps = counter();
  open_portal(PTL_EQ_NONE, PT);
  if (strcmp(what, "cycle") == 0) {
    cycle();
  } else {
    chain(strcmp(what, "gets") == 0);
  }
  return end();
}
