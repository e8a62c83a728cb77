/* Objects that are freed while something still names them, and the state after PtlAbort: what named a freed object
 * must never mean the next object in its place. Each of two ranks puts to the other. */
#include "portals_common.h"

static unsigned char memory[64];
static ptl_handle_eq_t mine; /* events of this rank's own operations */
static ptl_handle_md_t md;
static ptl_process_t other;

static ptl_handle_ct_t counter(void) {
  ptl_handle_ct_t made;
  MUST(PtlCTAlloc(ni, &made));
  return made;
}

static ptl_ct_event_t value(ptl_handle_ct_t ct) {
  ptl_ct_event_t count;
  MUST(PtlCTGet(ct, &count));
  return count;
}

static ptl_handle_me_t append(ptl_pt_index_t pt, ptl_match_bits_t bits, unsigned options, ptl_handle_ct_t ct) {
  ptl_handle_me_t made;
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = ct,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &made));
  return made;
}

/* Puts to the other rank and returns how the put ended there. */
static ptl_ni_fail_t put(ptl_pt_index_t pt, ptl_match_bits_t bits) {
  MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, other, pt, bits, 0, NULL, 0));
  return ended(mine);
}

/* Rules: P4F-10.19. */
static void counters_of_entries(void) {
  ptl_pt_index_t pt;
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_handle_ct_t freed = counter();
  const ptl_handle_me_t entry = append(pt, 1, 0, freed);
  EXPECT(PTL_OK, PtlCTFree(freed));
  const ptl_handle_ct_t next = counter();
  barrier();
  EXPECT(PTL_NI_OK, put(pt, 1));
  barrier();
  EXPECT(0, value(next).success);
  EXPECT(PTL_ARG_INVALID, PtlCTFree(freed));
  EXPECT(PTL_OK, PtlCTFree(next));
  EXPECT(PTL_OK, PtlMEUnlink(entry));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
}

/* A triggered count whose counter is gone when it fires; a descriptor's acknowledgement for one that is gone. */
static void counters_of_operations(void) {
  const ptl_handle_ct_t trigger = counter(), freed = counter();
  EXPECT(PTL_OK, PtlTriggeredCTInc(freed, (ptl_ct_event_t){1, 0}, trigger, 1));
  EXPECT(PTL_OK, PtlTriggeredCTSet(freed, (ptl_ct_event_t){9, 0}, trigger, 1));
  EXPECT(PTL_OK, PtlCTFree(freed));
  const ptl_handle_ct_t next = counter();
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  const ptl_handle_ct_t last = counter();
  EXPECT(PTL_OK, PtlTriggeredCTInc(last, (ptl_ct_event_t){1, 0}, trigger, 1)); /* it comes after those */
  ptl_ct_event_t count;
  MUST(PtlCTWait(last, 1, &count));
  EXPECT(0, value(next).success);
  EXPECT(PTL_OK, PtlCTFree(next));
  EXPECT(PTL_OK, PtlCTFree(last));
  EXPECT(PTL_OK, PtlCTFree(trigger));
}

/* A descriptor waits for acknowledgements only where somebody hears of them. */
/* Rules: P4F-6.30, P4F-6.33. */
static void descriptors(void) {
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  ptl_handle_md_t unheard;
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_handle_ct_t sent = counter(), landed = counter();
  const ptl_handle_me_t entry = append(pt, 1, 0, landed);
  barrier();
  static const ptl_ack_req_t requests[] = {PTL_CT_ACK_REQ, PTL_OC_ACK_REQ, PTL_NO_ACK_REQ};
  for (int i = 0; i < 3; ++i) {
    ptl_md_t what = {.start = memory,
                     .length = sizeof memory,
                     .options = PTL_MD_EVENT_CT_SEND,
                     .eq_handle = PTL_EQ_NONE,
                     .ct_handle = sent};
    MUST(PtlMDBind(ni, &what, &unheard));
    MUST(PtlPut(unheard, 0, 8, requests[i], other, pt, 1, 0, NULL, 0));
    MUST(PtlCTWait(sent, (ptl_size_t)i + 1, &count));
    EXPECT(PTL_OK, PtlMDRelease(unheard));
  }
  /* The event of a descriptor's acknowledgement is heard, whatever is counted. */
  ptl_md_t told = {.start = memory,
                   .length = sizeof memory,
                   .options = PTL_MD_EVENT_CT_ACK,
                   .eq_handle = mine,
                   .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &told, &unheard));
  MUST(PtlPut(unheard, 0, 8, PTL_ACK_REQ, other, pt, 1, 0, NULL, 0));
  EXPECT(PTL_NI_OK, ended(mine));
  EXPECT(PTL_OK, PtlMDRelease(unheard));
  MUST(PtlCTWait(landed, 4, &count));
  barrier();
  EXPECT(3, value(sent).success);
  EXPECT(PTL_OK, PtlMEUnlink(entry));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  EXPECT(PTL_OK, PtlCTFree(sent));
  EXPECT(PTL_OK, PtlCTFree(landed));
}

/* A descriptor whose counter or queue, or both, have been freed: its operations go on, and what the freed ones would be
 * told is dropped. `freed`: 1 the counter, 2 the queue. */
/* Rules: P4F-6.35, P4F-10.19. */
static void counters_and_queues_of_descriptors(unsigned freed) {
  static uint64_t in, out;
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  ptl_event_t event;
  ptl_handle_eq_t eq;
  ptl_handle_md_t bound;
  ptl_handle_me_t entry;
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_handle_ct_t landed = counter(), ct = counter();
  const ptl_me_t me = {.start = &in,
                       .length = sizeof in,
                       .ct_handle = landed,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                       .match_id = {.rank = PTL_RANK_ANY}};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
  MUST(PtlEQAlloc(ni, 64, &eq));
  const ptl_md_t what = {.start = &out,
                         .length = sizeof out,
                         .options = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
                         .eq_handle = eq,
                         .ct_handle = ct};
  MUST(PtlMDBind(ni, &what, &bound));
  if (freed & 1) MUST(PtlCTFree(ct));
  if (freed & 2) MUST(PtlEQFree(eq));
  const ptl_handle_ct_t next = counter();
  ptl_handle_eq_t next_eq;
  MUST(PtlEQAlloc(ni, 64, &next_eq));
  barrier();
  out = 100 + my_rank;
  ptl_size_t begun = 0;
  for (ptl_ack_req_t ack = PTL_NO_ACK_REQ; ack <= PTL_OC_ACK_REQ; ++ack, ++begun)
    EXPECT(PTL_OK, PtlPut(bound, 0, 8, ack, other, pt, 0, 0, NULL, 0));
  MUST(PtlCTWait(landed, begun, &count));
  EXPECT(100 + other.rank, in);
  barrier();
  EXPECT(PTL_OK, PtlAtomic(bound, 0, 8, PTL_ACK_REQ, other, pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_OK, PtlGet(bound, 0, 8, other, pt, 0, 0, NULL));
  MUST(PtlCTWait(landed, begun += 2, &count));
  barrier();
  if (freed == 1) {
    unsigned told[PTL_EVENT_SEARCH + 1] = {0};
    for (int i = 0; i < 5 + 2 + 1; ++i) {
      MUST(PtlEQWait(eq, &event));
      EXPECT(PTL_NI_OK, event.ni_fail_type);
      ++told[event.type];
    }
    EXPECT(5, told[PTL_EVENT_SEND]);
    EXPECT(2, told[PTL_EVENT_ACK]);
    EXPECT(1, told[PTL_EVENT_REPLY]);
  }
  if (freed == 2) {
    MUST(PtlCTWait(ct, 5 + 4 + 1, &count)); /* sends, acknowledgements, a reply */
    EXPECT(0, count.failure);
  }
  EXPECT(0, value(next).success);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(next_eq, &event));
  barrier();
  while (PtlMDRelease(bound) == PTL_ARG_INVALID) MUST(PtlCTGet(landed, &count)); /* an answer is still to come */
  EXPECT(PTL_OK, PtlMEUnlink(entry));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  EXPECT(PTL_OK, PtlCTFree(landed));
  EXPECT(PTL_OK, PtlCTFree(next));
  EXPECT(PTL_OK, PtlEQFree(next_eq));
  if ((freed & 1) == 0) EXPECT(PTL_OK, PtlCTFree(ct));
  if ((freed & 2) == 0) EXPECT(PTL_OK, PtlEQFree(eq));
}

/* An unlink that waits for a counter, for an entry that was unlinked by hand meanwhile. */
static void unlinks_that_wait(void) {
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_handle_ct_t trigger = counter(), landed = counter(), after = counter();
  const ptl_handle_me_t older = append(pt, 1, 0, PTL_CT_NONE);
  EXPECT(PTL_OK, PtlTriggeredMEUnlink(older, trigger, 1));
  EXPECT(PTL_OK, PtlMEUnlink(older));
  const ptl_handle_me_t next = append(pt, 1, 0, landed);
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  EXPECT(PTL_OK, PtlTriggeredCTInc(after, (ptl_ct_event_t){1, 0}, trigger, 1));
  MUST(PtlCTWait(after, 1, &count));
  barrier();
  EXPECT(PTL_NI_OK, put(pt, 1));
  barrier();
  EXPECT(1, value(landed).success);
  EXPECT(PTL_OK, PtlMEUnlink(next));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  EXPECT(PTL_OK, PtlCTFree(trigger));
  EXPECT(PTL_OK, PtlCTFree(landed));
  EXPECT(PTL_OK, PtlCTFree(after));
}

/* A queue that a portal table entry names: what comes later is dropped, the rest goes on; with flow control, too. */
static void queues_of_portals(unsigned options) {
  ptl_handle_eq_t freed, next;
  ptl_event_t event;
  ptl_pt_index_t pt;
  MUST(PtlEQAlloc(ni, 8, &freed));
  MUST(PtlPTAlloc(ni, options, freed, 0, &pt));
  const ptl_handle_ct_t landed = counter();
  const ptl_handle_me_t stays = append(pt, 1, 0, landed);
  append(pt, 2, PTL_ME_USE_ONCE, landed);
  EXPECT(PTL_EVENT_LINK, (PtlEQWait(freed, &event), event.type));
  EXPECT(PTL_OK, PtlEQFree(freed));
  EXPECT(PTL_ARG_INVALID, PtlEQGet(freed, &event));
  MUST(PtlEQAlloc(ni, 8, &next));
  barrier();
  EXPECT(PTL_NI_OK, put(pt, 1));
  EXPECT(PTL_NI_OK, put(pt, 2));
  EXPECT(PTL_NI_DROPPED, put(pt, 2)); /* it was used once */
  for (int i = 0; i < 20; ++i) EXPECT(PTL_NI_OK, put(pt, 1));
  barrier();
  EXPECT(22, value(landed).success);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(next, &event));
  const ptl_handle_me_t late = append(pt, 3, 0, landed);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(next, &event));
  EXPECT(PTL_OK, PtlMEUnlink(stays));
  EXPECT(PTL_OK, PtlMEUnlink(late));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  EXPECT(PTL_OK, PtlEQFree(next));
  EXPECT(PTL_OK, PtlCTFree(landed));
}

/* Entries that leave by themselves tell nobody when their queue is gone; their places come back all the same. */
static void places_of_entries(void) {
  ptl_handle_eq_t freed;
  ptl_pt_index_t pt;
  MUST(PtlEQAlloc(ni, 8, &freed));
  MUST(PtlPTAlloc(ni, 0, freed, 0, &pt));
  for (int i = 0; i < limits.max_entries / 2; ++i)
    append(pt, 1, PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE, PTL_CT_NONE);
  EXPECT(PTL_OK, PtlEQFree(freed));
  barrier();
  for (int i = 0; i < limits.max_entries / 2; ++i) EXPECT(PTL_NI_OK, put(pt, 1));
  barrier();
  for (int i = 0; i < limits.max_entries / 2; ++i) EXPECT(PTL_OK, PtlMEUnlink(append(pt, 1, 0, PTL_CT_NONE)));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
}

/* After it, nothing waits any more; all else goes on. */
/* Rules: P4F-21.4. */
static int aborted(void) {
  ptl_event_t event;
  ptl_ct_event_t count;
  unsigned which = 7;
  const ptl_handle_ct_t ct = counter();
  MUST(PtlCTSet(ct, (ptl_ct_event_t){5, 0}));
  barrier();
  PtlAbort(); /* nobody waits: it is remembered */
  for (int i = 0; i < 2; ++i) {
    EXPECT(PTL_ABORTED, PtlCTWait(ct, 99, &count));
    EXPECT(PTL_ABORTED, PtlCTWait(ct, 5, &count));
    EXPECT(PTL_ABORTED, PtlCTPoll(&ct, &(ptl_size_t){5}, 1, 0, &count, &which));
    EXPECT(PTL_ABORTED, PtlCTPoll(&ct, &(ptl_size_t){99}, 1, PTL_TIME_FOREVER, &count, &which));
    EXPECT(PTL_ABORTED, PtlEQWait(mine, &event));
    EXPECT(PTL_ABORTED, PtlEQPoll(&mine, 1, 0, &event, &which));
    EXPECT(PTL_ABORTED, PtlEQPoll(&mine, 1, PTL_TIME_FOREVER, &event, &which));
    EXPECT(PTL_EQ_EMPTY, PtlEQGet(mine, &event));
    EXPECT(5, value(ct).success);
  }
  EXPECT(PTL_OK, PtlCTInc(ct, (ptl_ct_event_t){1, 0}));
  EXPECT(6, value(ct).success);
  EXPECT(PTL_ARG_INVALID, PtlCTWait(mine, 1, &count));
  EXPECT(PTL_OK, PtlCTFree(ct));
  EXPECT(PTL_OK, PtlMDRelease(md));
  EXPECT(PTL_OK, PtlEQFree(mine));
  EXPECT(PTL_OK, PtlNIFini(ni));
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}

int main(void) {
  begin();
  other = rank_of((my_rank + 1) % ranks);
  MUST(PtlEQAlloc(ni, 64, &mine));
  ptl_md_t what = {.start = memory, .length = sizeof memory, .eq_handle = mine, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &what, &md));
  counters_of_entries();
  counters_of_operations();
  descriptors();
  for (unsigned freed = 1; freed < 4; ++freed) counters_and_queues_of_descriptors(freed);
  unlinks_that_wait();
  queues_of_portals(0);
  queues_of_portals(PTL_PT_FLOWCTRL);
  places_of_entries();
  return aborted();
}
